#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "checks.h"
#include "data/folds.h"
#include "data/npy.h"
#include "data/simulate.h"
#include "shared_data.h"
#include "temporary.h"

namespace lacuna {
namespace {

Folds draw_folds(std::uint64_t seed) {
  Random random(seed, Purpose::test);
  const Dataset data = simulate({.rows = static_cast<std::int64_t>(10 + random.below(40)),
                                 .views = static_cast<std::int64_t>(2 + random.below(3)),
                                 .labels = static_cast<std::int64_t>(2 + random.below(9)),
                                 .seed = seed})
                           .data;
  MaskOptions options;
  options.repeats = static_cast<std::int64_t>(1 + random.below(3));
  options.train = .55;
  options.val = .2;
  options.seed = seed;
  return make_folds(data, options);
}

TEST(FoldsFile, BothFormsKeepEverything) {
  const TemporaryDirectory directory;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Folds folds = draw_folds(seed);
    for (const char* name : {"f.npz", "f.mat"}) {
      write_folds(folds, directory / name);
      const Folds again = read_folds(directory / name);
      EXPECT_EQ(again.hash(), folds.hash());
      EXPECT_EQ(again.train_share, folds.train_share);
      EXPECT_EQ(again.val_share, folds.val_share);
    }
  }
}

// Masks belong to items, not to places in a file.
TEST(FoldsFile, RowsAreMatchedById) {
  const TemporaryDirectory directory;
  Dataset data = simulate({.rows = 30, .views = 3, .labels = 4}).data;
  data.ids.clear();
  for (std::size_t i = 0; i < data.rows; ++i) data.ids.push_back(fmt::format("p{}", i));
  MaskOptions options;
  options.repeats = 2;
  const Folds made = make_folds(data, options);
  const auto turned_rows = Random(5, Purpose::test).permutation(data.rows);
  const Dataset turned = select_rows(data, turned_rows);
  for (const char* name : {"f.npz", "f.mat"}) {
    write_folds(made, directory / name);
    Folds same = read_folds(directory / name), moved = same, strange = same, old = same;
    EXPECT_EQ(same.ids, data.ids);
    EXPECT_TRUE(check_fit(same, data, name).empty());
    EXPECT_EQ(same.hash(), made.hash());

    const auto notes = check_fit(moved, turned, name);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("matched by id"), std::string::npos) << notes[0];
    EXPECT_EQ(moved.ids, turned.ids);
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t i = 0; i < data.rows; ++i) {
        const std::size_t was = turned_rows[i];
        EXPECT_TRUE(std::ranges::equal(moved.folds[r].W.row(i), made.folds[r].W.row(was)));
        EXPECT_TRUE(std::ranges::equal(moved.folds[r].G.row(i), made.folds[r].G.row(was)));
        EXPECT_EQ(turned.ids[moved.folds[r].order[i]], data.ids[made.folds[r].order[i]]);
      }

    Dataset others = data;
    others.ids[7] = "somebody";
    try {
      check_fit(strange, others, name);
      ADD_FAILURE() << "other rows were taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::mismatch);
      EXPECT_NE(std::string(error.what()).find("1 of its 30 ids, such as 'p7'"), std::string::npos)
          << error.what();
    }

    old.ids.clear();  // as in files of older versions
    write_folds(old, directory / name);
    old = read_folds(directory / name);
    const auto warned = check_fit(old, turned, name);
    ASSERT_EQ(warned.size(), 1u);
    EXPECT_NE(warned[0].find("cannot be checked: the folds have no ids"), std::string::npos) << warned[0];
    EXPECT_EQ(old.hash(), made.hash());
  }
  Folds twice = made;
  twice.ids[3] = twice.ids[4];
  write_folds(twice, directory / "twice.npz");
  EXPECT_THROW(read_folds(directory / "twice.npz"), Error);
  twice.ids.pop_back();
  write_folds(twice, directory / "few.npz");
  EXPECT_THROW(read_folds(directory / "few.npz"), Error);
}

TEST(FoldsFile, RefusesWhatIsNotAFoldsFile) {
  const TemporaryDirectory directory;
  const Folds folds = draw_folds(1);
  EXPECT_NE(message_of([&] { write_folds(folds, directory / "f.csv"); }, Exit::usage).find(".npz"),
            std::string::npos);
  EXPECT_NE(message_of([&] { read_folds(directory / "f.txt"); }, Exit::usage).find(".npz"),
            std::string::npos);
  write_text(directory / "g.npz", "PK, but not a zip");
  message_of([&] { read_folds(directory / "g.npz"); }, Exit::data);
  Matrix<float> view(3, 2);
  write_npz(directory / "h.npz", std::vector{borrow("gist", view)});
  EXPECT_NE(message_of([&] { read_folds(directory / "h.npz"); }, Exit::data).find("'shares'"),
            std::string::npos);
}

TEST(FoldsFile, NamesWhatIsWrong) {
  const TemporaryDirectory directory;
  const auto message_for = [&](auto&& spoil) {
    Folds folds = draw_folds(2);
    spoil(folds);
    write_folds(folds, directory / "f.npz");
    return message_of([&] { read_folds(directory / "f.npz"); }, Exit::data);
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  auto text = message_for([](Folds& folds) { folds.folds[0].order[3] = folds.folds[0].order[4]; });
  EXPECT_TRUE(has(text, "occurs twice")) << text;
  text = message_for([](Folds& folds) { folds.folds[0].order[3] = 1000; });
  EXPECT_TRUE(has(text, "row 1000 (from 0) does not exist")) << text;
  text = message_for([](Folds& folds) { folds.folds[0].W(2, 1) = 7; });
  EXPECT_TRUE(has(text, "the view mask contains 7 at row 2, column 1")) << text;
  text = message_for([](Folds& folds) { folds.folds[0].order.pop_back(); });
  EXPECT_TRUE(has(text, "the order has")) << text;
  text = message_for([](Folds& folds) { folds.train_share = 1.5; });
  EXPECT_TRUE(has(text, "1.5")) << text;
}

TEST(FoldsFile, AChangedFileDoesNotGiveItsHash) {
  const TemporaryDirectory directory;
  Folds folds = draw_folds(3);
  write_folds(folds, directory / "f.npz");
  auto arrays = read_npz(directory / "f.npz");
  std::swap(folds.folds[0].order[0], folds.folds[0].order[1]);
  for (auto& array : arrays)
    if (array.name == "order0") array.bytes = std::as_bytes(std::span(folds.folds[0].order));
  write_npz(directory / "g.npz", arrays);
  const auto text = message_of([&] { read_folds(directory / "g.npz"); }, Exit::data);
  EXPECT_NE(text.find("hash"), std::string::npos) << text;
}

// The authors' layout, read unchanged.
TEST(FoldsFile, AuthorsFile) {
  LACUNA_NEEDS(path, "corel5k/corel5k_six_view_MaskRatios_0.5_LabelMaskRatio_0.5_TraindataRatio_0.7.mat");
  const Folds folds = read_folds(path);
  EXPECT_EQ(folds.folds.size(), 10u);
  EXPECT_EQ(folds.rows, 4999u);
  EXPECT_EQ(folds.views, 6u);
  EXPECT_EQ(folds.labels, 260u);
  EXPECT_EQ(folds.part_rows(0, Part::train).size(), 3500u);
  EXPECT_EQ(folds.part_rows(0, Part::val).size(), 750u);
  EXPECT_EQ(folds.part_rows(0, Part::test).size(), 749u);
  for (const Fold& fold : folds.folds) {
    for (std::size_t v = 0; v < 6; ++v) {
      std::size_t lost = 0;
      for (std::size_t i = 0; i < 4999; ++i) lost += fold.W(i, v) == 0;
      EXPECT_LE(lost, 2499u);
      EXPECT_GE(lost, 2475u);  // a row that lost every view got one back without a swap
    }
    for (std::size_t i = 0; i < 4999; ++i) {
      const auto w = fold.W.row(i);
      EXPECT_GE(std::accumulate(w.begin(), w.end(), 0), 1);
    }
    std::vector<std::uint32_t> sorted =
        fold.order;  // read_folds has checked it; here once more by other means
    std::sort(sorted.begin(), sorted.end());
    for (std::uint32_t i = 0; i < 4999; ++i) ASSERT_EQ(sorted[i], i);
  }
}

}  // namespace
}  // namespace lacuna
