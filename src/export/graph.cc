#include "export/graph.h"

#include <cassert>

#include "base/error.h"

#ifndef LACUNA_VERSION
#define LACUNA_VERSION "unknown"
#endif

namespace lacuna {
namespace {

constexpr std::uint64_t kIr = 8, kOpset = 17, kMostBytes = (std::uint64_t{1} << 31) - 1;

// Field numbers of onnx.proto.
enum ModelField : std::uint32_t {
  kModelIr = 1,
  kModelProducer = 2,
  kModelVersion = 3,
  kModelGraph = 7,
  kModelOpset = 8,
  kModelNotes = 14
};
enum GraphField : std::uint32_t {
  kGraphNode = 1,
  kGraphName = 2,
  kGraphConstant = 5,
  kGraphInput = 11,
  kGraphOutput = 12
};
enum NodeField : std::uint32_t {
  kNodeInput = 1,
  kNodeOutput = 2,
  kNodeName = 3,
  kNodeOperation = 4,
  kNodeAttribute = 5
};
enum AttributeField : std::uint32_t {
  kAttributeName = 1,
  kAttributeReal = 2,
  kAttributeInteger = 3,
  kAttributeIntegers = 8,
  kAttributeKind = 20
};
enum AttributeKind : std::uint64_t { kKindReal = 1, kKindInteger = 2, kKindIntegers = 7 };
enum TensorField : std::uint32_t { kTensorDims = 1, kTensorType = 2, kTensorName = 8, kTensorRaw = 9 };

}  // namespace

std::string OnnxGraph::unique(const std::string& hint) {
  std::string name = hint;
  for (std::size_t k = 2; !names_.insert(name).second; ++k) name = fmt::format("{}_{}", hint, k);
  return name;
}

ProtoMessage OnnxGraph::value_info(const std::string& name, OnnxType type, std::size_t columns) {
  const ProtoMessage batch = ProtoMessage().text(2, "batch"), width = ProtoMessage().number(1, columns);
  const ProtoMessage shape = ProtoMessage().message(1, batch).message(1, width);
  const ProtoMessage tensor = ProtoMessage().number(1, static_cast<std::uint64_t>(type)).message(2, shape);
  return ProtoMessage().text(1, name).message(2, ProtoMessage().message(1, tensor));
}

OnnxGraph::Value OnnxGraph::input(const std::string& name, std::size_t columns) {
  if (!names_.insert(name).second)
    fail(Exit::mismatch,
         "view '{}' has the name of an output (scores, probabilities, decided): rename it in the data and "
         "train "
         "again",
         name);
  inputs_.message(kGraphInput, value_info(name, OnnxType::real, columns));
  return name;
}

std::vector<OnnxGraph::Value> OnnxGraph::nodes(const std::string& operation, const std::vector<Value>& inputs,
                                               const std::vector<std::string>& hints,
                                               const std::vector<OnnxAttribute>& attributes) {
  std::vector<Value> results;
  for (const std::string& hint : hints) results.push_back(unique(hint));
  add_node(operation, inputs, results, attributes);
  return results;
}

void OnnxGraph::add_node(const std::string& operation, const std::vector<Value>& inputs,
                         const std::vector<Value>& results, const std::vector<OnnxAttribute>& attributes) {
  ProtoMessage node;
  for (const Value& input : inputs) node.text(kNodeInput, input);
  for (const Value& result : results) node.text(kNodeOutput, result);
  node.text(kNodeName, results.front()).text(kNodeOperation, operation);
  for (const OnnxAttribute& attribute : attributes) {
    ProtoMessage message;
    message.text(kAttributeName, attribute.name);
    switch (attribute.kind) {
      case OnnxAttribute::Kind::integer:
        message.number(kAttributeInteger, static_cast<std::uint64_t>(attribute.integers[0]))
            .number(kAttributeKind, kKindInteger);
        break;
      case OnnxAttribute::Kind::real:
        message.real(kAttributeReal, attribute.number).number(kAttributeKind, kKindReal);
        break;
      case OnnxAttribute::Kind::integers:
        for (const std::int64_t value : attribute.integers)
          message.number(kAttributeIntegers, static_cast<std::uint64_t>(value));
        message.number(kAttributeKind, kKindIntegers);
        break;
    }
    node.message(kNodeAttribute, message);
  }
  nodes_.message(kGraphNode, node);
}

OnnxGraph::Value OnnxGraph::constant(const std::string& hint, OnnxType type, std::vector<std::size_t> shape,
                                     Bytes bytes, bool copy) {
  const Value name = unique(hint);
  Constant& constant = constants_.emplace_back();
  for (const std::size_t size : shape) constant.head.number(kTensorDims, size);
  constant.head.number(kTensorType, static_cast<std::uint64_t>(type)).text(kTensorName, name);
  if (copy)
    constant.own.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  else
    constant.bytes = bytes;
  constant.head.head(kTensorRaw, bytes.size());
  return name;
}

OnnxGraph::Value OnnxGraph::matrix(MatrixView<const float> values, const std::string& hint) {
  assert(values.stride == values.cols || values.rows <= 1);
  return constant(hint, OnnxType::real, {values.rows, values.cols},
                  std::as_bytes(std::span(values.data, values.rows * values.cols)), false);
}

OnnxGraph::Value OnnxGraph::row(std::span<const float> values, const std::string& hint) {
  return constant(hint, OnnxType::real, {values.size()}, std::as_bytes(values), false);
}

OnnxGraph::Value OnnxGraph::number(float value) {
  const std::string text = fmt::format("{}", value);
  auto [at, is_new] = numbers_.try_emplace(text);
  if (is_new)
    at->second = constant("number " + text, OnnxType::real, {}, std::as_bytes(std::span(&value, 1)), true);
  return at->second;
}

OnnxGraph::Value OnnxGraph::integers(const std::vector<std::int64_t>& values) {
  return constant("integers", OnnxType::integer, {values.size()}, std::as_bytes(std::span(values)), true);
}

void OnnxGraph::output(const std::string& name, const Value& value, OnnxType type, std::size_t columns) {
  add_node("Identity", {value}, {name}, {});
  outputs_.message(kGraphOutput, value_info(name, type, columns));
}

void OnnxGraph::note(const std::string& key, const std::string& text) {
  notes_.message(kModelNotes, ProtoMessage().text(1, key).text(2, text));
}

void OnnxGraph::write(const std::string& path) const {
  const ProtoMessage before = ProtoMessage().text(kGraphName, "lacuna");
  std::vector<ProtoMessage> heads;  // of each constant as a field of the graph
  std::uint64_t length =
      nodes_.bytes().size() + before.bytes().size() + inputs_.bytes().size() + outputs_.bytes().size();
  for (const Constant& constant : constants_) {
    const std::uint64_t bytes = constant.head.bytes().size() + constant.raw().size();
    length += heads.emplace_back().head(kGraphConstant, bytes).bytes().size() + bytes;
  }
  ProtoMessage model;
  model.number(kModelIr, kIr).text(kModelProducer, "lacuna").text(kModelVersion, LACUNA_VERSION);
  model.message(kModelOpset, ProtoMessage().text(1, "").number(2, kOpset));
  model.head(kModelGraph, length);
  const std::uint64_t total = model.bytes().size() + length + notes_.bytes().size();
  if (total > kMostBytes)
    fail(Exit::failed,
         "{}: would have {} bytes, an ONNX file may have {}; train a smaller network (--width, "
         "--encoder-widths, "
         "--members)",
         path, total, kMostBytes);
  AtomicFile file(path);
  file.write(model.bytes());
  file.write(nodes_.bytes());
  file.write(before.bytes());
  for (std::size_t k = 0; k < constants_.size(); ++k) {
    file.write(heads[k].bytes());
    file.write(constants_[k].head.bytes());
    file.write(constants_[k].raw());
  }
  for (const auto* part : {&inputs_, &outputs_, &notes_}) file.write(part->bytes());
  file.commit();
}

}  // namespace lacuna
