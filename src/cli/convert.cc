#include <fmt/core.h>
#include <glob.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "cli/counted.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "data/native_writer.h"
#include "data/readers.h"

namespace lacuna::cli {
namespace {

namespace fs = std::filesystem;

// The paths that a pattern stands for, sorted by name; a path that is there stands for itself.
std::vector<std::string> expanded(const std::string& pattern) {
  std::error_code error;
  if (fs::exists(pattern, error) || pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (status == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (paths.empty()) fail(Exit::data, "{}: no file matches this pattern", pattern);
  return paths;
}

void tell_rounding(const std::string& path, const Dataset& data) {
  for (const auto& view : data.views)
    if (view.source_type == "float64")
      fmt::print(stderr, "{}: view '{}' was float64 and is rounded to float32\n", path, view.name);
}

struct Converted {
  std::size_t rows, views, labels;
};

Converted convert_one(const std::string& in, const ReadOptions& read, const std::string& out) {
  const Dataset data = load_dataset(in, read);
  write_dataset(data, out);
  tell_rounding(in, data);
  return {data.rows, data.views.size(), data.label_count()};
}

// One part after the other is read, written and forgotten.
Converted convert_parts(const std::vector<std::string>& parts, const ReadOptions& read, bool append,
                        const std::string& out) {
  if (!is_native_folder(out))
    fail(Exit::usage, "{}: {} is written to native folders only; name a folder and convert that", out,
         append ? "--append" : "a data set of several files");
  if (read.empty == "mean")
    fail(Exit::usage,
         "--empty mean needs all rows at once, and parts are read one by one; --empty zero does not");
  NativeWriter writer(out, append ? Replaced::any : Replaced::no_input);
  Converted converted{};
  const auto add = [&](const std::string& path, const ReadOptions& how) {
    Dataset data = load_dataset(path, how);
    if (!append) data.name = fs::path(out).filename().string();
    tell_rounding(path, data);
    writer.append(data, path);
    converted = {writer.rows(), data.views.size(), data.label_count()};
  };
  if (append) add(out, {});
  for (const auto& path : parts) add(path, read);
  writer.commit();
  return converted;
}

}  // namespace

int data_convert(const Arguments& arguments) {
  std::string in, out;
  bool append = false;
  ReadOptions read;
  Options options;
  options.add("in", in, "data set in any format, or a quoted pattern for many parts: 'part-*.csv'")
      .positional()
      .metavar("IN")
      .required();
  options.add("out", out, ".npz, .mat, .h5ad, .h5mu, .csv (a folder of CSV files), otherwise a native folder")
      .positional()
      .metavar("OUT")
      .required();
  options.add("append", append, "add the rows of IN to the native folder OUT");
  read.declare(options);
  parse_or_help(
      options, arguments, "data convert",
      "Writes a data set in another format. Float32 values, whole numbers, labels with their unknowns and "
      "gaps are kept exactly; float64 values are rounded to float32, with a note. Parts are joined in the "
      "order of their names; only one of them is in memory at a time.",
      "  lacuna data convert corel5k_six_view.mat corel5k\n"
      "  lacuna data convert emotions.arff emotions.npz --label-file emotions.xml --views "
      "timbre=0-63,rhythm=64-71\n"
      "  lacuna data convert examples/mfeat.toml mfeat\n"
      "  lacuna data convert 'part-*.csv' all --label-columns 20\n"
      "  lacuna data convert part-17.csv all --label-columns 20 --append\n");
  const std::vector<std::string> parts = expanded(in);
  if (append && !fs::exists(fs::path(out) / "dataset.toml"))
    fail(Exit::usage, "--append: {} is not a native folder to add to; omit --append to make it", out);
  const Converted made =
      append || parts.size() > 1 ? convert_parts(parts, read, append, out) : convert_one(parts[0], read, out);
  fmt::print("{}: {}, {}, {}\n", out, counted(made.rows, "row"), counted(made.views, "view"),
             counted(made.labels, "label"));
  return 0;
}

}  // namespace lacuna::cli
