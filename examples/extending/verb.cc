// A verb of one's own (docs/extending.md): `lacuna data rows PATH` prints the number of items.
#include <fmt/core.h>

#include "cli/verbs.h"
#include "data/readers.h"

namespace lacuna::cli {

int data_rows(const Arguments& arguments) {
  std::string path;
  ReadOptions read;
  Options options;
  options.add("path", path, "data set").positional().metavar("PATH").required();
  read.declare(options);
  parse_or_help(options, arguments, "data rows", "Prints the number of items of a data set.",
                "  lacuna data rows photos.npz\n");
  fmt::print("{}\n", read_dataset(path, read).rows);
  return 0;
}

}  // namespace lacuna::cli
