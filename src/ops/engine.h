// The memory of an engine (ops/ops.h): the CPU's, or a device's. Users of an engine allocate memory from it,
// upload and download numbers, and never look inside, because addresses of views in it may belong to a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <span>

#include "base/matrix.h"

namespace lacuna {

// Lines of `width` bytes, `stride` apart.
template <class Byte>
struct ByteRows {
  Byte* data;
  std::size_t stride;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Allocates zeroed memory, aligned to 64 bytes, which is freed with its last owner. Exit::failed with both numbers,
  // or std::bad_alloc, if there is not enough.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) const = 0;
  // Both take effect after all work submitted before. The source of an upload may change as soon as the call returns.
  virtual void upload(ByteRows<const std::byte> host, ByteRows<std::byte> to, std::size_t width,
                      std::size_t rows) const = 0;
  virtual void download(ByteRows<const std::byte> from, ByteRows<std::byte> host, std::size_t width,
                        std::size_t rows) const = 0;

  // Copies within the engine's memory.
  virtual void duplicate(ByteRows<const std::byte> from, ByteRows<std::byte> to, std::size_t width,
                         std::size_t rows) const = 0;

  // The owner of the memory: 0 is the host, which needs no copies; any other number is a device.
  virtual int place() const = 0;
  bool on_host() const { return place() == 0; }

  // A device computes while the host prepares: mark() names all work submitted so far, wait() waits for it.
  // Memory from `mapped` is written by the engine, and can be read by the host after waiting for that work.
  virtual std::uint64_t mark() const = 0;
  virtual void wait(std::uint64_t mark) const = 0;
  virtual std::shared_ptr<void> allocate_mapped(std::size_t bytes) const = 0;
  // Bytes of its memory that data may take. Larger data lie in mapped memory, from which a step reads the rows it
  // needs.
  virtual std::size_t room() const = 0;
  virtual std::size_t steps_ahead() const = 0;  // steps to submit before waiting for the first

  // How to divide a prediction of many rows: rows per block, whether several threads may take one block each, and
  // whether to submit views and channels together rather than one after the other in the same memory.
  struct Blocks {
    std::size_t rows;
    bool threads, together;
  };
  virtual Blocks blocks() const = 0;

  // Held while work is submitted: an engine with scratch memory of its own serves one caller at a time. Empty if any
  // number of threads may call at once.
  virtual std::unique_lock<std::mutex> turn() const = 0;
};

template <class T>
void upload(const Engine& engine, MatrixView<const T> host, MatrixView<T> to) {
  if (host.empty()) return;
  engine.upload({reinterpret_cast<const std::byte*>(host.data), host.stride * sizeof(T)},
                {reinterpret_cast<std::byte*>(to.data), to.stride * sizeof(T)}, host.cols * sizeof(T), host.rows);
}
template <class T>
void download(const Engine& engine, MatrixView<const T> from, MatrixView<T> host) {
  if (from.empty()) return;
  engine.download({reinterpret_cast<const std::byte*>(from.data), from.stride * sizeof(T)},
                  {reinterpret_cast<std::byte*>(host.data), host.stride * sizeof(T)}, from.cols * sizeof(T),
                  from.rows);
}

template <class T>
void duplicate(const Engine& engine, MatrixView<const T> from, MatrixView<T> to) {
  if (from.empty()) return;
  engine.duplicate({reinterpret_cast<const std::byte*>(from.data), from.stride * sizeof(T)},
                   {reinterpret_cast<std::byte*>(to.data), to.stride * sizeof(T)}, from.cols * sizeof(T), from.rows);
}

// A matrix in an engine's memory, zeroed at first.
template <class T>
class EngineMatrix {
 public:
  EngineMatrix() = default;
  EngineMatrix(const Engine& engine, std::size_t rows, std::size_t cols)
      : memory_(rows != 0 && cols != 0 ? engine.allocate(rows * cols * sizeof(T)) : nullptr),
        rows_(rows),
        cols_(cols) {}
  // In memory that both the host and the engine can read.
  static EngineMatrix mapped(const Engine& engine, std::size_t rows, std::size_t cols) {
    EngineMatrix matrix;
    matrix.memory_ = rows != 0 && cols != 0 ? engine.allocate_mapped(rows * cols * sizeof(T)) : nullptr;
    matrix.rows_ = rows;
    matrix.cols_ = cols;
    return matrix;
  }
  EngineMatrix(EngineMatrix&&) noexcept = default;
  EngineMatrix& operator=(EngineMatrix&&) noexcept = default;

  MatrixView<T> view() { return {static_cast<T*>(memory_.get()), rows_, cols_}; }
  MatrixView<const T> view() const { return {static_cast<const T*>(memory_.get()), rows_, cols_}; }
  operator MatrixView<T>() { return view(); }              // NOLINT: a matrix converts to a view
  operator MatrixView<const T>() const { return view(); }  // NOLINT
  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  bool empty() const { return rows_ == 0 || cols_ == 0; }

 private:
  std::shared_ptr<void> memory_;
  std::size_t rows_ = 0, cols_ = 0;
};

// Short lists of several types that go to the engine in one upload: the plan of a step.
class Parcel {
 public:
  template <class U>
  struct Piece {
    std::size_t offset = 0, count = 0;
  };

  void clear() { used_ = 0; }
  template <class U>
  Piece<U> put(std::span<const U> values) {
    static_assert(std::is_trivially_copyable_v<U>);
    const std::size_t offset = (used_ + 15) / 16 * 16;
    used_ = offset + values.size_bytes();
    if (used_ > host_.cols()) {
      Matrix<std::byte> larger(1, 2 * used_);
      if (offset > 0) std::memcpy(larger.data(), host_.data(), offset);
      host_ = std::move(larger);
    }
    if (!values.empty()) std::memcpy(host_.data() + offset, values.data(), values.size_bytes());
    return {offset, values.size()};
  }
  void send(const Engine& engine) {
    base_ = host_.data();
    if (engine.on_host() || used_ == 0) return;
    if (far_.cols() < used_) far_ = EngineMatrix<std::byte>(engine, 1, host_.cols());
    upload<std::byte>(engine, {host_.data(), 1, used_}, {far_.data(), 1, used_});
    base_ = far_.data();
  }
  // In the engine's memory, after send().
  template <class U>
  std::span<const U> at(Piece<U> piece) const {
    return {reinterpret_cast<const U*>(base_ + piece.offset), piece.count};
  }

 private:
  Matrix<std::byte> host_;
  EngineMatrix<std::byte> far_;
  const std::byte* base_ = nullptr;
  std::size_t used_ = 0;
};

// The memory functions of every engine that computes in the host's memory.
template <class Base>
class OnHost : public Base {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) const override {
    return {allocate_zeroed(bytes), Release()};
  }
  void upload(ByteRows<const std::byte> host, ByteRows<std::byte> to, std::size_t width,
              std::size_t rows) const override {
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(to.data + r * to.stride, host.data + r * host.stride, width);
  }
  void download(ByteRows<const std::byte> from, ByteRows<std::byte> host, std::size_t width,
                std::size_t rows) const override {
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(host.data + r * host.stride, from.data + r * from.stride, width);
  }
  void duplicate(ByteRows<const std::byte> from, ByteRows<std::byte> to, std::size_t width,
                 std::size_t rows) const override {
    OnHost::upload(from, to, width, rows);
  }
  int place() const override { return 0; }
  std::uint64_t mark() const override { return 0; }
  void wait(std::uint64_t) const override {}  // every call has finished its work when it returns
  std::shared_ptr<void> allocate_mapped(std::size_t bytes) const override { return allocate(bytes); }
  std::size_t room() const override { return std::numeric_limits<std::size_t>::max(); }
  std::size_t steps_ahead() const override { return 1; }
  Engine::Blocks blocks() const override { return {512, true, false}; }
  std::unique_lock<std::mutex> turn() const override { return {}; }
};

inline const Engine& host_engine() {
  static const OnHost<Engine> engine;
  return engine;
}

}  // namespace lacuna
