#include "base/tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace lacuna {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

std::size_t element_size(const std::string& type) {
  if (type == "F64" || type == "I64" || type == "U64") return 8;
  if (type == "F32" || type == "I32" || type == "U32") return 4;
  if (type == "BF16" || type == "F16" || type == "I16" || type == "U16") return 2;
  if (type == "I8" || type == "U8" || type == "BOOL") return 1;
  return 0;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

template <class T>
const char* type_name();
template <>
const char* type_name<float>() { return "F32"; }
template <>
const char* type_name<double>() { return "F64"; }
template <>
const char* type_name<std::uint8_t>() { return "U8"; }
template <>
const char* type_name<std::uint32_t>() { return "U32"; }

template <class T>
Tensor borrow(MatrixView<const T> matrix) {
  const bool gaps = matrix.rows > 1 && matrix.stride != matrix.cols;
  const std::size_t reach = matrix.empty() ? 0 : (matrix.rows - 1) * matrix.stride + matrix.cols;
  return {type_name<T>(),
          {matrix.rows, matrix.cols},
          std::as_bytes(std::span(matrix.data, reach)),
          gaps ? matrix.stride * sizeof(T) : 0,
          nullptr};
}
template <class T>
Tensor borrow(std::span<const T> values) {
  return {type_name<T>(), {values.size()}, std::as_bytes(values), 0, nullptr};
}

// The runs of memory that hold the bytes of a tensor.
template <class F>
void each_run(const Tensor& tensor, F&& use) {
  if (tensor.stride == 0) return use(tensor.bytes);
  const std::size_t row = tensor.shape[1] * element_size(tensor.type);
  for (std::size_t i = 0; i < tensor.shape[0]; ++i) use(tensor.bytes.subspan(i * tensor.stride, row));
}

template <class T>
std::vector<T> values_of(const Tensor& tensor, const std::string& path, const std::string& name) {
  if (tensor.type != type_name<T>())
    fail(Exit::data, "{}: tensor '{}' has type {}, expected {}", path, name, tensor.type, type_name<T>());
  std::vector<T> values(size_of(tensor) / sizeof(T));
  std::size_t at = 0;
  each_run(tensor, [&](Bytes run) {
    if (!run.empty()) std::memcpy(values.data() + at, run.data(), run.size());
    at += run.size() / sizeof(T);
  });
  return values;
}

template <class T>
void copy_out(const Tensor& tensor, const std::string& path, const std::string& name, MatrixView<T> out) {
  const std::vector<std::uint64_t> wanted = {out.rows, out.cols};
  const bool row = tensor.shape.size() == 1 && out.rows == 1 && tensor.shape[0] == out.cols;
  if (tensor.type != type_name<T>() || (tensor.shape != wanted && !row))
    fail(Exit::data, "{}: tensor '{}' is {} {}, expected {} {}", path, name, tensor.type, shape_text(tensor.shape),
         type_name<T>(), shape_text(wanted));
  const std::size_t row_bytes = out.cols * sizeof(T), stride = tensor.stride == 0 ? row_bytes : tensor.stride;
  for (std::size_t i = 0; i < out.rows; ++i)
    if (out.cols) std::memcpy(out.row(i).data(), tensor.bytes.data() + i * stride, row_bytes);
}

}  // namespace

std::uint64_t size_of(const Tensor& tensor) {
  std::uint64_t size = element_size(tensor.type);
  for (const std::uint64_t extent : tensor.shape) size *= extent;
  return size;
}

std::vector<std::byte> packed(const Tensor& tensor) {
  std::vector<std::byte> bytes;
  bytes.reserve(size_of(tensor));
  each_run(tensor, [&](Bytes run) { bytes.insert(bytes.end(), run.begin(), run.end()); });
  return bytes;
}

void Tensors::put(const std::string& name, MatrixView<const float> matrix) { tensors_[name] = borrow(matrix); }
void Tensors::put(const std::string& name, MatrixView<const double> matrix) { tensors_[name] = borrow(matrix); }
void Tensors::put(const std::string& name, std::span<const float> values) { tensors_[name] = borrow(values); }
void Tensors::put(const std::string& name, std::span<const std::uint8_t> values) { tensors_[name] = borrow(values); }
void Tensors::put(const std::string& name, std::span<const std::uint32_t> values) { tensors_[name] = borrow(values); }

void Tensors::put_copy(const std::string& name, MatrixView<const float> matrix) {
  auto owner = std::make_shared<Matrix<float>>(matrix.rows, matrix.cols);
  owner->copy_from(matrix);
  Tensor tensor = borrow(std::as_const(*owner).view());
  tensor.owner = owner;
  tensors_[name] = std::move(tensor);
}

void Tensors::put_all(const std::string& prefix, const Tensors& from) {
  for (const auto& [name, tensor] : from.tensors_) tensors_[prefix + name] = tensor;
}

Tensors Tensors::part(const std::string& prefix) const {
  Tensors result;
  result.path_ = path_;
  for (auto at = tensors_.lower_bound(prefix); at != tensors_.end() && at->first.starts_with(prefix); ++at)
    result.tensors_[at->first.substr(prefix.size())] = at->second;
  return result;
}

const Tensor& Tensors::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(Exit::data, "{}: has no tensor '{}'", path_, name);
  return found->second;
}

void Tensors::get(const std::string& name, MatrixView<float> out) const { copy_out(at(name), path_, name, out); }
void Tensors::get(const std::string& name, MatrixView<double> out) const { copy_out(at(name), path_, name, out); }

Matrix<float> Tensors::matrix(const std::string& name) const {
  const Tensor& tensor = at(name);
  if (tensor.shape.size() != 2)
    fail(Exit::data, "{}: tensor '{}' has shape {}, expected two dimensions", path_, name, shape_text(tensor.shape));
  Matrix<float> result(tensor.shape[0], tensor.shape[1]);
  get(name, result.view());
  return result;
}

std::vector<float> Tensors::floats(const std::string& name) const { return values_of<float>(at(name), path_, name); }
std::vector<std::uint8_t> Tensors::bytes(const std::string& name) const {
  return values_of<std::uint8_t>(at(name), path_, name);
}
std::vector<std::uint32_t> Tensors::words(const std::string& name) const {
  return values_of<std::uint32_t>(at(name), path_, name);
}

template <class Sink>
void Tensors::write_to(Sink&& sink) const {
  nlohmann::json header = nlohmann::json::object();
  header["__metadata__"] = {{"lacuna", metadata.dump()}};
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors_) {
    header[name] = {{"dtype", tensor.type},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + size_of(tensor)}}};
    offset += size_of(tensor);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  sink(std::as_bytes(std::span(&length, 1)));
  sink(as_bytes(text));
  for (const auto& [name, tensor] : tensors_) each_run(tensor, sink);
}

void Tensors::write(const std::string& path) const {
  AtomicFile file(path);
  write_to([&](Bytes run) { file.write(run); });
  file.commit();
}

std::string Tensors::text() const {
  std::string result;
  write_to([&](Bytes run) { result.append(reinterpret_cast<const char*>(run.data()), run.size()); });
  return result;
}

Tensors Tensors::read(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse(file, file->bytes(), path);
}

Tensors Tensors::parse(std::shared_ptr<const void> owner, Bytes bytes, const std::string& where) {
  using nlohmann::json;
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length))
    fail(Exit::data, "{}: {} bytes, a safetensors file has at least 8", where, bytes.size());
  if (bytes.size() > sizeof(length) && bytes[sizeof(length)] != std::byte{'{'})
    fail(Exit::data, "{}: is not a safetensors file: byte 8 is not '{{'", where);
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > bytes.size() - sizeof(length) || length > (std::uint64_t{100} << 20))
    fail(Exit::data, "{}: byte 0: the header should have {} bytes, the file has {}", where, length, bytes.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof(length), length);
  const Bytes payload = bytes.subspan(sizeof(length) + length);
  // The parser's own depth is bounded by the callback: a model's header is flat, hostile ones nest without end.
  const json header = json::parse(
      text.begin(), text.end(), [](int depth, json::parse_event_t, json&) { return depth <= 8; }, false);
  if (!header.is_object()) fail(Exit::data, "{}: byte 8: the header is not a JSON object", where);
  Tensors result;
  result.path_ = where;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      const auto own = entry.is_object() ? entry.find("lacuna") : entry.end();
      if (own == entry.end() || !own->is_string()) continue;
      result.metadata = json::parse(own->get<std::string>(), nullptr, false);
      if (!result.metadata.is_object()) fail(Exit::data, "{}: the metadata 'lacuna' is not a JSON object", where);
      continue;
    }
    const auto bad = [&, &tensor_name = name](const char* what) {
      fail(Exit::data, "{}: tensor '{}': {}", where, tensor_name, what);
    };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
        !entry["shape"].is_array() || !entry.contains("data_offsets") || !entry["data_offsets"].is_array() ||
        entry["data_offsets"].size() != 2)
      bad("needs dtype, shape and two data_offsets");
    Tensor tensor;
    tensor.type = entry["dtype"].get<std::string>();
    std::uint64_t size = element_size(tensor.type);
    if (size == 0) bad("unknown dtype");
    for (const auto& extent : entry["shape"]) {
      if (!extent.is_number_unsigned()) bad("a shape contains non-negative whole numbers");
      tensor.shape.push_back(extent.get<std::uint64_t>());
      if (__builtin_mul_overflow(size, tensor.shape.back(), &size)) bad("the shape is too large");
    }
    const auto &low = entry["data_offsets"][0], &high = entry["data_offsets"][1];
    if (!low.is_number_unsigned() || !high.is_number_unsigned()) bad("data_offsets are non-negative whole "
                                                                     "numbers");
    const auto begin = low.get<std::uint64_t>(), end = high.get<std::uint64_t>();
    if (begin > end || end > payload.size() || end - begin != size)
      fail(Exit::data, "{}: tensor '{}': bytes {} to {} do not hold {} bytes within the file's {}", where, name, begin,
           end, size, payload.size());
    tensor.bytes = payload.subspan(begin, size);
    tensor.owner = owner;
    result.tensors_[name] = std::move(tensor);
  }
  return result;
}

}  // namespace lacuna
