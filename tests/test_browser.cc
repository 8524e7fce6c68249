// The pages in a real browser: the one of lacuna serve, and the example that predicts with an exported model. Needs npm
// (tools/npm-packages.sh) and Chromium; says so where they are absent.
#include <sys/wait.h>

#include <fstream>

#include "base/files.h"
#include "serve_model.h"

namespace lacuna {
namespace {

constexpr const char* kPackages = " playwright-core@1.65.0 onnxruntime-web@1.30.0";

struct Command {
  int code = 0;
  std::string out;
};
Command shell(const std::string& line) {
  std::FILE* pipe = popen(line.c_str(), "r");
  Command result;
  char buffer[4096];
  for (std::size_t size = 0; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    result.out.append(buffer, size);
  result.code = WEXITSTATUS(pclose(pipe));
  return result;
}

const std::string kModules = std::string(LACUNA_NPM_FOLDER) + "/node_modules";

// Skips the test where there is no browser.
#define NEEDS_BROWSER()                                                                  \
  if (!std::filesystem::exists("/usr/bin/chromium")) GTEST_SKIP() << "no Chromium here"; \
  const Command installed = shell(LACUNA_SOURCE_DIR "/tools/npm-packages.sh " +          \
                                  std::string(LACUNA_NPM_FOLDER) + kPackages + " 2>&1"); \
  if (installed.code == 77) GTEST_SKIP() << installed.out;                               \
  ASSERT_EQ(installed.code, 0) << installed.out

// Rows 0, 1 and 2; row 1 without its second view, row 2 with the second alone.
std::string rows_as_csv(const SmallModel& small) {
  std::string text;
  for (std::size_t i = 0; i < 3; ++i) {
    text += "item " + std::to_string(i);
    for (std::size_t v = 0; v < 3; ++v)
      for (const float x : small.row(v, i)) {
        text += ",";
        if (!(i == 1 && v == 1) && !(i == 2 && v != 1)) text += fmt::format("{}", x);
      }
    text += "\n";
  }
  return text;
}
constexpr unsigned kViewsOfRow[] = {7, 5, 2};

// The names of the labels of one row, best first.
std::vector<std::string> best_labels(const SmallModel& small, std::size_t row) {
  Matrix<float> scores = small.expected(small.path, row, 1, kViewsOfRow[row]);
  Model::load(small.path).calibrate(scores);
  std::vector<std::size_t> order(scores.cols());
  for (std::size_t j = 0; j < order.size(); ++j) order[j] = j;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores(0, a) > scores(0, b); });
  std::vector<std::string> names;
  for (const std::size_t j : order) names.push_back(small.data.label_names[j]);
  return names;
}

TEST(Browser, ThePageOfTheServer) {
  NEEDS_BROWSER();
  const SmallModel small;
  ServeProcess server({small.path});
  write_text(small.folder / "rows.csv", rows_as_csv(small));
  const std::string stem = small.folder / "page";
  const Command ended = shell("node " LACUNA_SOURCE_DIR "/tests/browser/serve.mjs " + kModules +
                              " http://127.0.0.1:" + std::to_string(server.port()) + "/ " +
                              (small.folder / "rows.csv") + " " + stem);
  ASSERT_EQ(ended.code, 0);
  const auto result = nlohmann::json::parse(ended.out);
  for (const char* width : {"1280", "390"}) {
    const auto& seen = result.at(width);
    EXPECT_EQ(seen["strangers"].size(), 0u) << seen["strangers"];
    EXPECT_EQ(seen["errors"].size(), 0u) << seen["errors"];
    EXPECT_LE(seen["overflow"].get<int>(), 0) << width;
    ASSERT_EQ(seen["cards"].size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& card = seen["cards"][i];
      EXPECT_EQ(card["title"], "item " + std::to_string(i));
      const auto best = best_labels(small, i);
      ASSERT_EQ(card["tags"].size(), 5u);
      for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(card["tags"][k]["label"], best[k]);
      EXPECT_EQ(card["tags"][0]["views"].size(), i == 0 ? 3u : i == 1 ? 2u : 1u);
    }
    EXPECT_NE(seen["message"].get<std::string>().find("2 cells"), std::string::npos) << seen["message"];
    EXPECT_FALSE(seen["tokenShown"].get<bool>());
    const auto too_many = seen["tooMany"].get<std::string>();
    EXPECT_NE(too_many.find("29 cells"), std::string::npos) << too_many;
    EXPECT_NE(too_many.find("28 columns"), std::string::npos) << too_many;
    EXPECT_EQ(seen["counted"], 1);
    EXPECT_TRUE(std::filesystem::exists(stem + "-" + width + ".png"));
  }
}

TEST(Browser, ThePageMatchesColumnsByTheirNames) {
  NEEDS_BROWSER();
  SmallModel small;
  std::vector<std::string> names, cells;
  for (std::size_t v = 0; v < 3; ++v) {
    for (std::size_t j = 0; j < small.data.views[v].columns(); ++j)
      names.push_back(fmt::format("{}_{}", "abc"[v], j));
    small.data.views[v].column_names.assign(names.end() - static_cast<std::ptrdiff_t>(small.row(v, 0).size()),
                                            names.end());
    for (const float x : small.row(v, 0)) cells.push_back(fmt::format("{}", x));
  }
  small.train(small.path, 1);
  const auto table = [](const auto& titles, const auto& row) {
    return fmt::format("id,{}\nx,{}\n", fmt::join(titles, ","), fmt::join(row, ","));
  };
  std::vector<std::string> texts = {table(names, cells)};
  std::vector<std::string> backward(names.rbegin(), names.rend()), values(cells.rbegin(), cells.rend());
  texts.push_back(table(backward, values));
  texts.push_back(table(names, values));  // other values: other tags, so that the names above did it
  std::vector<std::string> wrong = names;
  wrong[3] = "stranger";
  texts.push_back(table(wrong, cells));
  wrong.resize(20);
  texts.push_back(table(wrong, cells));
  write_text(small.folder / "texts.json", nlohmann::json(texts).dump());
  ServeProcess server({small.path});
  const Command ended =
      shell("node " LACUNA_SOURCE_DIR "/tests/browser/names.mjs " + kModules +
            " http://127.0.0.1:" + std::to_string(server.port()) + "/ " + (small.folder / "texts.json"));
  ASSERT_EQ(ended.code, 0);
  const auto result = nlohmann::json::parse(ended.out);
  EXPECT_EQ(result["errors"].size(), 0u) << result["errors"];
  const auto& seen = result["seen"];
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0]["message"], "");
  EXPECT_EQ(seen[0]["tags"].size(), 5u);
  EXPECT_EQ(seen[1], seen[0]);
  EXPECT_NE(seen[2]["tags"], seen[0]["tags"]);
  for (const char* words : {"28 names", "28 columns", "unknown to it: stranger", "missing: a_3"})
    EXPECT_NE(seen[3]["message"].get<std::string>().find(words), std::string::npos) << seen[3];
  for (const char* words : {"20 names", "28 columns"})
    EXPECT_NE(seen[4]["message"].get<std::string>().find(words), std::string::npos) << seen[4];
}

TEST(Browser, TheExamplePredictsWithoutSendingAnything) {
  NEEDS_BROWSER();
  SmallModel small;
  for (int j = 0; j < 9; ++j) small.data.views[1].column_names.push_back(fmt::format("gene {}", j));
  small.train(small.path, 1);
  const std::string site = small.folder / "site";
  make_directories(site + "/ort");
  const Ended exported = run({"export", small.path, site + "/model.onnx"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  for (const char* name : {"index.html", "page.mjs", "predict.mjs"})
    std::filesystem::copy_file(std::string(LACUNA_SOURCE_DIR "/examples/browser/") + name, site + "/" + name);
  for (const char* name : {"ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"})
    std::filesystem::copy_file(kModules + "/onnxruntime-web/dist/" + name, site + "/ort/" + name);
  write_text(small.folder / "rows.csv", rows_as_csv(small));
  const Command ended =
      shell("node " LACUNA_SOURCE_DIR "/tests/browser/example.mjs " + kModules + " " + site + " " +
            (small.folder / "rows.csv") + " " + (small.folder / "example.png"));
  ASSERT_EQ(ended.code, 0);
  const auto seen = nlohmann::json::parse(ended.out);
  EXPECT_EQ(seen["strangers"].size(), 0u) << seen["strangers"];
  EXPECT_EQ(seen["posts"].size(), 0u) << seen["posts"];
  EXPECT_EQ(seen["errors"].size(), 0u) << seen["errors"];
  ASSERT_EQ(seen["rows"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen["rows"][i]["id"], "item " + std::to_string(i));
    const auto best = best_labels(small, i);
    for (std::size_t k = 0; k < 5; ++k)
      EXPECT_TRUE(seen["rows"][i]["tags"][k]["text"].get<std::string>().starts_with(best[k] + " "))
          << seen["rows"][i]["tags"][k] << " is not " << best[k];
  }
  EXPECT_NE(seen["message"].get<std::string>().find("28 columns"), std::string::npos) << seen["message"];
  const auto too_many = seen["tooMany"].get<std::string>();
  EXPECT_NE(too_many.find("has 4 cells"), std::string::npos) << too_many;
  EXPECT_NE(too_many.find("3 columns"), std::string::npos) << too_many;
  EXPECT_EQ(seen["ids"], nlohmann::json({"7", "8"}));
  EXPECT_EQ(seen["missing"], nlohmann::json({false, true}));
  EXPECT_EQ(seen["turned"].dump(), "[[1,2],[3]]");
  EXPECT_EQ(seen["counted"].dump(), "[[4,5],[6]]");
  for (const char* words : {"3 names", "3 columns", "unknown: other", "missing: z"})
    EXPECT_NE(seen["strange"].get<std::string>().find(words), std::string::npos) << seen["strange"];
  EXPECT_EQ(seen["written"], nlohmann::json({nullptr, small.data.views[1].column_names, nullptr}));
}

}  // namespace
}  // namespace lacuna
