// Builds an ONNX graph and writes its file (opset 17, IR 8). Values have names, generated ones except for inputs and
// outputs. Matrices are borrowed until write() returns.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/matrix.h"
#include "export/protobuf.h"

namespace lacuna {

enum class OnnxType : std::uint64_t { real = 1, integer = 7, boolean = 9 };

struct OnnxAttribute {
  enum class Kind { integer, real, integers } kind;
  std::string name;
  std::vector<std::int64_t> integers = {};
  float number = 0;
  OnnxAttribute(std::string n, std::int64_t value)
      : kind(Kind::integer), name(std::move(n)), integers{value} {}
  OnnxAttribute(std::string n, float value) : kind(Kind::real), name(std::move(n)), number(value) {}
  OnnxAttribute(std::string n, std::vector<std::int64_t> values)
      : kind(Kind::integers), name(std::move(n)), integers(std::move(values)) {}
};

class OnnxGraph {
 public:
  using Value = std::string;

  // (batch, columns) real numbers. Exit::mismatch if the name is taken.
  Value input(const std::string& name, std::size_t columns);
  // The result of a standard operation. `hint` becomes part of its name, for people who look at the graph.
  Value node(const std::string& operation, const std::vector<Value>& inputs, const std::string& hint,
             const std::vector<OnnxAttribute>& attributes = {}) {
    return nodes(operation, inputs, {hint}, attributes).front();
  }
  // The same for an operation with several results.
  std::vector<Value> nodes(const std::string& operation, const std::vector<Value>& inputs,
                           const std::vector<std::string>& hints,
                           const std::vector<OnnxAttribute>& attributes = {});
  // Constants: a borrowed matrix without gaps between its rows, the same as one row (columns), single numbers.
  Value matrix(MatrixView<const float> values, const std::string& hint);
  Value row(std::span<const float> values, const std::string& hint);
  Value number(float value);
  Value integers(const std::vector<std::int64_t>& values);  // one-dimensional
  // (batch, columns), under this very name: it must not be that of an input.
  void output(const std::string& name, const Value& value, OnnxType type, std::size_t columns);
  void note(const std::string& key, const std::string& text);  // metadata

  // Atomic. Exit::failed if the file would be larger than protocol buffers may be (2 GiB).
  void write(const std::string& path) const;

 private:
  struct Constant {
    ProtoMessage head;  // a tensor up to its bytes
    Bytes bytes;
    std::string own;  // the bytes of small tensors
    std::string_view raw() const {
      return own.empty() ? std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
                         : std::string_view(own);
    }
  };
  std::string unique(const std::string& hint);
  void add_node(const std::string& operation, const std::vector<Value>& inputs,
                const std::vector<Value>& results, const std::vector<OnnxAttribute>& attributes);
  Value constant(const std::string& hint, OnnxType type, std::vector<std::size_t> shape, Bytes bytes,
                 bool copy);
  static ProtoMessage value_info(const std::string& name, OnnxType type, std::size_t columns);

  std::set<std::string> names_ = {"scores", "probabilities", "decided"};
  std::map<std::string, Value> numbers_;  // single numbers, each once
  ProtoMessage nodes_, inputs_, outputs_, notes_;
  std::vector<Constant> constants_;
};

}  // namespace lacuna
