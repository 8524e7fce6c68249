#include "serve/infer_request.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "serve/message.h"
#include "serve/scan.h"

namespace lacuna::serve {
namespace {

// An input tensor as the request describes it, before it is known to fit.
struct Tensor {
  std::string name, type;
  std::vector<std::uint64_t> shape;
  bool has_shape = false, has_data = false, null = false;
  std::optional<std::uint64_t> bytes;  // of the binary extension
  std::vector<float> data;
  std::vector<std::size_t> gaps;  // positions in data where the list says null instead of a number or a row
  // Data that are nested: the first row, and the first one with another number of numbers.
  struct Row {
    std::size_t place, width;
  };
  std::optional<Row> first, odd;
  std::size_t lists = 0;
};

// Numbers flat or by rows. A null in the list is remembered by its place: a number or a row is missing there.
void read_data(JsonScanner& scan, Tensor& tensor, std::size_t most) {
  if (scan.first_of_list() != '[' && scan.first_of_list() != 'n') return scan.numbers(tensor.data, most);
  std::size_t numbers = 0;
  scan.array([&] {
    if (tensor.gaps.size() + numbers == most)
      refuse(413, "more than {} numbers; send fewer rows in a request", most);
    if (scan.peek() == 'n' && scan.null()) {
      tensor.gaps.push_back(tensor.data.size());
    } else if (scan.peek() == '[') {
      const std::size_t before = tensor.data.size(), row = tensor.gaps.size() + tensor.lists++;
      scan.numbers(tensor.data, most);
      const std::size_t width = tensor.data.size() - before;
      if (!tensor.first) tensor.first = {row, width};
      if (width != tensor.first->width && !tensor.odd) tensor.odd = {row, width};
    } else {
      tensor.data.push_back(scan.number());
      ++numbers;
    }
    if (numbers > 0 && tensor.lists > 0) scan.fail("numbers and rows of numbers in one list");
  });
}

// Nested data have the shape that the request says they have.
void check_nesting(const Tensor& tensor) {
  if (!tensor.first) return;
  const std::uint64_t rows = tensor.shape[0], columns = tensor.shape[1];
  const nlohmann::json shape = {rows, columns};
  if (tensor.odd) {
    const Tensor::Row& wrong = tensor.first->width == columns ? *tensor.odd : *tensor.first;
    throw Refusal(400,
                  fmt::format("input '{}': row {} of its data has {} numbers, its shape [{}, {}] says {}",
                              tensor.name, wrong.place, wrong.width, rows, columns, columns),
                  {{"view", tensor.name}, {"row", wrong.place}, {"columns", wrong.width}, {"shape", shape}});
  }
  const std::size_t count = tensor.lists + tensor.gaps.size(), width = tensor.first->width;
  if (count == rows && width == columns) return;
  throw Refusal(
      400,
      fmt::format("input '{}': its data are nested as [{}, {}], its shape is [{}, {}]; send rows of {} "
                  "numbers, or one flat list",
                  tensor.name, count, width, rows, columns, columns),
      {{"view", tensor.name}, {"nested", {count, width}}, {"shape", shape}});
}

Tensor read_tensor(JsonScanner& scan, const Limits& limits) {
  Tensor tensor;
  scan.object([&](const std::string& key) {
    if (key == "name") {
      tensor.name = scan.string();
    } else if (key == "datatype") {
      tensor.type = scan.string();
    } else if (key == "shape") {
      tensor.has_shape = true;
      tensor.shape.clear();
      scan.array([&] {
        if (tensor.shape.size() == 8) scan.fail("a shape of more than 8 dimensions");
        tensor.shape.push_back(scan.whole());
      });
    } else if (key == "parameters") {
      scan.object([&](const std::string& parameter) {
        if (parameter == "binary_data_size")
          tensor.bytes = scan.whole();
        else
          scan.skip();
      });
    } else if (key == "data") {
      if (tensor.has_data) scan.fail("'data' twice in one input");
      tensor.has_data = true;
      tensor.null = scan.peek() == 'n' && scan.null();
      if (tensor.null) return;
      if (tensor.has_shape && tensor.shape.size() == 2)  // no more than the text can hold
        tensor.data.reserve(std::min<std::size_t>(tensor.shape[0] * tensor.shape[1], scan.left() / 2));
      read_data(scan, tensor, static_cast<std::size_t>(limits.body_bytes) / sizeof(float));
    } else {
      scan.skip();
    }
  });
  return tensor;
}

InferOutput::Kind output_kind(const std::string& name) {
  for (std::size_t k = 0; k < std::size(kOutputNames); ++k)
    if (name == kOutputNames[k]) return static_cast<InferOutput::Kind>(k);
  refuse(400, "there is no output '{}' (there are scores, probabilities, decided)", name);
}

[[noreturn]] void refuse_size(const ModelShape& model, std::size_t v, std::uint64_t columns) {
  const auto& view = model.views[v];
  throw Refusal(400,
                fmt::format("view '{}' has {} columns, model '{}' expects {}; send shape [rows, {}]",
                            view.name, columns, model.name, view.columns, view.columns),
                {{"view", view.name}, {"columns", columns}, {"expected", view.columns}});
}

std::size_t known_view(const ModelShape& model, const std::string& name) {
  const std::size_t v = model.view_index(name);
  if (v < model.views.size()) return v;
  std::vector<std::string> known;
  for (const auto& view : model.views) known.push_back(view.name);
  throw Refusal(400,
                fmt::format("model '{}' has no view '{}'{} (it has {})", model.name, name,
                            did_you_mean(name, known), join(known, ", ")),
                {{"view", name}});
}

// A binary tensor: 32-bit numbers are used where they lie if that is a place for them.
const float* binary_floats(const Tensor& tensor, std::string_view bytes, std::vector<float>& memory) {
  static_assert(std::endian::native == std::endian::little);
  const std::size_t count = bytes.size() / (tensor.type == "FP64" ? sizeof(double) : sizeof(float));
  if (tensor.type == "FP32" && reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0)
    return reinterpret_cast<const float*>(bytes.data());
  memory.resize(count);
  if (tensor.type == "FP32") {
    std::memcpy(memory.data(), bytes.data(), bytes.size());
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      double value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof(double), sizeof(double));
      memory[i] = static_cast<float>(value);
      if (std::isinf(memory[i]) && std::isfinite(value))
        refuse(400, "view '{}', row {}: column {} is {}, beyond the range of float32", tensor.name,
               i / tensor.shape[1], i % tensor.shape[1], value);
    }
  }
  return memory.data();
}

// Checks one tensor against the model and gives its rows a place in `inference`.
void place(Tensor& tensor, std::string_view& binary, const ModelShape& model, const Limits& limits,
           Inference& inference, bool& rows_known) {
  const std::size_t v = known_view(model, tensor.name);
  if (!tensor.has_shape || tensor.shape.size() != 2)
    refuse(400, "input '{}' has {} dimensions; send shape [rows, {}]", tensor.name, tensor.shape.size(),
           model.views[v].columns);
  const std::uint64_t rows = tensor.shape[0];
  if (tensor.shape[1] != model.views[v].columns) refuse_size(model, v, tensor.shape[1]);
  if (rows > static_cast<std::uint64_t>(limits.rows))
    refuse(413, "input '{}' has {} rows, a request may have {}; send it in parts", tensor.name, rows,
           limits.rows);
  if (rows_known && rows != inference.rows.count)
    refuse(400, "input '{}' has {} rows, the inputs before it have {}", tensor.name, rows,
           inference.rows.count);
  inference.rows.count = rows;
  rows_known = true;
  const std::uint64_t size = rows * tensor.shape[1];
  auto& memory = inference.memory[v];
  if (tensor.bytes) {
    if (tensor.has_data) refuse(400, "input '{}' has both 'data' and 'binary_data_size'", tensor.name);
    if (tensor.type != "FP32" && tensor.type != "FP64")
      refuse(400, "input '{}' has datatype '{}'; binary tensors are FP32 or FP64", tensor.name, tensor.type);
    const std::uint64_t expected = size * (tensor.type == "FP64" ? 8 : 4);
    if (*tensor.bytes != expected)
      refuse(400, "input '{}' has binary_data_size {}, its shape [{}, {}] of {} needs {}", tensor.name,
             *tensor.bytes, rows, tensor.shape[1], tensor.type, expected);
    if (binary.size() < expected)
      refuse(400, "input '{}' needs {} bytes behind the JSON, {} are left", tensor.name, expected,
             binary.size());
    inference.rows.features[v] = binary_floats(tensor, binary.substr(0, expected), memory);
    binary.remove_prefix(expected);
    return;
  }
  if (!tensor.has_data) refuse(400, "input '{}' has neither 'data' nor 'binary_data_size'", tensor.name);
  if (tensor.null) return;  // missing in all rows
  if (tensor.type == "BYTES" || tensor.type == "BOOL" || tensor.type.empty())
    refuse(400, "input '{}' has datatype '{}'; send FP32", tensor.name, tensor.type);
  check_nesting(tensor);
  // A null among numbers is one number, among rows it is a whole row; among nulls alone their count tells.
  if (!tensor.gaps.empty()) {
    const bool of_rows = tensor.first || (tensor.data.empty() && tensor.gaps.size() == rows);
    const std::size_t each = of_rows ? tensor.shape[1] : 1;
    if (tensor.data.size() + tensor.gaps.size() * each == size) {
      std::vector<float> filled;
      filled.reserve(size);
      std::size_t from = 0;
      for (const std::size_t gap : tensor.gaps) {
        filled.insert(filled.end(), tensor.data.begin() + static_cast<std::ptrdiff_t>(from),
                      tensor.data.begin() + static_cast<std::ptrdiff_t>(gap));
        filled.insert(filled.end(), each, std::numeric_limits<float>::quiet_NaN());
        from = gap;
      }
      filled.insert(filled.end(), tensor.data.begin() + static_cast<std::ptrdiff_t>(from), tensor.data.end());
      tensor.data.swap(filled);
    }
  }
  if (tensor.data.size() != size)
    refuse(400, "input '{}' has {} numbers, its shape [{}, {}] needs {}", tensor.name, tensor.data.size(),
           rows, tensor.shape[1], size);
  memory = std::move(tensor.data);
  inference.rows.features[v] = memory.data();
}

// Marks the rows of view v that are there: those of NaN alone are missing. Refuses rows of which a part is NaN or infinite.
void find_present(const ModelShape& model, std::size_t v, Rows& rows) {
  const std::size_t columns = model.views[v].columns, views = model.views.size();
  const float* const all = rows.features[v];
  if (all == nullptr) return;
  bool any = false;
  for (std::size_t i = 0; i < rows.count; ++i) {
    const float* const row = all + i * columns;
    std::uint32_t wild = 0;  // stays 0 as long as every number is finite
    for (std::size_t j = 0; j < columns; ++j) {
      constexpr std::uint32_t kExponent = 0x7f800000;
      wild |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(row[j]) & kExponent) == kExponent);
    }
    if (wild == 0) {
      rows.present[i * views + v] = 1;
      any = true;
      continue;
    }
    std::size_t nan = 0, wrong = columns;
    for (std::size_t j = 0; j < columns; ++j) {
      nan += std::isnan(row[j]);
      if (wrong == columns && !std::isfinite(row[j])) wrong = j;
    }
    if (nan == columns) continue;
    throw Refusal(
        400,
        fmt::format("view '{}', row {}: column {} is not a finite number; send finite numbers, or NaN in all "
                    "{} columns for a missing view",
                    model.views[v].name, i, wrong, columns),
        {{"view", model.views[v].name}, {"row", i}, {"column", wrong}});
  }
  if (!any) rows.features[v] = nullptr;
}

}  // namespace

Inference read_inference(std::string_view body, std::optional<std::size_t> json_bytes,
                         const ModelShape& model, const Limits& limits) {
  if (json_bytes && *json_bytes > body.size())
    refuse(400, "Inference-Header-Content-Length is {}, the body has {} bytes", *json_bytes, body.size());
  std::string_view binary = json_bytes ? body.substr(*json_bytes) : std::string_view();
  JsonScanner scan(body.substr(0, json_bytes.value_or(body.size())));
  Inference inference;
  const std::size_t views = model.views.size();
  inference.rows.features.resize(views);
  inference.memory.resize(views);
  std::vector<Tensor> tensors;
  bool binary_output = false, has_inputs = false;
  std::vector<std::pair<InferOutput::Kind, std::optional<bool>>> outputs;
  scan.object([&](const std::string& key) {
    if (key == "id") {
      inference.id = scan.string();
    } else if (key == "parameters") {
      scan.object([&](const std::string& parameter) {
        if (parameter == "binary_data_output")
          binary_output = scan.boolean();
        else
          scan.skip();
      });
    } else if (key == "inputs") {
      has_inputs = true;
      scan.array([&] {
        if (tensors.size() == views)
          refuse(400, "more inputs than the {} views of model '{}'", views, model.name);
        tensors.push_back(read_tensor(scan, limits));
      });
    } else if (key == "outputs") {
      scan.array([&] {
        std::optional<bool> own;
        std::string name;
        scan.object([&](const std::string& member) {
          if (member == "name") {
            name = scan.string();
          } else if (member == "parameters") {
            scan.object([&](const std::string& parameter) {
              if (parameter == "binary_data")
                own = scan.boolean();
              else
                scan.skip();
            });
          } else {
            scan.skip();
          }
        });
        if (outputs.size() == 64) refuse(400, "more than 64 outputs");
        outputs.emplace_back(output_kind(name), own);
      });
    } else {
      scan.skip();
    }
  });
  scan.end();
  if (!has_inputs || tensors.empty()) refuse(400, "the request has no 'inputs'; send at least one view");
  bool rows_known = false;
  std::vector<bool> seen(views);
  for (Tensor& tensor : tensors) {
    const std::size_t v = known_view(model, tensor.name);
    if (seen[v]) refuse(400, "input '{}' occurs twice", tensor.name);
    seen[v] = true;
    place(tensor, binary, model, limits, inference, rows_known);
  }
  if (!binary.empty()) refuse(400, "{} bytes follow the tensors that the JSON describes", binary.size());
  if (inference.rows.count == 0) refuse(400, "the request has no rows");
  inference.rows.present.assign(inference.rows.count * views, 0);
  for (std::size_t v = 0; v < views; ++v) find_present(model, v, inference.rows);
  if (outputs.empty())
    for (const auto kind :
         {InferOutput::Kind::scores, InferOutput::Kind::probabilities, InferOutput::Kind::decided})
      outputs.emplace_back(kind, std::nullopt);
  for (const auto& [kind, own] : outputs) inference.outputs.push_back({kind, own.value_or(binary_output)});
  return inference;
}

}  // namespace lacuna::serve
