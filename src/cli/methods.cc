#include "methods/method.h"

#include <cstdio>

#include "base/text.h"
#include "cli/verbs.h"

namespace lacuna::cli {

int methods(const Arguments& arguments) {
  Options options;
  parse_or_help(options, arguments, "methods", "Lists the methods and what each can do by itself.",
                "  lacuna methods\n");
  TextTable table({"name", "method", "source", "multi-view", "missing views", "missing labels", "note"});
  for (const auto& name : method_names()) {
    const Traits t = make_method(name)->traits();
    const auto yes = [](bool b) { return std::string(b ? "yes" : "no"); };
    table.add({t.name, t.title, t.source, yes(t.multi_view), yes(t.missing_views), yes(t.missing_labels),
               t.reconstructed ? "reconstructed from descriptions" : ""});
  }
  std::fputs(table.text().c_str(), stdout);
  return 0;
}

}  // namespace lacuna::cli
