// Named tensors with metadata in one file, in the safetensors format that any safetensors reader opens: model files and
// checkpoints. Loading trusts nothing: sizes, offsets and types are checked before use (Exit::data).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/matrix.h"

namespace lacuna {

struct Tensor {
  std::string type;                     // F32, F64, BF16, I8, U8, I32, U32, I64, U64
  std::vector<std::uint64_t> shape;
  Bytes bytes;                          // row-major, little-endian; points into `owner` or into borrowed memory
  std::size_t stride = 0;               // bytes from row to row where borrowed rows have gaps between them; 0 = none
  std::shared_ptr<const void> owner;    // keeps the bytes alive; null = borrowed by put(), valid until written
};

std::uint64_t size_of(const Tensor& tensor);          // bytes, without gaps
std::vector<std::byte> packed(const Tensor& tensor);  // the bytes themselves, without gaps

class Tensors {
 public:
  nlohmann::json metadata = nlohmann::json::object();  // kept as one JSON text under __metadata__."lacuna"

  // Borrows the memory, which must exist until write() or copy() returns.
  void put(const std::string& name, MatrixView<const float> matrix);
  void put(const std::string& name, MatrixView<const double> matrix);
  void put(const std::string& name, std::span<const float> values);
  void put(const std::string& name, std::span<const std::uint8_t> values);
  void put(const std::string& name, std::span<const std::uint32_t> values);
  // Owns.
  void put_copy(const std::string& name, MatrixView<const float> matrix);
  // Shares or borrows the memory as `tensor` does.
  void put(const std::string& name, Tensor tensor) { tensors_[name] = std::move(tensor); }

  // Adds all tensors of `from` under prefixed names (memory shared or borrowed as in `from`, without its metadata);
  // part() is the inverse.
  void put_all(const std::string& prefix, const Tensors& from);
  Tensors part(const std::string& prefix) const;

  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  const Tensor& at(const std::string& name) const;                      // Exit::data if there is none
  // Copies out, checking type and shape; Exit::data names the tensor and both shapes.
  void get(const std::string& name, MatrixView<float> out) const;
  void get(const std::string& name, MatrixView<double> out) const;
  Matrix<float> matrix(const std::string& name) const;                  // of its own two-dimensional shape
  std::vector<float> floats(const std::string& name) const;
  std::vector<std::uint8_t> bytes(const std::string& name) const;
  std::vector<std::uint32_t> words(const std::string& name) const;
  const std::map<std::string, Tensor>& all() const { return tensors_; }

  void write(const std::string& path) const;                            // atomic
  std::string text() const;                                             // the bytes that write() would write
  static Tensors read(const std::string& path);                         // memory-mapped
  static Tensors parse(std::shared_ptr<const void> owner, Bytes bytes, const std::string& where);
  const std::string& path() const { return path_; }

 private:
  template <class Sink>
  void write_to(Sink&& sink) const;  // sink(Bytes), piece by piece
  std::map<std::string, Tensor> tensors_;
  std::string path_ = "(memory)";
};

}  // namespace lacuna
