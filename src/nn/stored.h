// Matrices of an engine in files (base/tensors.h) and in the host's memory.
#pragma once

#include <string>

#include "base/tensors.h"
#include "ops/engine.h"

namespace lacuna {

// A matrix in the host's memory: itself, or a copy.
class HostCopy {
 public:
  HostCopy(const Engine& engine, MatrixView<const float> from) : view_(from) {
    if (engine.on_host()) return;
    copy_ = Matrix<float>(from.rows, from.cols);
    download<float>(engine, from, copy_);
    view_ = std::as_const(copy_).view();
  }
  MatrixView<const float> view() const { return view_; }

 private:
  Matrix<float> copy_;
  MatrixView<const float> view_;
};

// The host's memory is borrowed until the file is written, a device's is copied.
inline void put_tensor(const Engine& engine, MatrixView<const float> from, const std::string& name,
                       Tensors& file) {
  if (engine.on_host()) {
    file.put(name, from);
  } else {
    file.put_copy(name, HostCopy(engine, from).view());
  }
}

inline void get_tensor(const Engine& engine, const Tensors& file, const std::string& name,
                       MatrixView<float> to) {
  if (engine.on_host()) return file.get(name, to);
  Matrix<float> copy(to.rows, to.cols);
  file.get(name, copy.view());
  upload<float>(engine, copy, to);
}

}  // namespace lacuna
