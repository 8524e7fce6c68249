// The tests of all files may be one program. Started under the name of a file, it runs the tests of that file.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

namespace {

std::string stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

// Patterns of all tests outside of `file`.
std::string others(const std::string& file) {
  std::string patterns;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      if (stem(test.file()) != file) patterns += std::string(":") + suite.name() + "." + test.name();
    }
  }
  return patterns;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const std::string name = stem(argv[0]); name.starts_with("test_")) {
    std::string& filter = testing::GTEST_FLAG(filter);
    const bool excludes = filter.find('-') != std::string::npos;
    if (const std::string patterns = others(name); !patterns.empty())
      filter += excludes ? patterns : "-" + patterns.substr(1);
  }
  return RUN_ALL_TESTS();
}
