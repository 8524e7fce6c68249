#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "checks.h"
#include "data/folds.h"
#include "data/items.h"
#include "data/rates.h"
#include "data/stratify.h"

namespace lacuna {
namespace {

// n rows, m views of one column, c labels; `missing` and `unknown` are the shares of gaps that the data have
// themselves.
Dataset small_data(std::size_t n, std::size_t m, std::size_t c, std::uint64_t seed, float missing = 0,
                   float unknown = 0) {
  Random random(seed, Purpose::test);
  Dataset data;
  data.name = "small";
  data.rows = n;
  for (std::size_t v = 0; v < m; ++v)
    data.views.push_back({"v" + std::to_string(v), Table<float>(Matrix<float>(n, 1)), {}});
  Matrix<std::uint8_t> W(n, m);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t v = 0; v < m; ++v) W(i, v) = random.uniform() >= missing;
    W(i, random.below(m)) = 1;
  }
  Matrix<std::int8_t> Y(n, c);
  for (auto& y : Y.values()) y = random.uniform() < unknown ? kUnknown : random.uniform() < .3f;
  for (std::size_t j = 0; j < c; ++j) data.label_names.push_back("l" + std::to_string(j));
  data.present = std::move(W);
  data.labels = std::move(Y);
  return data;
}

std::size_t lost_of(double rate, std::size_t n) {
  return static_cast<std::size_t>(std::floor(rate * static_cast<double>(n) + 1e-9));
}

void expect_exact_views(const Dataset& data, const Fold& fold, const std::vector<std::uint32_t>& rows,
                        double rate) {
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    std::size_t existing = 0, kept = 0;
    for (const auto i : rows) {
      existing += data.has(i, v);
      kept += fold.W(i, v);
      EXPECT_TRUE(fold.W(i, v) == 0 || data.has(i, v));
    }
    EXPECT_EQ(kept, existing - lost_of(rate, existing)) << "view " << v;
  }
  for (const auto i : rows) {
    std::size_t left = 0;
    for (std::size_t v = 0; v < data.views.size(); ++v) left += fold.W(i, v);
    EXPECT_GE(left, 1u) << "row " << i;
  }
}

void expect_exact_labels(const Dataset& data, const Fold& fold, const std::vector<std::uint32_t>& rows,
                         double rate) {
  for (std::size_t j = 0; j < data.label_count(); ++j)
    for (const int value : {1, 0}) {
      std::size_t cells = 0, kept = 0;
      for (const auto i : rows) {
        if (data.labels(i, j) == value) ++cells, kept += fold.G(i, j);
        EXPECT_TRUE(data.labels(i, j) != kUnknown || fold.G(i, j) == 0);
      }
      EXPECT_EQ(kept, cells - lost_of(rate, cells)) << "label " << j << " value " << value;
    }
}

TEST(Folds, RatesAreExactAndNobodyLosesEveryView) {
  for (const double rate : {0., .3, .5, .7}) {
    const Dataset data = small_data(211, 4, 6, 1);
    MaskOptions options;
    options.missing_views = options.missing_labels = rate;
    options.repeats = 3;
    const Folds folds = make_folds(data, options);
    ASSERT_EQ(folds.folds.size(), 3u);
    EXPECT_EQ(folds.train_rows(), 148u);  // ceil(147.7)
    EXPECT_EQ(folds.val_rows(), 32u);     // ceil(31.65)
    for (std::size_t r = 0; r < 3; ++r) {
      expect_exact_views(data, folds.folds[r], folds.part_rows(r, Part::all), rate);
      for (const Part part : {Part::train, Part::val, Part::test})
        expect_exact_labels(data, folds.folds[r], folds.part_rows(r, part), rate);
      const auto rows = folds.part_rows(r, Part::all);
      EXPECT_EQ(std::set<std::uint32_t>(rows.begin(), rows.end()).size(), 211u);
    }
    EXPECT_NE(folds.folds[0].order, folds.folds[1].order);
  }
}

// How far the parts' positives lie from their shares, summed over labels.
double imbalance(const Dataset& data, const Folds& folds, std::size_t r) {
  double sum = 0;
  for (const Part part : {Part::train, Part::val, Part::test}) {
    const auto rows = folds.part_rows(r, part);
    for (std::size_t j = 0; j < data.label_count(); ++j) {
      double here = 0, all = 0;
      for (const auto i : rows) here += data.labels(i, j) == 1;
      for (std::size_t i = 0; i < data.rows; ++i) all += data.labels(i, j) == 1;
      sum += std::abs(here - all * static_cast<double>(rows.size()) / static_cast<double>(data.rows));
    }
  }
  return sum;
}

TEST(Folds, StratifiedSplitsSpreadRareLabelsAndKeepSizesAndRates) {
  double ours = 0, theirs = 0;
  EXPECT_TRUE(rc::check("stratified folds", [&] {
    const auto n = *rc::gen::inRange<std::size_t>(20, 300), c = *rc::gen::inRange<std::size_t>(1, 12);
    Dataset data = small_data(n, 3, c, *rc::gen::arbitrary<std::uint64_t>(), .2f, .1f);
    Matrix<std::int8_t> rare(n, c);  // label j has about n / 2^j positives
    for (std::size_t j = 0; j < c; ++j)
      for (std::size_t i = 0; i < n; ++i)
        rare(i, j) = (i * 7 + j) % (std::size_t{1} << j) != 0 ? std::int8_t{0} : data.labels(i, j);
    data.labels = std::move(rare);
    MaskOptions options;
    options.repeats = 2;
    options.missing_views = .3;
    const Folds random = make_folds(data, options);
    options.stratify = true;
    const Folds folds = make_folds(data, options);
    for (std::size_t r = 0; r < 2; ++r) {
      const auto all = folds.part_rows(r, Part::all);
      RC_ASSERT(std::set<std::uint32_t>(all.begin(), all.end()).size() == n);
      expect_exact_views(data, folds.folds[r], all, .3);
      for (const Part part : {Part::train, Part::val, Part::test}) {
        RC_ASSERT(folds.part_rows(r, part).size() == random.part_rows(r, part).size());
        expect_exact_labels(data, folds.folds[r], folds.part_rows(r, part), .5);
      }
      ours += imbalance(data, folds, r);
      theirs += imbalance(data, random, r);
    }
    RC_ASSERT(make_folds(data, options).hash() == folds.hash());
  }));
  EXPECT_LT(ours, theirs / 2);
  // Labels that exclude each other: every part gets its share to within one row.
  Dataset data = small_data(200, 2, 8, 3);
  Matrix<std::int8_t> exclusive(200, 8);
  for (std::size_t i = 0; i < 200; ++i)
    for (std::size_t j = 0; j < 8; ++j) exclusive(i, j) = i % 10 == j;
  data.labels = std::move(exclusive);
  MaskOptions options;
  options.stratify = true;
  options.repeats = 1;
  const Folds folds = make_folds(data, options);
  for (const auto& [part, share] :
       {std::pair(Part::train, .7), std::pair(Part::val, .15), std::pair(Part::test, .15)})
    for (std::size_t j = 0; j < 8; ++j) {
      double here = 0;
      for (const auto i : folds.part_rows(0, part)) here += data.labels(i, j) == 1;
      EXPECT_LE(std::abs(here - share * 20), 1) << part_name(part) << " label " << j;
    }
}

TEST(Folds, ScopePartIsExactInsideEachPart) {
  const Dataset data = small_data(400, 3, 5, 2);
  MaskOptions options;
  options.scope = "part";
  options.repeats = 1;
  const Folds folds = make_folds(data, options);
  for (const Part part : {Part::train, Part::val, Part::test})
    expect_exact_views(data, folds.folds[0], folds.part_rows(0, part), .5);
}

// As tight as it gets: every row keeps exactly one view.
TEST(Folds, TightestRate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Dataset data = small_data(60, 3, 2, seed);
    MaskOptions options;
    options.missing_views = 2. / 3;
    options.repeats = 2;
    options.seed = seed;
    const Folds folds = make_folds(data, options);
    for (const auto& fold : folds.folds)
      expect_exact_views(data, fold, folds.part_rows(0, Part::all), 2. / 3);
  }
}

// Data with gaps of their own: either the rates are exact, or a set of rows has too few instances, as the
// message says.
RC_GTEST_PROP(FoldsProperty, OwnGapsAreRespected, (std::uint64_t seed)) {
  Random random(seed, Purpose::test, 7);
  const Dataset data = small_data(20 + random.below(60), 1 + random.below(5), 1 + random.below(4), seed,
                                  random.uniform(0.f, .8f), random.uniform(0.f, .8f));
  MaskOptions options;
  options.missing_views = std::round(random.uniform_double() * 80) / 100;
  options.missing_labels = random.uniform_double();
  options.repeats = 1;
  options.seed = seed;
  try {
    const Folds folds = make_folds(data, options);
    expect_exact_views(data, folds.folds[0], folds.part_rows(0, Part::all), options.missing_views);
    expect_exact_labels(data, folds.folds[0], folds.part_rows(0, Part::train), options.missing_labels);
    RC_ASSERT(!testing::Test::HasFailure());
    RC_CLASSIFY(true, "possible");
  } catch (const Error& error) {
    RC_ASSERT(error.code() == Exit::usage);
    // Hall's condition over every set of views: some set must really be too small.
    bool violated = false;
    for (unsigned set = 1; set < (1u << data.views.size()); ++set) {
      std::size_t kept = 0, bound = 0;
      for (std::size_t v = 0; v < data.views.size(); ++v) {
        std::size_t existing = 0;
        for (std::size_t i = 0; i < data.rows; ++i) existing += data.has(i, v);
        if (set >> v & 1) kept += existing - lost_of(options.missing_views, existing);
      }
      for (std::size_t i = 0; i < data.rows; ++i) {
        bool inside = true;
        for (std::size_t v = 0; v < data.views.size(); ++v)
          inside = inside && (!data.has(i, v) || (set >> v & 1));
        bound += inside;
      }
      violated = violated || bound > kept;
    }
    RC_ASSERT(violated);
    RC_CLASSIFY(true, "impossible");
  }
}

TEST(Folds, ImpossibleRateNamesThePossibleOne) {
  MaskOptions options;
  auto text = message_of([&] { make_folds(small_data(100, 1, 2, 1), options); }, Exit::usage);
  EXPECT_NE(text.find("at most 0 is possible"), std::string::npos) << text;
  EXPECT_NE(text.find("(--missing-views)"), std::string::npos) << text;
  options.missing_views = .8;
  text = message_of([&] { make_folds(small_data(100, 4, 2, 1), options); }, Exit::usage);
  EXPECT_NE(text.find("at most 0.75 is possible"), std::string::npos) << text;
  options.missing_views = .75;
  EXPECT_NO_THROW(make_folds(small_data(100, 4, 2, 1), options));
}

// A row that never had a view cannot lose any: it stays as it is and does not make a rate impossible.
TEST(Folds, RowsWithoutAnyViewStay) {
  Dataset data = small_data(50, 3, 2, 1);
  Matrix<std::uint8_t> W(50, 3);
  for (std::size_t i = 1; i < 50; ++i)
    for (std::size_t v = 0; v < 3; ++v) W(i, v) = 1;
  data.present = std::move(W);
  const Folds folds = make_folds(data, {});
  for (std::size_t v = 0; v < 3; ++v) EXPECT_EQ(folds.folds[0].W(0, v), 0);
}

TEST(Folds, SameSeedSameBits) {
  const Dataset data = small_data(90, 3, 4, 1);
  MaskOptions options;
  options.repeats = 2;
  const auto hash = make_folds(data, options).hash();
  EXPECT_EQ(make_folds(data, options).hash(), hash);
  options.seed = 2;
  EXPECT_NE(make_folds(data, options).hash(), hash);
}

// Which rows are drawn is part of "same seed, same bits": a change of the draws must be seen.
TEST(Folds, ADrawIsFixedForEver) {
  MaskOptions options;
  options.repeats = 1;
  const Folds folds = make_folds(small_data(12, 2, 2, 1), options);
  std::string order, W;
  for (const auto i : folds.folds[0].order) order += std::to_string(i) + " ";
  for (const auto w : folds.folds[0].W.values()) W += w != 0 ? '1' : '0';
  EXPECT_EQ(order, "0 2 1 9 6 7 3 8 10 11 5 4 ");
  EXPECT_EQ(W, "101010011001010101011010");
}

TEST(Folds, PaperSizes) {
  const auto sizes = [](std::size_t n) {
    Folds folds;
    folds.rows = n;
    return std::array{folds.train_rows(), folds.val_rows(), n - folds.train_rows() - folds.val_rows()};
  };
  EXPECT_EQ(sizes(4999), (std::array<std::size_t, 3>{3500, 750, 749}));
  EXPECT_EQ(sizes(9963), (std::array<std::size_t, 3>{6975, 1495, 1493}));
  EXPECT_EQ(sizes(20770), (std::array<std::size_t, 3>{14539, 3116, 3115}));
  EXPECT_EQ(sizes(19627), (std::array<std::size_t, 3>{13739, 2945, 2943}));
  EXPECT_EQ(sizes(25000), (std::array<std::size_t, 3>{17500, 3750, 3750}));
  EXPECT_EQ(sizes(3), (std::array<std::size_t, 3>{3, 0, 0}));
}

TEST(Folds, FitNamesBothNumbers) {
  Folds folds = make_folds(small_data(30, 3, 4, 1), {});
  EXPECT_NO_THROW(check_fit(folds, small_data(30, 3, 4, 2), "f.npz"));
  const auto text = message_of([&] { check_fit(folds, small_data(31, 3, 4, 2), "f.npz"); }, Exit::mismatch);
  EXPECT_NE(text.find("f.npz was made for 30 rows, small has 31"), std::string::npos) << text;
}

TEST(Folds, PartNames) {
  EXPECT_EQ(part_from_name("val"), Part::val);
  EXPECT_STREQ(part_name(Part::test), "test");
  const auto text = message_of([] { part_from_name("tset"); }, Exit::usage);
  EXPECT_NE(text.find("did you mean 'test'"), std::string::npos) << text;
}

TEST(Folds, PartsOfEveryNameAndSize) {
  for (const auto& [name, part] :
       {std::pair("train", Part::train), {"val", Part::val}, {"test", Part::test}, {"all", Part::all}}) {
    EXPECT_EQ(part_from_name(name), part);
    EXPECT_STREQ(part_name(part), name);
  }
  Folds folds;
  folds.rows = 10;
  folds.folds.push_back({{}, {}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}});
  folds.train_share = .51, folds.val_share = .11;  // shares of rows are rounded up
  using Rows = std::vector<std::uint32_t>;
  EXPECT_EQ(folds.part_rows(0, Part::train), (Rows{9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(folds.part_rows(0, Part::val), (Rows{3, 2}));
  EXPECT_EQ(folds.part_rows(0, Part::test), (Rows{1, 0}));
  EXPECT_EQ(folds.part_rows(0, Part::all), folds.folds[0].order);
  folds.train_share = .7, folds.val_share = .3;  // .7 * 10 is 7, whatever its last bit says
  EXPECT_EQ(folds.train_rows(), 7u);
  EXPECT_EQ(folds.val_rows(), 3u);
  folds.train_share = .95, folds.val_share = .15;
  EXPECT_EQ(folds.train_rows(), 10u);
  EXPECT_EQ(folds.val_rows(), 0u);
}

TEST(Folds, WhatCannotBeSplitIsSaid) {
  const Dataset data = small_data(40, 2, 3, 1);
  const auto said = [&](double train, double val) {
    MaskOptions options;
    options.repeats = 1;
    options.train = train, options.val = val;
    return message_of([&] { make_folds(data, options); }, Exit::usage);
  };
  EXPECT_EQ(said(.8, .3), "train 0.8 and validation 0.3 are more than all rows together");
  EXPECT_EQ(said(.75, .26), "train 0.75 and validation 0.26 are more than all rows together");
  EXPECT_EQ(said(0, .5), "a training share of 0 leaves none of the 40 rows for training");
  MaskOptions options;
  options.repeats = 1;
  options.train = .9, options.val = .1;
  EXPECT_EQ(make_folds(data, options).part_rows(0, Part::test).size(), 0u);
  Dataset bare = small_data(40, 2, 3, 1);
  bare.views.clear();
  EXPECT_EQ(message_of([&] { make_folds(bare, options); }, Exit::data), "small has no views to hide");
  bare = small_data(40, 2, 3, 1);
  bare.labels = {};
  EXPECT_EQ(message_of([&] { make_folds(bare, options); }, Exit::data), "small has no labels to hide");
}

// Which rows stand in the way of a rate, and by which views.
TEST(Folds, AnImpossibleRateNamesTheRowsInTheWay) {
  Dataset data = small_data(20, 3, 2, 1);
  MaskOptions options;
  const auto make = [&](auto&& has) {
    Matrix<std::uint8_t> present(20, 3);
    for (std::size_t i = 0; i < 20; ++i)
      for (std::size_t v = 0; v < 3; ++v) present(i, v) = has(i, v);
    data.present = std::move(present);
    make_folds(data, options);
  };
  const std::string begin = "a share of missing views of 0.5 (--missing-views) is too much: ";
  const auto alone = [](std::size_t i, std::size_t v) { return v == 0 ? i < 16 : i >= 16; };
  EXPECT_EQ(message_of([&] { make(alone); }, Exit::usage),
            begin +
                "16 rows have no view but 'v0', of which 8 of 16 instances would be left, so some row "
                "would lose every view; at most 0 is possible");
  // Each of 18 rows has v0 or v1, two of them both: 20 instances, of which 10 are left for 18 rows.
  const auto two = [](std::size_t i, std::size_t v) {
    return v == 2 ? i >= 18 : i < 18 && (i % 2 == v || i < 2);
  };
  EXPECT_EQ(message_of([&] { make(two); }, Exit::usage),
            begin +
                "18 rows have views only among 'v0', 'v1', of which 10 of 20 instances would be left, so "
                "some row would lose every view; at most 0.1 is possible");
  options.missing_views = .1;
  EXPECT_NO_THROW(make(two));
}

// Every setting by its name, with its range.
TEST(Folds, SettingsHaveNamesAndRanges) {
  MaskOptions mask;
  Options options;
  mask.declare(options);
  for (const auto& [name, value] : {std::pair("missing-views", &mask.missing_views),
                                    {"missing-labels", &mask.missing_labels},
                                    {"train", &mask.train},
                                    {"val", &mask.val}}) {
    SCOPED_TRACE(name);
    for (const char* text : {"0", "0.25", "1"}) {
      options.set(name, text, "test");
      EXPECT_EQ(*value, std::stod(text));
    }
    for (const char* text : {"-0.01", "1.01"})
      message_of([&, name = name] { options.set(name, text, "test"); }, Exit::usage);
  }
  for (const char* text : {"0", "20"}) {
    options.set("strength", text, "test");
    EXPECT_EQ(mask.strength, std::stod(text));
  }
  for (const char* text : {"-0.01", "20.01"})
    message_of([&] { options.set("strength", text, "test"); }, Exit::usage);
  for (const char* text : {"1", "100000"}) {
    options.set("repeats", text, "test");
    EXPECT_EQ(mask.repeats, std::stoll(text));
  }
  for (const char* text : {"0", "100001"})
    message_of([&] { options.set("repeats", text, "test"); }, Exit::usage);
  options.set("seed", "12", "test");
  EXPECT_EQ(mask.seed, 12u);
  options.set("stratify", "true", "test");
  EXPECT_TRUE(mask.stratify);
  for (const auto& [name, value, texts] :
       std::vector<std::tuple<const char*, const std::string*, std::vector<const char*>>>{
           {"scope", &mask.scope, {"part", "all"}},
           {"test-views", &mask.test_views, {"complete", "gaps"}},
           {"mechanism", &mask.mechanism, {"mnar", "pattern", "mcar"}}}) {
    for (const char* text : texts) {
      options.set(name, text, "test");
      EXPECT_EQ(*value, text);
    }
    message_of([&, name = name] { options.set(name, "other", "test"); }, Exit::usage);
  }
  options.set("patterns", "a=.5,b=.5", "test");
  EXPECT_EQ(mask.patterns, (std::vector<std::string>{"a=.5", "b=.5"}));
}

TEST(Items, TrainingHidesLabelsTheOthersDoNot) {
  const Dataset data = small_data(40, 2, 3, 1);
  MaskOptions options;
  options.repeats = 2;
  const Folds folds = make_folds(data, options);
  const Selection train = select_part(data, folds, 1, Part::train),
                  test = select_part(data, folds, 1, Part::test);
  EXPECT_EQ(train.rows, folds.part_rows(1, Part::train));
  std::size_t hidden = 0;
  for (std::size_t i = 0; i < train.rows.size(); ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(train.label(i, j),
                folds.folds[1].G(train.rows[i], j) ? data.labels(train.rows[i], j) : kUnknown);
      hidden += train.label(i, j) == kUnknown;
    }
  EXPECT_GT(hidden, 0u);
  for (std::size_t i = 0; i < test.rows.size(); ++i)
    for (std::size_t j = 0; j < 3; ++j) EXPECT_NE(test.label(i, j), kUnknown);
  for (std::size_t i = 0; i < test.rows.size(); ++i)
    for (std::size_t v = 0; v < 2; ++v) EXPECT_EQ(test.has(i, v), folds.folds[1].W(test.rows[i], v) != 0);
  message_of([&] { select_part(data, folds, 2, Part::train); }, Exit::usage);
}

// Whatever a result depends on is part of the hash that is written beside it.
TEST(Folds, HashKnowsMasksOrderAndShares) {
  const Dataset data = small_data(30, 3, 4, 2);
  MaskOptions options;
  options.repeats = 2;
  const Folds folds = make_folds(data, options);
  const auto changed = [&](auto&& change) {
    Folds other = folds;
    change(other);
    return other.hash() != folds.hash();
  };
  EXPECT_TRUE(changed([](Folds& f) { f.folds[1].W(7, 2) ^= 1; }));
  EXPECT_TRUE(changed([](Folds& f) { f.folds[1].G(7, 3) ^= 1; }));
  EXPECT_TRUE(changed([](Folds& f) { std::swap(f.folds[0].order[3], f.folds[0].order[29]); }));
  EXPECT_TRUE(changed([](Folds& f) { f.train_share = .5; }));
  EXPECT_TRUE(changed([](Folds& f) { f.folds.pop_back(); }));
  EXPECT_FALSE(changed([](Folds&) {}));
}

TEST(Folds, OtherViewsOrLabelsAreAMismatch) {
  MaskOptions options;
  Folds folds = make_folds(small_data(30, 3, 4, 2), options);
  const auto views = message_of([&] { check_fit(folds, small_data(30, 2, 4, 2), "f.npz"); }, Exit::mismatch);
  EXPECT_NE(views.find("3 views, small has 2"), std::string::npos) << views;
  const auto labels = message_of([&] { check_fit(folds, small_data(30, 3, 5, 2), "f.npz"); }, Exit::mismatch);
  EXPECT_NE(labels.find("4 labels, small has 5"), std::string::npos) << labels;
}

TEST(Folds, CompleteTestViewsLeaveGapsToTrainingRows) {
  const Dataset data = small_data(100, 3, 3, 1);
  MaskOptions options;
  options.repeats = 1;
  options.test_views = "complete";
  const Folds folds = make_folds(data, options);
  std::vector<std::size_t> lost(3);
  for (const auto i : folds.part_rows(0, Part::train))
    for (std::size_t v = 0; v < 3; ++v) lost[v] += folds.folds[0].W(i, v) == 0;
  EXPECT_EQ(lost, (std::vector<std::size_t>{35, 35, 35})) << "exactly half of the 70 training rows";
  for (const Part part : {Part::val, Part::test})
    for (const auto i : folds.part_rows(0, part))
      for (std::size_t v = 0; v < 3; ++v) EXPECT_EQ(folds.folds[0].W(i, v), 1);
}

// Six rows, two views, three labels; two repetitions by hand. Training rows are 0 to 3, then 5 to 2.
TEST(Rates, AreMeansOfCountsByHand) {
  Dataset data = small_data(6, 2, 3, 1);
  Matrix<std::uint8_t> present(6, 2);
  Matrix<std::int8_t> labels(6, 3);
  for (std::size_t i = 0; i < 6; ++i) {
    present(i, 0) = i != 5, present(i, 1) = i >= 2;  // five and four instances
    labels(i, 0) = i % 2 == 0 ? std::int8_t{1} : std::int8_t{0};
    labels(i, 1) = i == 1 ? kUnknown : i == 3 ? std::int8_t{1} : std::int8_t{0};
  }
  data.present = std::move(present);
  data.labels = std::move(labels);
  Folds folds;
  folds.rows = 6, folds.views = 2, folds.labels = 3;
  folds.train_share = 4. / 6, folds.val_share = 1. / 6;
  for (int r = 0; r < 2; ++r) {
    Fold& fold = folds.folds.emplace_back();
    fold.W = Matrix<std::uint8_t>(6, 2);
    fold.G = Matrix<std::uint8_t>(6, 3);
    for (auto& w : fold.W.values()) w = 1;
    for (auto& g : fold.G.values()) g = 1;
    for (std::uint32_t i = 0; i < 6; ++i) fold.order.push_back(r == 0 ? i : 5 - i);
  }
  ASSERT_EQ(folds.train_rows(), 4u);
  Fold &first = folds.folds[0], &second = folds.folds[1];
  first.W(0, 0) = first.W(4, 0) = 0;                  // one of training, one of test
  first.W(2, 1) = first.W(3, 1) = first.W(0, 1) = 0;  // row 0 has no view 1 of its own
  second.W(4, 0) = 0;
  first.G(0, 0) = first.G(1, 0) = first.G(3, 1) = 0;
  second.G(4, 0) = second.G(2, 0) = 0;
  const Rates rates = rates_of(data, folds);
  EXPECT_EQ(rates.existing, (std::vector<double>{5, 4}));
  const auto near = [](const std::vector<double>& seen, const std::vector<double>& expected) {
    ASSERT_EQ(seen.size(), expected.size());
    for (std::size_t k = 0; k < seen.size(); ++k) EXPECT_NEAR(seen[k], expected[k], 1e-15) << k;
  };
  near(rates.hidden, {(2. / 5 + 1. / 5) / 2, (2. / 4 + 0) / 2});
  near(rates.hidden_in_train, {(1. / 4 + 1. / 3) / 2, (2. / 2 + 0) / 2});
  // Views left, first: 0 1 1 1 1 1; second: 1 1 2 2 1 1.
  near(rates.rows_with_views, {1. / 12, 9. / 12, 2. / 12});
  // First, rows 0..3: positives (0,0) (2,0) (3,1), two hidden; negatives (1,0) (3,0) (0,1) (2,1) and four of label 2, one
  // hidden. Second, rows 5..2: positives (4,0) (2,0) (3,1), two hidden; no negative hidden.
  EXPECT_NEAR(rates.positives_hidden, (2. / 3 + 2. / 3) / 2, 1e-15);
  EXPECT_NEAR(rates.negatives_hidden, (1. / 8 + 0) / 2, 1e-15);
  EXPECT_NEAR(rates.rows_without_positive, (3. / 4 + 3. / 4) / 2, 1e-15);
  EXPECT_NEAR(rates.labels_without_positive, (2 + 2) / 2., 1e-15);
  EXPECT_EQ(share(3, 4), .75);
  EXPECT_EQ(share(0, 0), 0);
}

// Iterative stratification by hand: the rarest label first, each positive to the part that lacks most of it and has room;
// among equals the part with most room; rows without a positive fill up.
TEST(Stratify, SmallCasesByHand) {
  const auto order_of = [](const std::vector<std::vector<int>>& positives, std::size_t labels,
                           const std::array<std::size_t, 3>& sizes, const std::vector<std::uint32_t>& order) {
    Dataset data;
    data.rows = positives.size();
    Matrix<std::int8_t> Y(positives.size(), labels);
    for (std::size_t i = 0; i < positives.size(); ++i)
      for (const int j : positives[i]) Y(i, static_cast<std::size_t>(j)) = 1;
    data.labels = std::move(Y);
    for (std::size_t j = 0; j < labels; ++j) data.label_names.push_back(std::to_string(j));
    return stratified_order(data, sizes, order);
  };
  using Order = std::vector<std::uint32_t>;
  // One label, three positives (rows 1, 4, 5), parts of 2, 2, 2: one each, in the given order; the others fill up.
  EXPECT_EQ(order_of({{}, {0}, {}, {}, {0}, {0}}, 1, {2, 2, 2}, {5, 4, 3, 2, 1, 0}),
            (Order{5, 3, 4, 2, 1, 0}))
      << "the order in a part is the given one";
  // Wanted are 2, .5, .5 of label 0 (rarest: 3 positives of 6 rows, sizes 4, 1, 1).
  EXPECT_EQ(order_of({{0}, {0}, {0}, {}, {}, {}}, 1, {4, 1, 1}, {0, 1, 2, 3, 4, 5}),
            (Order{0, 1, 3, 4, 2, 5}));
  // Label 1 (two positives) goes before label 0 (four), though it comes later. Sizes 2, 2, 2: wanted 4/3 and 2/3 each.
  EXPECT_EQ(order_of({{0}, {0}, {0, 1}, {0}, {1}, {}}, 2, {2, 2, 2}, {0, 1, 2, 3, 4, 5}),
            (Order{2, 3, 1, 4, 0, 5}));
  // A full part takes no more, however much it lacks.
  EXPECT_EQ(order_of({{0}, {0}, {0}}, 1, {1, 1, 1}, {2, 0, 1}), (Order{2, 0, 1}));
  EXPECT_EQ(order_of({{0, 1}, {0, 1}, {1}, {1}}, 2, {2, 1, 1}, {0, 1, 2, 3}), (Order{0, 2, 1, 3}));
  // Labels of one positive each: the largest part lacks most of each, also where it has less room than others by then.
  EXPECT_EQ(
      order_of({{0}, {1}, {2}, {}, {}, {}, {}, {}, {}, {}}, 3, {4, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
      (Order{0, 1, 2, 7, 3, 5, 8, 4, 6, 9}));
  // The first four fill the largest part; it would lack most of the fifth label, and is full.
  EXPECT_EQ(order_of({{0}, {1}, {2}, {3}, {4}, {4}, {}, {}}, 5, {4, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}),
            (Order{0, 1, 2, 3, 4, 6, 5, 7}));
  // No positive at all: parts fill up by their room.
  EXPECT_EQ(order_of({{}, {}, {}, {}}, 1, {1, 2, 1}, {3, 1, 0, 2}), (Order{1, 3, 0, 2}));
}

}  // namespace
}  // namespace lacuna
