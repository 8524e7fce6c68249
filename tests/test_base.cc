#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/mapping.h"
#include "base/options.h"
#include "base/quota.h"
#include "base/random.h"
#include "base/subnormals.h"
#include "base/tensors.h"
#include "base/text.h"
#include "base/threads.h"
#include "temporary.h"

namespace lacuna {
namespace {

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(Sha256().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  hash.add("abc");
  EXPECT_EQ(hash.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Philox, KnownAnswer) {
  // The published test vector of Philox 4x32-10 for all-zero and all-one counters and keys.
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, MomentsAndBounds) {
  Random random(7, Purpose::test);
  double sum = 0, squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, .01);
  EXPECT_NEAR(squares / kDraws, 1, .02);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(7), 7u);
  auto order = random.permutation(1000);
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
}

TEST(Threads, EveryIndexOnceForAnyThreadCount) {
  for (int count : {1, 2, 4}) {
    set_threads(count);
    std::vector<std::atomic<int>> hits(1003);
    parallel_for(hits.size(), 10, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) ++hits[i];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit, 1);
  }
  set_threads(0);
}

TEST(Threads, OrderedSumHasTheSameBits) {
  std::vector<double> terms(100000);
  Random random(3, Purpose::test);
  for (auto& term : terms) term = random.uniform_double() - .5;
  double first = 0;
  for (int count : {1, 2, 4}) {
    set_threads(count);
    const double sum = ordered_sum(terms.size(), 64, [&](std::size_t begin, std::size_t end) {
      return std::accumulate(terms.begin() + static_cast<std::ptrdiff_t>(begin),
                             terms.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
    });
    if (count == 1) first = sum;
    EXPECT_EQ(sum, first);
  }
  set_threads(0);
}

TEST(Threads, ManySmallJobsBackToBack) {
  set_threads(4);
  std::vector<std::size_t> cells(64);
  for (std::size_t job = 1; job <= 20000; ++job) {
    const std::size_t n = 1 + job % cells.size();
    parallel_for(n, 1 + job % 3, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) cells[i] = job + i;
    });
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(cells[i], job + i);
  }
  set_threads(0);
}

// Workers compute as the caller does, whatever they did before.
TEST(Threads, ChunksHaveTheCallersArithmetic) {
  set_threads(4);
  const volatile float tiny = 1e-40f;
  for (int job = 0; job < 200; ++job) {
    std::vector<float> results(64);
    const auto run = [&] {
      parallel_for(results.size(), 1, [&](std::size_t i, std::size_t) { results[i] = tiny * .5f; });
    };
    run();
    for (const float x : results) ASSERT_GT(x, 0);
    {
      const FlushSubnormals flush;
      run();
    }
    for (const float x : results) ASSERT_EQ(x, 0);  // here, where a subnormal number would not pass for zero
    run();
    for (const float x : results) ASSERT_GT(x, 0);
  }
  set_threads(0);
}

// As Python's multiprocessing does it: the parent has used its workers, the child has to find its own.
TEST(Threads, AForkedChildHasWorkersOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer knows no threads in forked children";
#endif
  set_threads(3);
  const auto count = [] {
    return ordered_sum(1000, 7, [](std::size_t b, std::size_t e) { return double(e - b); });
  };
  ASSERT_EQ(count(), 1000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that waits for workers that do not exist ends here
    const bool whole = count() == 1000 && threads() == 3;
    set_threads(2);
    _exit(whole && count() == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(count(), 1000);
}

TEST(Threads, AQuotaOfTheGroupOrOfOneAroundItCounts) {
  TemporaryDirectory folder;
  const std::string root = folder / "groups", groups = folder / "cgroup";
  std::filesystem::create_directories(root + "/kube/pod/box");
  const auto put = [&](const std::string& path, const char* text) { std::ofstream(path) << text; };
  put(groups, "1:cpu:/elsewhere\n0::/kube/pod/box\n");
  EXPECT_EQ(processor_quota(groups, root), 0);
  EXPECT_EQ(processor_quota(folder / "none", root), 0);
  put(root + "/kube/pod/box/cpu.max", "max 100000\n");
  EXPECT_EQ(processor_quota(groups, root), 0);
  put(root + "/kube/cpu.max", "600000 100000\n");
  EXPECT_EQ(processor_quota(groups, root), 6);
  put(root + "/kube/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(processor_quota(groups, root), 2);
  put(root + "/kube/pod/box/cpu.max", "4000 100000\n");
  EXPECT_EQ(processor_quota(groups, root), 1);
  put(groups, "0::/\n");  // as a container sees its own group
  put(root + "/cpu.max", "300000 100000\n");
  EXPECT_EQ(processor_quota(groups, root), 3);
}

TEST(Threads, ExceptionsComeBack) {
  EXPECT_THROW(parallel_for(100, 1,
                            [](std::size_t i, std::size_t) {
                              if (i == 57) fail(Exit::data, "57");
                            }),
               Error);
}

TEST(Options, ParseHelpAndErrors) {
  double rate = .5;
  std::int64_t repeats = 10;
  bool json = false;
  std::string kind = "a", path;
  Options options;
  options.add("data", path, "the data").positional().required().metavar("DATA");
  options.add("missing-views", rate, "share to hide").range(0, 1).symbol("ρ");
  options.add("repeats", repeats, "how many").range(1, 1000);
  options.add("json", json, "machine-readable");
  options.add("kind", kind, "which").choices({"a", "b"});
  options.parse({"file", "--missing-views", ".25", "--repeats=3", "--json"}, "lacuna x");
  EXPECT_EQ(path, "file");
  EXPECT_EQ(rate, .25);
  EXPECT_EQ(repeats, 3);
  EXPECT_TRUE(json);
  const auto message = [&](std::vector<std::string> arguments) -> std::string {
    try {
      options.parse(arguments, "lacuna x");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({"f", "--mising-views", "1"}).find("did you mean '--missing-views'"), std::string::npos);
  EXPECT_NE(message({"f", "--missing-views", "1.5"}).find("from 0 to 1"), std::string::npos);
  EXPECT_NE(message({"f", "--kind", "c"}).find("one of a, b"), std::string::npos);
  EXPECT_NE(message({"f", "g"}).find("too many"), std::string::npos);
  options.add("budget", kind, "how long");
  for (const char* name : {"--missing-views", "--repeats", "--kind", "--budget"}) {
    EXPECT_NE(message({"f", name, ""}).find(std::string(name) + " is empty"), std::string::npos);
    EXPECT_NE(message({"f", std::string(name) + "="}).find(std::string(name) + " is empty"),
              std::string::npos);
  }
  EXPECT_NE(message({""}).find("DATA is empty"), std::string::npos);
  EXPECT_NE(options.help().find("share to hide (ρ) [0.5]"), std::string::npos);
}

TEST(Options, AListIsReplacedUnlessRepeatedOnOneCommandLine) {
  std::vector<std::string> widths = {"1024"};
  std::vector<double> rates;
  Options options;
  options.add("widths", widths, "of layers");
  options.add("rates", rates, "of something");
  using Texts = std::vector<std::string>;
  options.set("widths", "1,2", "a file");
  options.set("widths", "3", "a member");
  EXPECT_EQ(widths, Texts{"3"});
  options.from_json({{"widths", {"4", "5"}}}, "a model");
  options.set("widths", "6", "a member");
  EXPECT_EQ(widths, Texts{"6"});
  options.parse({"--widths", "7", "--rates=.5", "--widths=8,9", "--rates", "1"}, "lacuna x");
  EXPECT_EQ(widths, (Texts{"7", "8", "9"}));
  EXPECT_EQ(rates, (std::vector<double>{.5, 1}));
  options.parse({"--widths", "10"}, "lacuna x");
  EXPECT_EQ(widths, Texts{"10"});
}

// Sizes on both sides of every way to get memory, taken and given back in any order by several threads: new
// memory is zero and aligned, and nobody writes into another's.
TEST(Matrix, MemoryOfItsOwnForEverySizeAndOrder) {
  constexpr std::size_t kSizes[] = {1,      63,      4095,      4096,      5000,
                                    70'000, 500'000, 1'048'575, 1'048'576, 1'500'000};
  set_threads(2);
  parallel_for(2, 1, [&](std::size_t first, std::size_t end) {
    for (std::size_t t = first; t < end; ++t) {
      Random random(t, Purpose::test);
      std::vector<Matrix<std::uint32_t>> held(24);
      for (std::uint32_t turn = 1; turn <= 200; ++turn) {
        auto& matrix = held[random.below(held.size())];
        const auto all_are = [&](std::uint32_t value) {
          for (std::uint32_t x : matrix.values())
            if (x != value) return false;
          return true;
        };
        if (!matrix.empty()) {
          ASSERT_TRUE(all_are(matrix(0, 0))) << "turn " << turn;
          matrix = {};
          continue;
        }
        matrix = Matrix<std::uint32_t>(1, kSizes[random.below(std::size(kSizes))]);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data()) % 64, 0u);
        ASSERT_TRUE(all_are(0)) << "turn " << turn;
        std::fill(matrix.values().begin(), matrix.values().end(), turn * 2 + static_cast<std::uint32_t>(t));
      }
    }
  });
}

TEST(AtomicFile, OldContentSurvivesWithoutCommit) {
  const TemporaryDirectory folder;
  const std::string path = folder / "file";
  write_text(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(read_text(path), "old");
  {
    AtomicFile file(path);
    file.write("new");
    file.commit();
  }
  EXPECT_EQ(read_text(path), "new");
}

// Rows with gaps between them are stored without the gaps, and read from memory as from a file.
TEST(Tensors, RowsWithGaps) {
  const TemporaryDirectory folder;
  Matrix<float> matrix(4, 7);
  for (std::size_t i = 0; i < 28; ++i) matrix.values()[i] = static_cast<float>(i);
  const auto part = std::as_const(matrix).view().columns(1, 5);
  Tensors out;
  out.put("part", part);
  out.put("whole", std::as_const(matrix).view());
  out.write(folder / "file");
  const Tensors file = Tensors::read(folder / "file");
  EXPECT_EQ(file.at("part").bytes.size(), 4 * 5 * sizeof(float));
  for (const Tensors* in : {static_cast<const Tensors*>(&out), &file}) {
    const Matrix<float> copy = in->matrix("part");
    const std::vector<float> values = in->floats("part");
    ASSERT_EQ(copy.rows(), 4u);
    ASSERT_EQ(copy.cols(), 5u);
    ASSERT_EQ(values.size(), 20u);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 5; ++j) {
        EXPECT_EQ(copy(i, j), part(i, j));
        EXPECT_EQ(values[i * 5 + j], part(i, j));
      }
    EXPECT_EQ(in->matrix("whole")(3, 6), 27.f);
  }
}

TEST(Tensors, RoundTripAndHostileHeaders) {
  const TemporaryDirectory folder;
  const std::string path = folder / "file";
  Matrix<float> matrix(3, 5);
  for (std::size_t i = 0; i < 15; ++i) matrix.values()[i] = static_cast<float>(i) * .25f;
  Tensors out;
  out.put("w", std::as_const(matrix).view());
  out.metadata["name"] = "ä \"quoted\"";
  out.write(path);
  const Tensors in = Tensors::read(path);
  EXPECT_EQ(in.metadata["name"], "ä \"quoted\"");
  const Matrix<float> copy = in.matrix("w");
  ASSERT_EQ(copy.rows(), 3u);
  EXPECT_TRUE(std::equal(copy.values().begin(), copy.values().end(), matrix.values().begin()));
  EXPECT_THROW(in.at("v"), Error);

  const auto parse = [](const std::string& header, std::size_t payload) {
    std::string text(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(text.data(), &length, 8);
    text += header + std::string(payload, 'x');
    return Tensors::parse(nullptr, as_bytes(text), "hostile");
  };
  EXPECT_THROW(parse(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
               Error);
  EXPECT_THROW(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4), Error);
  EXPECT_THROW(parse(R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8), Error);
  EXPECT_THROW(parse("[1]", 0), Error);
  EXPECT_THROW(parse(std::string(100000, '['), 0), Error);
  EXPECT_THROW(Tensors::parse(nullptr, as_bytes("short"), "hostile"), Error);
}

TEST(Text, NearestAndFormats) {
  EXPECT_EQ(nearest("naim31", {"mtd", "naim3l", "prior"}), "naim3l");
  EXPECT_EQ(nearest("zzzzzz", {"mtd", "naim3l"}), "");
  EXPECT_EQ(count_text(288650000), "288,650,000");
  EXPECT_EQ(bytes_text(278e6), "278 MB");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
}

TEST(MappedFile, ReleasedPagesAreReadAgainAndOtherMemoryIsLeftAlone) {
  const TemporaryDirectory folder;
  const std::string path = folder / "released";
  std::string text(100000, 'a');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  write_text(path, text);
  const auto file = MappedFile::open(path);
  EXPECT_EQ(file->text(), text);
  release_mapped(file->bytes());
  EXPECT_EQ(file->text(), text);
  release_mapped(file->bytes().subspan(5000, 50000));
  EXPECT_EQ(file->text(), text);
  std::string copy(100000, 'x');
  release_mapped(as_bytes(copy));
  EXPECT_EQ(copy, std::string(100000, 'x'));
}

}  // namespace
}  // namespace lacuna
