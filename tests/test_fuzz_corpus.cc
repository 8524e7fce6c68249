// Replays the seeds of the fuzz targets and every input that ever failed, and damages each seed in turn: cut
// off at many places, bytes changed at random places.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "data/formats.h"
#include "fuzz/fuzz_forms.h"
#include "temporary.h"

namespace lacuna {
namespace {

struct Input {
  std::string name;
  std::vector<unsigned char> bytes;
};

std::vector<Input> corpus(const std::string& form) {
  std::vector<Input> inputs;
  for (const auto& entry :
       std::filesystem::directory_iterator(LACUNA_SOURCE_DIR "/tests/fuzz/corpus/" + form)) {
    const std::string text = read_text(entry.path().string());
    inputs.push_back({entry.path().filename().string(), {text.begin(), text.end()}});
  }
  std::ranges::sort(inputs, {}, &Input::name);
  return inputs;
}

// HDF5 files are read by a process of its own, which takes its time; so do files that are written to disk.
bool slow(const std::string& form, const std::string& name) {
  return form == "mat73" || form.starts_with("h5") || form.starts_with("folds") ||
         name.find("h5") != name.npos || name.find("-to") != name.npos;
}

// How often a seed is damaged: the seeds of a form share its rounds.
std::size_t rounds_of(const std::string& form, const std::vector<Input>& inputs, const Input& seed) {
  const auto seeds = static_cast<std::size_t>(
      std::ranges::count_if(inputs, [](const Input& input) { return input.name.starts_with("seed"); }));
  return slow(form, seed.name) ? 4 : std::max<std::size_t>(8, 240 / std::max<std::size_t>(2, seeds));
}

class CorpusOf : public testing::TestWithParam<std::string> {
 protected:
  TemporaryDirectory folder_;
};

TEST_P(CorpusOf, SeedsAreRead) {
  const auto inputs = corpus(GetParam());
  std::size_t seeds = 0;
  for (const auto& input : inputs) {
    SCOPED_TRACE(input.name);
    const bool taken = fuzz_form(GetParam(), input.bytes, folder_ / "");
    if (input.name.starts_with("seed")) {
      EXPECT_TRUE(taken);
      ++seeds;
    }
  }
  EXPECT_GE(seeds, 1u);
}

TEST_P(CorpusOf, CutOffInputIsReadOrRefused) {
  const auto inputs = corpus(GetParam());
  for (const auto& input : inputs) {
    if (!input.name.starts_with("seed")) continue;
    SCOPED_TRACE(input.name);
    const std::size_t step =
        std::max<std::size_t>(1, input.bytes.size() / rounds_of(GetParam(), inputs, input));
    for (std::size_t size = 0; size < input.bytes.size(); size += step)
      fuzz_form(GetParam(), std::span(input.bytes).first(size), folder_ / "");
  }
}

TEST_P(CorpusOf, ChangedBytesAreReadOrRefused) {
  const auto inputs = corpus(GetParam());
  std::uint64_t seed = 0;
  for (const auto& input : inputs) {
    if (!input.name.starts_with("seed")) continue;
    SCOPED_TRACE(input.name);
    const std::size_t rounds = rounds_of(GetParam(), inputs, input);
    for (std::size_t r = 0; r < rounds; ++r) {
      Random random(++seed, Purpose::test);
      auto bytes = input.bytes;
      for (int k = 1 + static_cast<int>(random.below(4)); k > 0; --k)
        bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] =
            static_cast<unsigned char>(random.below(256));
      fuzz_form(GetParam(), bytes, folder_ / "");
    }
  }
}

std::vector<std::string> fuzz_forms() {
  std::vector<std::string> forms;
  for (const auto& entry : std::filesystem::directory_iterator(LACUNA_SOURCE_DIR "/tests/fuzz/corpus"))
    forms.push_back(entry.path().filename().string());
  std::ranges::sort(forms);
  return forms;
}

// Whoever adds a form gives it seeds.
TEST(Corpus, HasEveryEndingThatIsRead) {
  const auto all = fuzz_forms();
  for (const FileFormat& form : file_formats())
    for (const auto& ending : form.endings)
      EXPECT_TRUE(std::ranges::binary_search(all, ending.substr(1)) || ending == ".svm") << ending;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  std::ranges::replace(name, '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Forms, CorpusOf, testing::ValuesIn(fuzz_forms()), test_name);

}  // namespace
}  // namespace lacuna
