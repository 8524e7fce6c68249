// The commands that the pages show: every flag exists, and what needs neither real data nor another program runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "base/files.h"
#include "base/text.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = LACUNA_SOURCE_DIR;

// The calls of lacuna in the code of a page, without comments and prompts; continued lines are joined.
std::vector<std::string> commands_of(const fs::path& page) {
  static const std::regex comment(R"(\s+#.*$)"), call(R"(^(\$ )?(mpirun .*)?(lacuna\s+[a-z].*)$)");
  std::vector<std::string> found;
  std::string line;
  bool inside = false;
  const std::string text = read_text(page.string());
  for (const auto part : split(text, '\n')) {
    if (part.starts_with("```")) inside = !inside;
    if (!inside && !part.starts_with("    ")) continue;
    line += std::string(line.empty() ? "" : " ") + std::regex_replace(std::string(trim(part)), comment, "");
    if (line.ends_with('\\')) {
      line.pop_back();
      continue;
    }
    if (std::smatch match; std::regex_match(line, match, call)) found.push_back(match[3]);
    line.clear();
  }
  return found;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> all = {kRoot / "README.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  for (const auto word : split(command, ' '))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

// The whole help of the verb with the method or preset of the command, which have settings of their own.
std::string help_of(const std::vector<std::string>& words) {
  std::vector<std::string> call = {words[1]};
  if (words[1] == "data" || words[1] == "bench") call.push_back(words[2]);
  if (call.back() == "slurm") call = {"bench", words[3]};  // takes the options of the experiment
  for (std::size_t i = 2; i + 1 < words.size(); ++i)
    if (words[i] == "--method" || words[i] == "--preset") call.insert(call.end(), {words[i], words[i + 1]});
  call.insert(call.end(), {"--help", "all"});
  static std::map<std::vector<std::string>, std::string> known;
  if (const auto at = known.find(call); at != known.end()) return at->second;
  const Ended ended = Process(call).wait();
  EXPECT_EQ(ended.code, 0) << join(call, " ") << ended.err;
  return known[call] = ended.out;
}

TEST(PageCommands, FlagsExist) {
  std::size_t flags = 0;
  for (const auto& page : pages())
    for (const auto& command : commands_of(page)) {
      const auto words = words_of(command);
      const std::string help = help_of(words);
      for (const auto& word : words) {
        if (!word.starts_with("--")) continue;
        const std::string flag = word.substr(0, word.find('='));
        EXPECT_TRUE(std::regex_search(help, std::regex(flag + R"([\s,\]=])")))
            << page << ": " << command << ": " << flag;
        ++flags;
      }
    }
  EXPECT_GT(flags, 80u);
}

// 60 items with three views, some of them missing, and some unknown labels.
Dataset items_with_gaps() {
  Dataset data = simulate({.rows = 60, .views = 3, .labels = 5, .sizes = {6, 5, 4}}).data;
  Matrix<std::uint8_t> W(60, 3);
  Matrix<std::int8_t> Y(60, 5);
  for (std::size_t i = 0; i < 60; ++i) {
    data.ids.push_back("p" + std::to_string(i));
    for (std::size_t v = 0; v < 3; ++v) W(i, v) = i % 6 != v;
    for (std::size_t j = 0; j < 5; ++j) Y(i, j) = (i + j) % 7 == 0 ? kUnknown : data.labels(i, j);
  }
  data.present = std::move(W);
  data.labels = std::move(Y);
  return data;
}

// The files that pages name.
void make_files(const std::string& folder) {
  const Dataset data = items_with_gaps();
  write_dataset(data, folder + "/photos.npz");
  write_dataset(data, folder + "/new.npz");
  write_dataset(data, folder + "/folder");
  write_dataset(data, folder + "/emotions.mat");
  write_dataset(data, folder + "/corel5k.mat");
  for (const char* name : {"tables", "new", "tagged"}) {
    write_dataset(data, folder + "/" + name + ".csv");
    fs::rename(folder + "/" + name + ".csv", folder + "/" + name);
  }
  std::ofstream(folder + "/items.jsonl")
      << "{\"id\": \"a\", \"views\": {\"" << data.views[0].name << "\": [1, 2, 3, 4, 5, 6]}}\n";
  std::ofstream(folder + "/mine.toml") << "epochs = 1\n";
}

// Fits of networks are short, experiments are planned only.
constexpr const char* kShort = R"sh(
lacuna() {
  local more=
  case "$*" in
    "train "*|"complete "*) more="--set epochs=1" ;;
    "tune "*--method*) ;;
    "tune "*) more="--set epochs=1" ;;
    "bench slurm "*|"bench status "*|"bench "*--dry-run*) ;;
    "bench "*) more=--dry-run ;;
  esac
  command lacuna "$@" $more
}
table() { (
  echo id,a,b,$2
  for i in $(seq 40); do
    labels=$(for name in ${2//,/ }; do echo $(((i + ${#name} + 1$(echo $name | tr -dc 0-9)) % 3 / 2)); done | paste -sd,)
    echo "$1$i,$((i % 7)),$((i * i % 11)),$labels"
  done
) }
)sh";

// What a page takes for granted.
const std::map<std::string, std::string> kBefore = {
    {"tables.md", "mv tables cohort"},
    {"labels.md",
     "(echo id,a,b,tags; for i in $(seq 40); do echo \"p$i,$((i % 7)),$((i * i % 11)),$([ $((i % 2)) = 0 ] && echo sun || "
     "echo 'sea;rain')\"; done) > tagged.csv; lacuna train tagged.csv --tags-column tags --out m.safetensors"},
    {"experiments.md", "lacuna data simulate msrc_v2.mat --rows 50 --views 2 --labels 4"},
    {"onnx.md", "lacuna train photos.npz --out photos.safetensors"},
    {"predicting.md", "lacuna train photos.npz --out m.safetensors"},
    {"metrics.md",
     "lacuna train photos.npz --out m.safetensors; lacuna predict m.safetensors photos.npz --out scores.csv"},
    {"mpi.md", "mv folder photos"},
    {"omics.md",
     "table p celltype > cells.csv; lacuna data convert cells.csv pbmc.h5ad --label-columns celltype"},
    {"scale.md",
     "labels=$(seq -s, -f l%g 20); table p $labels > part-01.csv; table q $labels > part-02.csv; table r $labels > "
     "later.csv; command lacuna bench table --data corel5k.mat --methods prior --repeats 1 --out results"},
};

// Pages with commands that are not run here, and why.
const std::map<std::string, std::string> kElsewhere = {
    {"extending.md", "bench takes a method that the reader adds"},
    {"tutorial.md", "test_tutorial runs all of it"},
};

TEST(PageCommands, Run) {
  // A server runs until it is stopped, ellipses stand for more, placeholders for files; ESPGame has a gigabyte, ARFF files
  // and the matrices of obsm are not written, and /fast is another disk.
  const std::regex not_here(R"(lacuna serve|\.\.\.|MODEL|espgame|\.arff|cite\.h5mu|new\.h5ad|/fast)");
  const TemporaryDirectory folder;
  fs::create_directory(folder / "bin");
  fs::create_symlink(LACUNA_PROGRAM, folder / "bin/lacuna");
  std::size_t ran = 0;
  std::ofstream script(folder / "script");
  script << "export PATH=" << folder / "bin"
         << ":$PATH\n"
         << kShort << "set -e\n";
  for (const auto& page : pages()) {
    const std::string name = page.filename().string();
    const auto commands = commands_of(page);
    if (commands.empty() || kElsewhere.contains(name)) continue;
    const auto before = kBefore.find(name);
    const std::string place = folder / page.stem().string();
    fs::create_directory(place);
    make_files(place);
    script << "cd " << place << "\n" << (before == kBefore.end() ? "" : before->second) << "\n";
    for (const auto& command : commands) {
      if (std::regex_search(command, not_here)) continue;
      script << "echo '" << name << ": "
             << std::regex_replace(command, std::regex("'"), "") << "' >&2\n"
             << command << "\n";
      ++ran;
    }
  }
  script.close();
  const int status = std::system(
      fmt::format("bash {} > {} 2> {}", folder / "script", folder / "out", folder / "err").c_str());
  EXPECT_EQ(status, 0) << read_text(folder / "err");
  EXPECT_GT(ran, 70u);
}

}  // namespace
}  // namespace lacuna
