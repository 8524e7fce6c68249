// The pages hold together: links lead somewhere, the README reaches every page, pages are short, and what the program
// lists is on its page.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/metrics.h"
#include "methods/method.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = LACUNA_SOURCE_DIR;

std::vector<fs::path> pages_in(const fs::path& folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  std::ranges::sort(pages);
  return pages;
}

std::vector<fs::path> all_pages() {
  std::vector<fs::path> pages;
  for (const char* folder : {"", "docs", "docs/results", "examples/browser"})
    for (const auto& page : pages_in(kRoot / folder)) pages.push_back(page);
  return pages;
}

// The headings of a page as links name them: lower case, dashes for blanks, no punctuation.
std::set<std::string> anchors(const std::string& text) {
  std::set<std::string> found;
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (const char c : trim(line.substr(line.find_first_not_of('#'))))
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        anchor += '-';
    found.insert(anchor);
  }
  return found;
}

std::ptrdiff_t lines_of(const fs::path& page) {
  return std::ranges::count(read_text(page.string()), '\n');
}

TEST(Pages, LinksLeadSomewhere) {
  const std::regex link(R"(\]\(([^)\s#]*)(#[^)\s]*)?\))");
  std::size_t links = 0;
  for (const auto& page : all_pages()) {
    const std::string text = read_text(page.string());
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1], anchor = (*at)[2];
      if (target.starts_with("http")) continue;
      const fs::path file = target.empty() ? page : page.parent_path() / target;
      EXPECT_TRUE(fs::exists(file)) << page << " links to " << target;
      if (fs::exists(file) && !anchor.empty()) {
        EXPECT_TRUE(anchors(read_text(file.string())).contains(anchor.substr(1)))
            << page << " links to " << target << anchor;
      }
      ++links;
    }
  }
  EXPECT_GT(links, 100u);
}

TEST(Pages, TheReadmeReachesEveryPage) {
  const std::string readme = read_text((kRoot / "README.md").string());
  for (const auto& page : pages_in(kRoot / "docs"))
    EXPECT_NE(readme.find("(docs/" + page.filename().string() + ")"), readme.npos) << page;
}

TEST(Pages, AreShort) {
  EXPECT_LE(lines_of(kRoot / "README.md"), 120);
  for (const auto& page : pages_in(kRoot / "docs")) EXPECT_LT(lines_of(page), 150) << page;
}

TEST(Pages, DescribeWhatTheProgramLists) {
  const auto page = [](const char* name) { return read_text((kRoot / "docs" / name).string()); };
  const std::string metrics = page("metrics.md"), formats = page("formats.md"), methods = page("methods.md");
  for (const auto& name : metric_names())
    EXPECT_NE(metrics.find("| " + name + " |"), metrics.npos) << "docs/metrics.md does not define " << name;
  for (const FileFormat& format : file_formats())
    for (const auto& ending : format.endings)
      EXPECT_NE(formats.find("`" + ending + "`"), formats.npos) << "docs/formats.md does not list " << ending;
  for (const auto& name : method_names())
    EXPECT_NE(methods.find("`" + name + "`"), methods.npos) << "docs/methods.md does not list " << name;
}

}  // namespace
}  // namespace lacuna
