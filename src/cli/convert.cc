#include <fmt/core.h>

#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "data/readers.h"

namespace lacuna::cli {

int data_convert(const Arguments& arguments) {
  std::string in, out;
  ReadOptions read;
  Options options;
  options.add("in", in, "data set in any form").positional().metavar("IN").required();
  options.add("out", out, ".npz, .mat, .csv (a folder of CSV files), otherwise a native folder")
      .positional()
      .metavar("OUT")
      .required();
  read.declare(options);
  parse_or_help(options, arguments, "data convert",
                "Writes a data set in another form. Float32 values, whole numbers, labels with their "
                "unknowns and gaps are kept "
                "exactly;\nfloat64 values are rounded to float32, and that is said.",
                "  lacuna data convert corel5k_six_view.mat corel5k\n"
                "  lacuna data convert emotions.arff emotions.npz --label-file emotions.xml --views "
                "timbre=0-63,rhythm=64-71\n"
                "  lacuna data convert examples/mfeat.toml mfeat\n");
  const Dataset data = load_dataset(in, read);
  write_dataset(data, out);
  for (const auto& view : data.views)
    if (view.source_type == "float64")
      fmt::print(stderr, "{}: view '{}' was float64 and is rounded to float32\n", in, view.name);
  fmt::print("{}: {} rows, {} views, {} labels\n", out, count_text(data.rows), data.views.size(),
             data.label_count());
  return 0;
}

}  // namespace lacuna::cli
