// Modules (the folders of src/) include downward only: cli, capi -> experiments -> methods -> nn -> data -> ops -> base.
// Data stands above ops because the preparation of views needs products and decompositions; ops knows nothing of data.
// cuda is a shared library behind ops, mpi one behind base; no other module includes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace lacuna {
namespace {

const std::map<std::string, std::vector<std::string>> kMayInclude = {
    {"base", {"base"}},
    {"ops", {"base", "ops"}},
    {"cuda", {"base", "ops", "cuda"}},
    {"mpi", {"base"}},
    {"data", {"base", "ops", "data"}},
    {"nn", {"base", "ops", "data", "nn"}},
    {"methods", {"base", "ops", "data", "nn", "methods"}},
    {"experiments", {"base", "ops", "data", "nn", "methods", "experiments"}},
    {"serve", {"base", "ops", "data", "nn", "methods", "serve"}},
    {"export", {"base", "ops", "data", "nn", "methods", "export"}},
    {"cli", {"base", "ops", "data", "nn", "methods", "experiments", "export", "serve", "cli"}},
    {"capi", {"base", "ops", "data", "nn", "methods", "experiments", "capi"}},
};

// The lines of a file of `module` that include what the module may not.
std::vector<std::string> upward_includes(const std::string& module, std::string_view text) {
  const auto& allowed = kMayInclude.at(module);
  std::vector<std::string> wrong;
  for (const auto line : split(text, '\n')) {
    constexpr std::string_view kInclude = "#include \"";
    if (!line.starts_with(kInclude)) continue;
    const auto path = line.substr(kInclude.size());
    const std::string target(path.substr(0, path.find('/')));
    if (std::find(allowed.begin(), allowed.end(), target) == allowed.end()) wrong.emplace_back(line);
  }
  return wrong;
}

TEST(Modules, TheCheckSeesAnUpwardInclude) {
  EXPECT_TRUE(upward_includes("data", "#include <vector>\n#include \"base/matrix.h\"\n").empty());
  EXPECT_EQ(upward_includes("ops", "#include \"data/items.h\"\n").size(), 1u);
  EXPECT_EQ(upward_includes("base", "#include \"matrix.h\"\n").size(), 1u);
}

TEST(Modules, IncludesPointDownward) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LACUNA_SOURCE_DIR "/src")) {
    if (!entry.is_regular_file()) continue;
    const auto path = std::filesystem::relative(entry.path(), LACUNA_SOURCE_DIR "/src");
    const std::string module = path.begin()->string();
    ASSERT_TRUE(kMayInclude.contains(module)) << path << " belongs to no known module";
    ++files;
    for (const auto& line : upward_includes(module, read_text(entry.path().string())))
      ADD_FAILURE() << path << " may not say " << line;
  }
  EXPECT_GT(files, 20u);
}

// Types that a header defines at the level of the namespace. Specialisations are not definitions of a new name.
std::vector<std::string> types_defined(std::string_view text) {
  std::vector<std::string> names;
  for (const auto line : split(text, '\n')) {
    if (line.find('{') == std::string_view::npos) continue;
    for (const std::string_view kind : {"struct ", "class ", "enum class "})
      if (line.starts_with(kind)) {
        const auto rest = line.substr(kind.size());
        const auto end = rest.find_first_of(" <:{");
        if (end > 0 && rest[std::min(end, rest.size() - 1)] != '<') names.emplace_back(rest.substr(0, end));
      }
  }
  return names;
}

// Two types of one name in two headers meet when a program is linked, and one of them gets the other's functions.
TEST(Modules, ATypesNameIsDefinedOnce) {
  EXPECT_EQ(types_defined("struct A {\nclass B : A {\nstruct C;\nenum class D { x };\nstruct Traits<int> {\n"),
            (std::vector<std::string>{"A", "B", "D"}));
  std::map<std::string, std::string> where;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LACUNA_SOURCE_DIR "/src")) {
    if (entry.path().extension() != ".h") continue;
    for (const auto& name : types_defined(read_text(entry.path().string()))) {
      const auto [first, is_new] = where.try_emplace(name, entry.path().string());
      EXPECT_TRUE(is_new) << name << " is defined in " << first->second << " and in " << entry.path();
    }
  }
  EXPECT_GT(where.size(), 100u);
}

// Instructions of a kind of processor that a text names, from the headers of compilers.
std::vector<std::string> instructions_in(std::string_view text) {
  std::vector<std::string> found;
  for (const auto line : split(text, '\n'))
    for (const std::string_view name : {"intrin.h", "_mm_", "_mm256_", "_mm512_", "__m128", "__m256", "__m512", "__AVX",
                                        "__builtin_ia32", "cpuid", "asm("})
      if (line.substr(0, line.find("//")).find(name) != line.npos) found.emplace_back(line);
  return found;
}

// Only the engines know the machine, and one header of base (docs/architecture.md).
TEST(Modules, InstructionsStayInTheEngines) {
  EXPECT_EQ(instructions_in("#include <immintrin.h>\n__m512 a;\n// _mm_pause()\nint b;\n").size(), 2u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LACUNA_SOURCE_DIR "/src")) {
    const auto path = std::filesystem::relative(entry.path(), LACUNA_SOURCE_DIR "/src");
    const std::string module = path.begin()->string();
    if (!entry.is_regular_file() || module == "ops" || module == "cuda" || path == "base/processor.h") continue;
    for (const auto& line : instructions_in(read_text(entry.path().string())))
      ADD_FAILURE() << path << " says " << line << "; that belongs into ops/ or base/processor.h";
  }
  EXPECT_FALSE(instructions_in(read_text(LACUNA_SOURCE_DIR "/src/base/processor.h")).empty());
}

// All files of a module with this extension.
std::string module_text(const std::string& module, const std::string& extension) {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(LACUNA_SOURCE_DIR "/src/" + module))
    if (entry.path().extension() == extension) text += read_text(entry.path().string());
  return text;
}

// A loss is declared in ops/loss_list.h. It needs two implementations, a network that uses it, and a test of its gradient
// and of its engines (docs/extending.md).
TEST(Modules, EveryLossIsComputedUsedAndTested) {
  const std::string reference = module_text("ops", ".cc"), gpu = module_text("cuda", ".cu"), networks = module_text("nn", ".cc");
  const std::string list = read_text(LACUNA_SOURCE_DIR "/src/ops/loss_list.h"), begin = "\nLACUNA_LOSS(";
  std::size_t losses = 0;
  for (auto at = list.find(begin); at != list.npos; at = list.find(begin, at + 1)) {
    const auto from = at + begin.size();
    const std::string call = list.substr(from, list.find(',', from) - from) + "(";
    EXPECT_NE(reference.find("ReferenceLosses<T>::" + call), std::string::npos) << "ops/reference_losses.cc lacks " << call << "...)";
    EXPECT_NE(gpu.find("CudaOps::" + call), std::string::npos) << "cuda/ lacks " << call << "...)";
    EXPECT_NE(networks.find("->" + call), std::string::npos) << "no network of nn/ calls " << call << "...)";
    for (const char* test : {"test_ops.cc", "test_engines.cc"})
      EXPECT_NE(read_text(LACUNA_SOURCE_DIR "/tests/" + std::string(test)).find(call), std::string::npos)
          << "tests/" << test << " does not call " << call << "...)";
    ++losses;
  }
  EXPECT_GE(losses, 7u);
}

}  // namespace
}  // namespace lacuna
