#include "fuzz_forms.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/options.h"
#include "base/tensors.h"
#include "base/text.h"
#include "data/csv_items.h"
#include "data/folds.h"
#include "data/jsonl.h"
#include "data/names.h"
#include "data/readers.h"
#include "serve/infer_request.h"
#include "serve/message.h"

namespace lacuna {
namespace {

void put(const std::string& path, std::span<const unsigned char> bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
    throw std::runtime_error("cannot write " + path);
  std::fclose(file);
}

void put(const std::string& path, const std::string& text) {
  put(path, std::span(reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

// Reads a data set and uses everything in it, so that a sanitizer sees an unsound one.
Dataset read_and_use(const std::string& path, const ReadOptions& options = {}) {
  Dataset data = read_dataset(path, options);
  data.check("after reading", options.allow_non_finite ? Dataset::Scan::shapes : Dataset::Scan::values);
  content_hash(data);
  return data;
}

// Folds and tensors that were read are written and read once more.
void read_folds_again(const std::string& path) {
  const Folds folds = read_folds(path);
  write_folds(folds, path);
  if (read_folds(path).hash() != folds.hash())
    throw std::logic_error("folds that were written are read as others");
}

void taken_or_refused(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void read_tensors_again(const std::string& path) {
  const Tensors tensors = Tensors::read(path);
  Tensors copy;
  for (const auto& [name, tensor] : tensors.all()) {
    taken_or_refused([&, &name = name] { copy.put_copy(name, tensors.matrix(name).view()); });
    taken_or_refused([&, &name = name] { tensors.floats(name); });
    taken_or_refused([&, &name = name] { tensors.bytes(name); });
    taken_or_refused([&, &name = name] { tensors.words(name); });
    taken_or_refused([&, &name = name, &shape = tensor.shape] {
      if (shape.size() != 2) return;
      Matrix<double> out(shape[0], shape[1]);
      tensors.get(name, out.view());
    });
  }
  copy.put_all("", tensors);
  copy.metadata = tensors.metadata;
  const auto text = std::make_shared<const std::string>(copy.text());
  const Tensors again = Tensors::parse(text, as_bytes(*text), "again");
  bool same = again.metadata == tensors.metadata && again.all().size() == tensors.all().size();
  for (const auto& [name, tensor] : tensors.all())
    same = same && again.has(name) && again.at(name).type == tensor.type &&
           again.at(name).shape == tensor.shape && packed(again.at(name)) == packed(tensor);
  if (!same) throw std::logic_error("tensors that were written are read as others");
  again.part("x");
}

// Options as on the command line: name=value, separated by blanks.
void set_all(Options& declared, std::string_view line) {
  for (const auto word : split(line, ' ')) {
    const auto at = word.find('=');
    if (at != word.npos)
      declared.set(std::string(word.substr(0, at)), std::string(word.substr(at + 1)), "fuzz");
  }
}

struct Reading {
  ReadOptions options;
  std::string to;  // the name of a data set that is written, and read once more
};

// Beside the options of all verbs those that only a verb itself sets.
Reading reading(std::string_view line, const std::string& folder) {
  Reading out;
  ReadOptions& options = out.options;
  Options declared;
  options.declare(declared);
  bool scores_only = false, predicts = false;
  declared.add("inspects", options.allow_non_finite, "");
  declared.add("scores-only", scores_only, "");
  declared.add("predicts", predicts, "");
  declared.add("several", options.allow_idle, "");
  declared.add("to", out.to, "").choices({"", "new", "new.npz", "new.mat", "new.csv", "new.h5mu"});
  set_all(declared, line);
  if (!options.label_file.empty()) options.label_file = folder + file_name(options.label_file);
  options.needs_views = !scores_only;
  options.needs_labels = !predicts;
  if (options.allow_non_finite || scores_only || predicts) out.to.clear();  // no values to be kept
  return out;
}

// Several files: a line of options, then for each file a line "=== name" and its bytes up to the next such line. What is
// read is the first file, or the folder that it lies in.
void read_files(std::string_view text, const std::string& folder) {
  constexpr std::string_view kBegin = "\n=== ";
  constexpr std::size_t kMostFiles = 8, kMostName = 40;
  const std::string inner = folder + "/files/";
  std::filesystem::remove_all(inner);
  std::filesystem::create_directories(inner + "set");
  const std::string_view line = text.substr(0, text.find('\n'));
  std::string path;
  for (std::size_t k = 0; k < kMostFiles; ++k) {
    const auto begin = text.find(kBegin);
    if (begin == text.npos) break;
    text.remove_prefix(begin + kBegin.size());
    const bool in_set = text.starts_with("set/");
    if (in_set) text.remove_prefix(4);
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view name = text.substr(0, end);
    if (name.empty() || name.size() > kMostName || name == "." || name == ".." || name == "set" ||
        name.find_first_of(std::string_view("/\0", 2)) != name.npos)
      fail(Exit::data, "no name of a file");
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string file = (inner + (in_set ? "set/" : "")).append(name);
    put(file, std::string(text.substr(0, text.find(kBegin))));
    if (path.empty()) path = in_set ? inner + "set" : file;
  }
  if (path.empty()) fail(Exit::data, "no file");
  const Reading how = reading(line, inner + (path.ends_with("/set") ? "set/" : ""));
  const Dataset data = read_and_use(path, how.options);
  if (how.to.empty()) return;
  write_dataset(data, inner + how.to);
  try {
    if (content_hash(read_dataset(inner + how.to)) != content_hash(data))
      throw std::logic_error("what was written is read as something else");
  } catch (const Error& error) {  // two columns that look like ids are refused, whoever wrote them
    if (how.to == "new.csv" && std::string_view(error.what()).find("looks like ids") != std::string::npos)
      return;
    throw std::logic_error("what was written is refused: " + std::string(error.what()));
  }
}

// A request to the server: the bytes of its JSON as a number on the first line (none: all of it), then its body.
bool read_request(std::span<const unsigned char> bytes) {
  static const serve::ModelShape model{"m", {{"a", 3}, {"b", 2}}};
  serve::Limits limits;
  limits.rows = 100;
  const auto line = std::ranges::find(bytes, '\n');
  if (line == bytes.end()) return false;
  const auto json_bytes = parse_int(std::string(bytes.begin(), line));
  const std::string body(line + 1, bytes.end());
  try {
    const auto inference = serve::read_inference(
        body,
        json_bytes && *json_bytes >= 0 ? std::optional(static_cast<std::size_t>(*json_bytes)) : std::nullopt,
        model, limits);
    double sum = 0;
    for (std::size_t v = 0; v < model.views.size(); ++v)
      for (std::size_t i = 0; i < inference.rows.count; ++i)
        for (std::size_t j = 0; inference.rows.present[i * 2 + v] != 0 && j < model.views[v].columns; ++j)
          sum += static_cast<double>(inference.rows.features[v][i * model.views[v].columns + j]);
    if (!std::isfinite(sum)) throw std::logic_error("a number that is not finite was taken");
    return true;
  } catch (const serve::Refusal&) {
    return false;
  }
}

// Lines of a stream, one after the other: each is an item or an error of its own. True if all were taken.
bool read_lines_of_items(std::string_view text, bool json) {
  const std::vector<ViewShape> views = {{"rna", 3, {"g1", "g2", "g3"}, {}},
                                        {"img", 2, {"a", "b"}, {1, 2}},
                                        {"bits", 40, numbered_names("c", 40), {}}};
  CsvItemsOptions options;
  if (!json && (text.starts_with("id-column=") || text.starts_with("header="))) {
    const auto end = std::min(text.find('\n'), text.size());
    Options declared;
    declared.add("id-column", options.id_column, "");
    declared.add("header", options.header, "").choices({"auto", "yes", "no"});
    set_all(declared, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  ItemBlock block(views, 2, {"beach", "city", "s\xC3\xBC\xC3\x9F"});
  bool all = true;
  std::optional<CsvItems> table;
  for (std::size_t line = 0; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!json && line == 0) {
      table.emplace(one, views, options);
      table->told();
      if (table->has_header()) {
        table->see_first_item(text.substr(0, text.find('\n')));
        continue;
      }
    }
    const std::size_t row = line % 2;
    try {
      if (json)
        parse_item(one, block, row);
      else
        table->parse(one, block, row);
      block.dataset(2, "fuzz").check("after reading");
      for (const std::int8_t y : block.known(row))
        if (y != 1 && y != 0 && y != kUnknown)
          throw std::logic_error("a label that is neither 1, 0 nor unknown");
    } catch (const Error&) {
      if (block.has_any(row)) throw std::logic_error("a row that was refused is not empty");
      all = false;
    }
  }
  return all;
}

}  // namespace

bool fuzz_form(const std::string& form, std::span<const unsigned char> bytes, const std::string& folder) {
  try {
    if (form == "safetensors") {
      put(folder + "/input.safetensors", bytes);
      read_tensors_again(folder + "/input.safetensors");
    } else if (form == "folds-npz" || form == "folds-mat") {
      const std::string path = folder + "/folds." + form.substr(6);
      put(path, bytes);
      read_folds_again(path);
    } else if (form == "files") {
      read_files({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, folder);
    } else if (form == "infer") {
      return read_request(bytes);
    } else if (form == "toml") {
      const std::string inner = folder + "/native";
      std::filesystem::create_directories(inner);
      put(inner + "/v.csv", std::string("id,a,b\nx,1,2\ny,3,4\n"));
      put(inner + "/y.csv", std::string("id,l\ny,1\nz,?\n"));
      put(inner + "/m.mtx",
          std::string("%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 5\n2 3 6\n"));
      put(inner + "/m.ids", std::string("y\nz\n"));
      put(inner + "/dataset.toml", bytes);
      read_and_use(inner);
    } else if (form == "tags" || form == "folder") {  // a folder of tables: its labels, or one of its views
      const std::string inner = folder + "/tables";
      std::filesystem::create_directories(inner);
      put(inner + "/a.csv", std::string("id,x,y\np1,1,2\np2,3,4\np3,5,6\n"));
      put(inner + "/b.csv", std::string("Sample_ID;z\np3;0,5\np1;1,5\n"));
      put(inner + "/labels.csv", std::string("id,sun,sea\np1,yes,no\np2,,no\np3,no,yes\n"));
      put(inner + (form == "tags" ? "/labels.csv" : "/b.csv"), bytes);
      read_and_use(inner);
    } else if (form == "xml") {
      put(folder + "/labels.arff",
          std::string("@relation r\n@attribute a numeric\n@attribute 'b\\'c' {0,1}\n@data\n1,0\n2,1\n"));
      put(folder + "/given.xml", bytes);
      ReadOptions options;
      options.label_file = folder + "/given.xml";
      read_and_use(folder + "/labels.arff", options);
    } else if (form == "words") {
      put(folder + "/labels.libsvm", std::string("1,2 1:3\n2 2:1\n"));
      put(folder + "/given.txt", bytes);
      ReadOptions options;
      options.label_file = folder + "/given.txt";
      read_and_use(folder + "/labels.libsvm", options);
    } else if (form == "h5ad" || form == "h5mu") {
      const std::string path = folder + "/input." + form;
      put(path, bytes);
      read_and_use(path);
      ReadOptions options;  // of most seeds; others are refused
      options.views =
          form == "h5ad" ? std::vector<std::string>{"X", "obsm/o"} : std::vector<std::string>{"a", "b/X"};
      options.labels = {"c", "obs:b", "n", form == "h5ad" ? "obsm:o" : "a/obs:t"};
      taken_or_refused([&] { read_and_use(path, options); });
    } else if (form == "jsonl" || form == "csv-items") {
      return read_lines_of_items({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                 form == "jsonl");
    } else {
      const std::string path = folder + "/input." + (form == "mat73" ? "mat" : form);
      put(path, bytes);
      read_and_use(path);
    }
    return true;
  } catch (const Error& error) {
    static const bool told = std::getenv("LACUNA_FUZZ_TELL") != nullptr;
    if (told) std::fprintf(stderr, "%s\n", error.what());
    return false;
  }
}

}  // namespace lacuna
