// The report: escaping in all its forms, sizes, and the page in a real browser.
#include "experiments/report.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/readers.h"
#include "experiments/details.h"
#include "experiments/plots.h"
#include "experiments/statistics.h"
#include "experiments/work.h"
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
  const BenchOutcome outcome =
      work_off(distinct_cells({&plan, 1}), options, store, shelf, [](const BenchProgress&) {});
  ASSERT_EQ(outcome.failed, 0u);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// Cells of networks run at the same time where a GPU is shared; each is the same whoever runs beside it.
TEST(Work, CellsAtTheSameTimeHaveTheSameResults) {
  const TemporaryDirectory directory;
  const std::string path = directory / "data.npz";
  write_dataset(evil_data(3), path);
  BenchOptions options = BenchOptions::defaults(Experiment::table);
  options.data = {path};
  options.methods = {"dicnet", "mtd", "prior"};
  options.set = {"epochs=2"};
  options.mask.repeats = 3;
  std::map<std::string, std::string> alone;
  for (const std::size_t at_once : {1, 4}) {
    options.at_once = at_once;
    options.out = directory / std::to_string(at_once);
    Shelf shelf;
    const Plan plan = make_plan(Experiment::table, options, "lacuna bench table", shelf);
    CellStore store(options.out);
    const auto cells = distinct_cells({&plan, 1});
    const BenchOutcome outcome = work_off(cells, options, store, shelf, [](const BenchProgress&) {});
    EXPECT_EQ(outcome.done, 9u);
    EXPECT_EQ(outcome.ran, 9u);
    for (const auto* cell : cells)
      for (const char* file : {"spec.json", "result.json"}) {
        const std::string text = read_text(store.cell_path(cell->id) + "/" + file);
        if (at_once == 1) alone[cell->id + file] = text;
        EXPECT_TRUE(alone[cell->id + file] == text) << cell->id << " " << file;
      }
  }
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
                    .notes = {},
                    .origin = {{"protocol", "strict"}, {"seed", "1"}}};
  TableCell best = TableCell::number(.41549, 3);
  best.deviation = .0078;
  best.best = true;
  table.rows = {{"a,\"b\"", best}, {"c_d", TableCell::number(std::nan(""), 3)}};
  EXPECT_EQ(table.csv(),
            "method,AP,AP sd,protocol,seed\n\"a,\"\"b\"\"\",0.41549,0.0078,strict,1\nc_d,,,strict,1\n");
  EXPECT_NE(table.markdown().find("| a,\"b\" | **0.415 ± 0.008** |"), std::string::npos);
  EXPECT_NE(table.markdown().find("| c\\_d | - |"), std::string::npos);
  EXPECT_NE(table.latex().find("a,\"b\" & \\textbf{0.415}$_{0.008}$ \\\\"), std::string::npos);
  EXPECT_NE(table.latex().find("\\toprule"), std::string::npos);
  EXPECT_NE(table.html().find("<td class=\"n best\" data-v=\"0.41549\">0.415<small>±0.008</small></td>"),
            std::string::npos);
}

TEST(Tables, ShortTimesKeepTheirDigits) {
  EXPECT_EQ(TableCell::significant(.000126).text, "0.000126");
  EXPECT_EQ(TableCell::significant(.0374).text, "0.0374");
  EXPECT_EQ(TableCell::significant(12.64).text, "12.6");
  EXPECT_EQ(TableCell::significant(1264).text, "1264");
  EXPECT_EQ(TableCell::significant(0).text, "0");
  EXPECT_EQ(TableCell::significant(std::nan("")).text, "-");
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

TEST(Plots, TheLabelOfAShortBarOfColoursIsSeenWhole) {
  HeatMap plot{.value_label = "mean |Shapley value| of a view", .columns = {"a"}, .rows = {"tag"}};
  plot.panels.push_back({"", Matrix<double>(1, 1)});
  plot.colours = {0, 1};
  const Svg svg = draw(plot);
  EXPECT_GE(svg.height(), text_width(plot.value_label));
  // It is turned around its own middle, which leaves room for half of it on both sides.
  const std::string text = svg.inline_text();
  const std::size_t turned = text.find("rotate(-90");
  ASSERT_NE(turned, std::string::npos) << text;
  double x = 0, y = 0;
  ASSERT_EQ(std::sscanf(text.c_str() + turned, "rotate(-90%*[ ,]%lf%*[ ,]%lf", &x, &y), 2)
      << text.substr(turned, 40);
  EXPECT_GE(y, text_width(plot.value_label) / 2);
  EXPECT_LE(y + text_width(plot.value_label) / 2, svg.height());
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

// A section with nothing in it would look like a mistake.
TEST(Report, OneRankedMethodHasNothingToBeTestedAgainst) {
  const TemporaryDirectory directory;
  const auto said = [&](const std::vector<std::string>& methods, const std::string& out) {
    run_table(evil_data(3), methods, directory, out);
    const std::string html = read_text(write_report(directory / out));
    const auto begin = html.find("Significance</h2>");
    EXPECT_NE(begin, std::string::npos);
    return html.substr(begin, html.find("<h2", begin) - begin);
  };
  const std::string one = said({"glocal", "prior"}, "one"), two = said({"glocal", "linear", "prior"}, "two");
  EXPECT_NE(one.find("and here GLOCAL is the only one"), std::string::npos) << one;
  EXPECT_EQ(one.find("All tests use"), std::string::npos) << one;
  EXPECT_EQ(two.find("is the only one"), std::string::npos) << two;
  EXPECT_NE(two.find("All tests use AP"), std::string::npos) << two;
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
    const BenchOutcome outcome =
        work_off(distinct_cells({&plan, 1}), options, store, shelf, [](const BenchProgress&) {});
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
                           "similarity-tiny-sample", "similarity-tiny-mean", "missing-tiny-views",
                           "missing-tiny-labels", "timing-time-tiny", "complete-dots-tiny"}) {
    ASSERT_TRUE(fs::exists(plots + name + ".svg")) << name;
    EXPECT_GE(count(read_text(plots + name + ".svg"), "<title>"), 3u)
        << name;  // the drawing's own, and marks
  }
  // What could not be drawn is said where it is missing; the progression stands in one drawing.
  EXPECT_NE(page.find("Not shown: 0.9. With 2 views at most 0.5 of them can be missing"), std::string::npos);
  const std::string maps = read_text(plots + "similarity-tiny-mean.svg");
  EXPECT_NE(maps.find("after epoch 0"), std::string::npos);
  EXPECT_NE(maps.find("after epoch 3"), std::string::npos);
  EXPECT_NE(maps.find(">cosine</text>"), std::string::npos);  // the bar of colours has a name
  EXPECT_NE(page.find("one repetition, so no deviation is known"), std::string::npos);
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

  // Commands wrap and can be copied.
  EXPECT_NE(plain.find("<div class=\"command\"><pre tabindex=\"0\">"), std::string::npos);
  EXPECT_NE(plain.find(">copy</button>"), std::string::npos);

  // Both colour schemes are drawn, and differ.
  for (const char* theme : {"light", "dark"})
    browse(path + "?theme=" + theme,
           "--window-size=1200,1600 --screenshot=" + (directory / (std::string(theme) + ".png")),
           directory / "profile");
  EXPECT_GT(fs::file_size(directory / "light.png"), 20000u);
  EXPECT_NE(read_text(directory / "light.png"), read_text(directory / "dark.png"));
}

// A page about a model with everything that such a page can hold, and with long names.
ModelReport full_model_report() {
  ModelReport report;
  report.title = "A model with a rather long name on a data set with a longer one";
  report.command =
      "lacuna train /a/folder/with/a/long/name/that/cannot/be/broken/at/any/blank/data.npz --out " +
      std::string(120, 'm');
  report.facts = {{"model", std::string(200, 'x')}, {"method", "Lacuna"}};
  report.views = {{"a view with a long name", 64, .5, .4}, {"b", 3, 0, 1}};
  for (const auto& name : metric_names()) {
    report.metrics[name] = .6;
    report.intervals[name] = {.55, .65};
    report.floor[name] = .4;
  }
  report.metrics_part = "validation";
  report.caution = "These rows also chose the epoch.";
  report.decision = "One rule decides throughout this page.";
  for (int e = 1; e <= 30; ++e)
    report.history.push_back({{"epoch", e},
                              {"kept", std::min(e, 17)},
                              {"losses", {{"total", 1. / e}, {"bce", .5 / e}}},
                              {"validation", {{"AP", .6 - .5 / e}, {"AUC", .7 - .5 / e}}}});
  Matrix<float> scores(60, 9);
  Matrix<std::int8_t> truth(60, 9);
  Matrix<std::uint8_t> decided(60, 9);
  Random random(3, Purpose::test);
  for (std::size_t i = 0; i < 60; ++i)
    for (std::size_t j = 0; j < 9; ++j) {
      scores(i, j) = random.uniform();
      truth(i, j) = random.uniform() < scores(i, j) ? 1 : 0;
      decided(i, j) = scores(i, j) > .5f;
    }
  std::vector<std::string> names;
  for (std::size_t j = 0; j < 9; ++j)
    names.push_back(j == 0 ? std::string(90, 'l') : "label " + std::to_string(j));
  report.details = prediction_details(scores, truth, decided, names, true);
  for (auto& label : report.details["labels"]) label["threshold"] = .5;
  report.details["calibrated"] = reliability_details(scores, truth);
  report.options = {{"epochs", 30}};
  nlohmann::json labels = nlohmann::json::array();
  for (const auto& name : names) labels.push_back({{"label", name}, {"effect", .2}, {"ap_loss", .01}});
  for (const char* view : {"a view with a long name", "b"})
    report.importance["views"].push_back({{"view", view},
                                          {"items", 30},
                                          {"effect", .4},
                                          {"effect_interval", {.3, .5}},
                                          {"ap_loss", .02},
                                          {"ap_loss_interval", {-.01, .05}},
                                          {"labels", labels}});
  report.choice = {{"members",
                    {{{"member", "lacuna"}, {"weight", 0.}, {"AP", .81}, {"left_out", "adds too little"}},
                     {{"member", std::string(90, 'c')}, {"weight", 1.}, {"AP", .84}},
                     {{"member", "lvsl"}, {"left_out", "beyond the budget"}}}},
                   {"judged_rows", 88},
                   {"crossed", false},
                   {"measure", "AP"},
                   {"AP", .845},
                   {"gain", .03},
                   {"error", .02}};
  report.importance["patterns"] = {{{"views", {"b"}}, {"items", 12}, {"AP", .41}, {"AP_interval", {.3, .5}}}};
  return report;
}

TEST(Report, AModelsPageSaysWhatItShould) {
  TemporaryDirectory directory;
  write_model_report(full_model_report(), directory / "m.html");
  const std::string page = read_text(directory / "m.html");
  for (const char* part : {"a view with a long name",
                           "missing, training",
                           "95 % interval",
                           "0.550 to 0.650",
                           "floor",
                           "average precision: how many of the labels ranked",
                           "These rows also chose the epoch.",
                           "One rule decides",
                           "kept: epoch 17",
                           "the total as it is minimised",
                           "threshold",
                           "calibrated",
                           "mean |Shapley value|",
                           "AP lost without it",
                           "Accuracy by available views",
                           "0.410 (0.300 to 0.500)",
                           "judged on 88 rows with labels of both kinds that were held out",
                           "adds too little",
                           "beyond the budget",
                           "AP 0.8450, +0.0300 ± 0.0200 over the first alone",
                           "Metrics of the first candidate, which got no weight, on validation rows"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

// On a telephone and on a wide screen: nothing is wider than the screen (tables scroll inside their own frame), and no
// text of a chart is smaller than 10.5 pixels.
TEST_F(Browser, NothingRunsOffANarrowScreen) {
  TemporaryDirectory directory;
  run_table(evil_data(20), {"prior", "naim3l", "cdmm"}, directory, "page");
  write_report(directory / "page");
  write_model_report(full_model_report(), directory / "page/model.html");
  for (const char* name : {"report.html", "model.html"}) {
    std::string page = read_text(directory / ("page/" + std::string(name)));
    const auto policy = page.find("<meta http-equiv=\"Content-Security-Policy\"");
    page.erase(policy, page.find('>', policy) + 1 - policy);
    page.insert(page.rfind("</body>"), R"html(<script>
addEventListener('load', function () {
  var wide = [], small = 9999;
  document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  document.querySelectorAll('body *').forEach(function (e) {
    var box = e.getBoundingClientRect();
    if (box.width === 0 || e.closest('.scroll > *') || e.closest('script')) return;
    if (box.right > innerWidth + 1 || box.left < -1) wide.push(e.tagName + '.' + e.getAttribute('class') + ':' + Math.round(box.right));
  });
  document.querySelectorAll('svg.plot text').forEach(function (t) {
    var svg = t.ownerSVGElement, width = svg.getBoundingClientRect().width;
    if (width > 0) small = Math.min(small, parseFloat(getComputedStyle(t).fontSize) * width / svg.viewBox.baseVal.width);
  });
  parent.postMessage('width ' + innerWidth + ' overflow ' + (document.documentElement.scrollWidth - document.documentElement.clientWidth) +
                     ' wide [' + wide.slice(0, 5).join(' ') + '] small ' + (small >= 10.5), '*');
});
</script>)html");
    const std::string driven = directory / ("page/driven-" + std::string(name));
    write_text(driven, page);
    // A frame can be as narrow as a telephone; the browser's own window cannot.
    for (const char* width : {"390", "1280"}) {
      const std::string frame = directory / "page/frame.html";
      write_text(
          frame,
          "<!doctype html><title>nothing</title><script>addEventListener('message',function(e){document.title"
          "=e.data;});</script><iframe width=\"" +
              std::string(width) + "\" height=\"900\" style=\"border:0\" src=\"driven-" + name +
              "\"></iframe>");
      const std::string result =
          browse(frame, "--window-size=1400,1000 --hide-scrollbars --dump-dom", directory / "profile");
      const auto at = result.find("<title>width ");
      ASSERT_NE(at, std::string::npos) << result.substr(0, 2000);
      EXPECT_EQ(result.substr(at, result.find("</title>", at) - at),
                "<title>width " + std::string(width) + " overflow 0 wide [] small true")
          << name;
    }
  }
}

}  // namespace
}  // namespace lacuna
