// The report: escaping in all its forms, sizes, and the page in a real browser.
#include "experiments/report.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/readers.h"
#include "experiments/bench.h"
#include "experiments/details.h"
#include "experiments/statistics.h"
#include "temporary.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const std::string kEvil[] = {
    "<script>alert('x')</script>",    "\"><img src=x onerror=alert(1)>",
    "two\nlines\tand a tab",          "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D",
    "50 % of $x_1 & y^2 \\ {z} ~ #1", "a|b*c`d`_e_",
    "]]></style><script>1</script>",  "\x01 control",
};

// 60 rows, one dense view with an evil name, labels with evil names and as many more as asked for.
Dataset evil_data(std::size_t labels) {
  Dataset data;
  data.name = "evil <b>set</b> \"quoted\"";
  data.rows = 60;
  Random random(1, Purpose::test);
  for (const char* name : {"view </svg><script>alert(2)</script>", "plain"}) {
    Matrix<float> X(data.rows, 3);
    for (float& x : X.values()) x = random.normal();
    View view;
    view.name = name;
    view.features = Table<float>(std::move(X));
    data.views.push_back(std::move(view));
  }
  Matrix<std::int8_t> Y(data.rows, labels);
  for (auto& y : Y.values()) y = random.uniform() < .3f ? 1 : 0;
  data.labels = std::move(Y);
  for (std::size_t j = 0; j < labels; ++j)
    data.label_names.push_back(j < std::size(kEvil) ? kEvil[j] : "label " + std::to_string(j));
  data.check("test");
  return data;
}

// A folder with one small table experiment over the given data.
void run_table(const Dataset& data, const std::vector<std::string>& methods,
               const TemporaryDirectory& directory, const std::string& out) {
  const std::string path = directory / (out + ".npz");
  write_dataset(data, path);
  BenchOptions options = BenchOptions::defaults(Experiment::table);
  options.data = {path};
  options.methods = methods;
  options.mask.repeats = 2;
  options.out = directory / out;
  Shelf shelf;
  const Plan plan = make_plan(Experiment::table, options, "lacuna bench table --data 'evil <set>'", shelf);
  CellStore store(options.out);
  record_plan(plan, options, store);
  const BenchOutcome outcome = work_off(plan, options, store, shelf, [](const BenchProgress&) {});
  ASSERT_EQ(outcome.failed, 0u);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(Escaping, EveryFormKeepsItsMarkupClean) {
  EXPECT_EQ(escape_xml("<a href=\"x\">&'\n\x02"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&#10;\xEF\xBF\xBD");
  EXPECT_EQ(
      escape_latex("50% $x_1$ & \\{~^}#\n<"),
      "50\\% \\$x\\_1\\$ \\& \\textbackslash{}\\{\\textasciitilde{}\\textasciicircum{}\\}\\# \\textless{}");
  EXPECT_EQ(escape_markdown("a|b\n*c* <d>"), "a\\|b \\*c\\* &lt;d>");
  EXPECT_TRUE(rc::check("no text can open a tag or leave an attribute", [](const std::string& text) {
    const std::string escaped = escape_xml(text);
    RC_ASSERT(escaped.find_first_of("<>\"'\n") == std::string::npos);
  }));
}

TEST(Tables, FourFormsOfOneTable) {
  ResultTable table{.name = "t",
                    .caption = "Caption, with 100 %",
                    .header = {"method", "AP"},
                    .rows = {},
                    .rules = {},
                    .notes = {}};
  TableCell best = TableCell::number(.41549, 3);
  best.deviation = .0078;
  best.best = true;
  table.rows = {{"a,\"b\"", best}, {"c_d", TableCell::number(std::nan(""), 3)}};
  EXPECT_EQ(table.csv(), "method,AP,AP sd\n\"a,\"\"b\"\"\",0.41549,0.0078\nc_d,,\n");
  EXPECT_NE(table.markdown().find("| a,\"b\" | **0.415 ± 0.008** |"), std::string::npos);
  EXPECT_NE(table.markdown().find("| c\\_d | - |"), std::string::npos);
  EXPECT_NE(table.latex().find("a,\"b\" & \\textbf{0.415}$_{0.008}$ \\\\"), std::string::npos);
  EXPECT_NE(table.latex().find("\\toprule"), std::string::npos);
  EXPECT_NE(table.html().find("<td class=\"n best\" data-v=\"0.41549\">0.415<small>±0.008</small></td>"),
            std::string::npos);
}

TEST(Details, PrecisionRecallOfAKnownOrder) {
  Matrix<float> scores(5, 1);
  Matrix<std::int8_t> truth(5, 1);
  const float s[] = {.9f, .8f, .7f, .7f, .1f};
  const std::int8_t y[] = {1, 0, 1, 0, kUnknown};
  for (std::size_t i = 0; i < 5; ++i) scores(i, 0) = s[i], truth(i, 0) = y[i];
  const auto points = precision_recall(scores, truth, 0);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_DOUBLE_EQ(points[0].recall, .5);
  EXPECT_DOUBLE_EQ(points[0].precision, 1);
  EXPECT_DOUBLE_EQ(points[1].precision, .5);
  EXPECT_DOUBLE_EQ(points[2].recall, 1);
  EXPECT_DOUBLE_EQ(points[2].precision, .5);
}

TEST(Report, HostileNamesStayText) {
  TemporaryDirectory directory;
  run_table(evil_data(9), {"prior", "naim3l"}, directory, "evil");
  const std::string page = read_text(write_report(directory / "evil"));
  EXPECT_EQ(count(page, "<script>"), 1u);  // the page's own
  EXPECT_EQ(count(page, "</style>"), 1u);
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<b>"), 0u);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), std::string::npos);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
  std::size_t plots = 0, tables = 0;
  for (const auto& entry : fs::directory_iterator(directory / "evil/plots")) {
    const std::string svg = read_text(entry.path().string());
    EXPECT_EQ(svg.find("<script"), std::string::npos) << entry.path();
    ++plots;
  }
  for (const auto& entry : fs::directory_iterator(directory / "evil/tables"))
    tables += entry.path().extension() == ".tex";
  EXPECT_GE(plots, 3u);
  EXPECT_GE(tables, 4u);
}

TEST(Report, TenThousandLabelsStaySmall) {
  TemporaryDirectory directory;
  run_table(evil_data(10000), {"prior"}, directory, "wide");
  const std::string path = write_report(directory / "wide");
  EXPECT_LT(fs::file_size(path), 1'000'000u);
  std::size_t lines = 0;
  for (const auto& entry : fs::directory_iterator(directory / "wide/tables"))
    if (entry.path().filename().string().ends_with("labels.csv"))
      lines = count(read_text(entry.path().string()), "\n");
  EXPECT_GE(lines, 10001u);
}

// Every experiment of the program on tiny data in one folder: the page has each part, with marks in each
// chart.
TEST(Report, EveryExperimentHasItsPart) {
  TemporaryDirectory directory;
  Dataset data = evil_data(5);
  data.name = "tiny";
  write_dataset(data, directory / "tiny.npz");
  CellStore store(directory / "all");
  Shelf shelf;
  for (const Experiment experiment : {Experiment::complete, Experiment::ablation, Experiment::sensitivity,
                                      Experiment::similarity, Experiment::timing, Experiment::missing}) {
    BenchOptions options = BenchOptions::defaults(experiment);
    options.data = {directory / "tiny.npz"};
    options.out = directory / "all";
    options.mask.repeats = 1;
    if (options.methods.empty()) options.methods = {"prior", "cdmm"};
    options.set = {"mtd.width=0.02", "mtd.embedding=4", "mtd.epochs=3"};
    if (options.methods[0] == "prior") options.set.clear();
    options.alphas = options.betas = {1e-3, 1};
    options.gammas = {.1, 1};
    options.sigmas = {0, .5};
    options.epochs = {0, 3};
    options.rates = {0, .4, .9};
    const Plan plan = make_plan(experiment, options, "lacuna bench", shelf);
    record_plan(plan, options, store);
    const BenchOutcome outcome = work_off(plan, options, store, shelf, [](const BenchProgress&) {});
    EXPECT_EQ(outcome.failed, 0u) << experiment_name(experiment);
    // Two views: nine tenths of them cannot be missing.
    EXPECT_EQ(plan.remarks.size(), experiment == Experiment::missing ? 1u : 0u);
  }
  const std::string page = read_text(write_report(directory / "all"));
  for (const char* heading : {"Results without gaps", "Ablation", "Sensitivity", "Channels",
                              "Against missing data", "Time and memory", "Protocol", "How to reproduce it"})
    EXPECT_NE(page.find("<h2>" + std::string(heading)), std::string::npos) << heading;
  const std::string plots = directory / "all/plots/";
  for (const char* name : {"complete-radar-tiny", "sensitivity-tiny-mtd_authors-alpha-beta",
                           "sensitivity-tiny-mtd_authors-gamma", "sensitivity-tiny-mtd_authors-sigma",
                           "similarity-tiny-sample-0", "similarity-tiny-mean-3", "missing-tiny-views",
                           "missing-tiny-labels", "timing-time-tiny"}) {
    ASSERT_TRUE(fs::exists(plots + name + ".svg")) << name;
    EXPECT_GE(count(read_text(plots + name + ".svg"), "<title>"), 3u)
        << name;  // the drawing's own, and marks
  }
  // The diagonal of a channel map is 1, everything else a cosine.
  for (const auto& results : load_results(store)) {
    if (results.kind != "similarity") continue;
    const auto& epochs = results.cells.at(0).result.at("similarity").at("epochs");
    ASSERT_EQ(epochs.size(), 2u);
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = 0; b < 4; ++b) {
        const auto& value = epochs[1].at("mean")[a][b];
        ASSERT_EQ(value.is_number(), a % 2 == b % 2);  // with half of two views missing no row has both
        if (!value.is_number()) continue;
        EXPECT_LE(std::abs(value.get<double>()), 1 + 1e-6);
        if (a == b) {
          EXPECT_NEAR(value.get<double>(), 1, 1e-5);
        }
      }
  }
}

TEST(Report, AnEmptyFolderIsAUsageError) {
  TemporaryDirectory directory;
  EXPECT_THROW(write_report(directory / "nothing"), Error);
}

// Chromium's output for one page, or nothing if it is not installed. Console messages go to stderr, which is
// kept too.
std::string browse(const std::string& path, const std::string& more, const std::string& profile) {
  const std::string command =
      "timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" +
      profile + " --enable-logging=stderr --v=0 --virtual-time-budget=4000 " + more + " 'file://" + path +
      "' 2>&1";
  std::string output;
  std::FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 65536> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.append(buffer.data(), n);
  pclose(pipe);
  return output;
}

class Browser : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "needs chromium (tools/install-packages.sh test)";
  }
};

TEST_F(Browser, OpensWithoutErrorsSortsFiltersAndHovers) {
  TemporaryDirectory directory;
  run_table(evil_data(20), {"prior", "naim3l"}, directory, "page");
  const std::string path = write_report(directory / "page");

  // As it is, with its content policy: the own script runs (it marks the root), the console stays empty.
  const std::string plain = browse(path, "--dump-dom", directory / "profile");
  EXPECT_NE(plain.find("<html lang=\"en\" class=\"js\""), std::string::npos) << plain.substr(0, 2000);
  EXPECT_EQ(plain.find("CONSOLE"), std::string::npos);
  EXPECT_NE(plain.find("data-sort"), std::string::npos);

  // A copy with a driver at the end that plays the reader; its findings become the title.
  std::string page = read_text(path);
  const auto policy = page.find("<meta http-equiv=\"Content-Security-Policy\"");
  page.erase(policy, page.find('>', policy) + 1 - policy);
  page.insert(page.rfind("</body>"), R"html(<script>
addEventListener('load', function () {
  var found = [];
  function column(table, k) { return Array.from(table.tBodies[0].rows).map(function (r) { return parseFloat(r.cells[k].dataset.v); }); }
  var labels = Array.from(document.querySelectorAll('table.data')).find(function (t) { return t.tHead.rows[0].cells[0].textContent === 'label'; });
  var heads = labels.tHead.rows[0].cells;
  heads[2].click();
  var down = column(labels, 2);
  found.push('falling:' + down.every(function (v, i) { return i === 0 || down[i - 1] >= v; }));
  heads[2].click();
  var up = column(labels, 2);
  found.push('rising:' + up.every(function (v, i) { return i === 0 || up[i - 1] <= v; }));
  found.push('rows:' + labels.tBodies[0].rows.length);
  var box = labels.closest('figure').querySelector('input');
  box.value = 'label 1'; box.dispatchEvent(new Event('input'));
  found.push('filtered:' + Array.from(labels.tBodies[0].rows).filter(function (r) { return !r.hidden; }).length);
  var marked = document.querySelector('svg.plot [data-tip]');
  marked.dispatchEvent(new MouseEvent('mouseover', { bubbles: true, clientX: 200, clientY: 200 }));
  found.push('tip:' + (!document.getElementById('tip').hidden && document.getElementById('tip').textContent.length > 0));
  var plots = Array.from(document.querySelectorAll('svg.plot'));
  found.push('plots:' + plots.length);
  found.push('empty:' + plots.filter(function (p) { return p.querySelectorAll('[data-tip]').length === 0; }).length);
  document.querySelector('nav button').click();
  found.push('theme:' + document.documentElement.getAttribute('data-theme'));
  document.title = 'driver ' + found.join(' ');
});
</script>)html");
  const std::string driven = directory / "page/driven.html";
  write_text(driven, page);
  const std::string result = browse(driven, "--dump-dom", directory / "profile");
  const auto at = result.find("<title>driver ");
  ASSERT_NE(at, std::string::npos) << result.substr(0, 3000);
  const std::string found = result.substr(at, result.find("</title>", at) - at);
  EXPECT_NE(found.find("falling:true rising:true rows:20 filtered:10 tip:true"), std::string::npos) << found;
  EXPECT_NE(found.find("empty:0 theme:dark"), std::string::npos) << found;
  EXPECT_EQ(found.find("plots:0"), std::string::npos) << found;
  EXPECT_EQ(result.find("CONSOLE"), std::string::npos)
      << result.substr(result.find("CONSOLE") > result.size() ? 0 : result.find("CONSOLE"), 400);

  // Both colour schemes are drawn, and differ.
  for (const char* theme : {"light", "dark"})
    browse(path + "?theme=" + theme,
           "--window-size=1200,1600 --screenshot=" + (directory / (std::string(theme) + ".png")),
           directory / "profile");
  EXPECT_GT(fs::file_size(directory / "light.png"), 20000u);
  EXPECT_NE(read_text(directory / "light.png"), read_text(directory / "dark.png"));
}

}  // namespace
}  // namespace lacuna
