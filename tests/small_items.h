// Small incomplete items with planted structure, and the checks that every classical method must pass.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "methods/method.h"
#include "temporary.h"

namespace lacuna {

struct ItemsShape {
  std::size_t n = 40, c = 5;
  std::vector<std::size_t> d = {6, 4, 7};
  double missing_views = .4, missing_labels = .4;
};

inline Items small_items(const ItemsShape& shape, std::uint32_t stream) {
  Random random(17, Purpose::test, stream), common(17, Purpose::test, 1000);
  const std::size_t r = 3, m = shape.d.size();
  Items items;
  items.W = Matrix<std::uint8_t>(shape.n, m);
  items.Y = Matrix<float>(shape.n, shape.c);
  items.G = Matrix<std::uint8_t>(shape.n, shape.c);
  Matrix<float> H(shape.n, r), L(r, shape.c);
  for (float& x : H.values()) x = random.normal();
  for (float& x : L.values()) x = common.normal();
  for (std::size_t v = 0; v < m; ++v) {
    Matrix<float> B(r, shape.d[v]), X(shape.n, shape.d[v]);
    for (float& x : B.values()) x = common.normal();
    for (std::size_t i = 0; i < shape.n; ++i)
      for (std::size_t j = 0; j < shape.d[v]; ++j) {
        X(i, j) = .3f * random.normal();
        for (std::size_t k = 0; k < r; ++k) X(i, j) += H(i, k) * B(k, j);
      }
    items.X.push_back(std::move(X));
  }
  for (std::size_t i = 0; i < shape.n; ++i) {
    for (std::size_t v = 0; v < m; ++v) items.W(i, v) = random.uniform_double() >= shape.missing_views;
    items.W(i, random.below(m)) = 1;
    for (std::size_t v = 0; v < m; ++v)
      if (!items.W(i, v)) std::fill(items.X[v].row(i).begin(), items.X[v].row(i).end(), 0.f);
    for (std::size_t j = 0; j < shape.c; ++j) {
      float score = .3f * random.normal();
      for (std::size_t k = 0; k < r; ++k) score += H(i, k) * L(k, j);
      items.G(i, j) = random.uniform_double() >= shape.missing_labels;
      items.Y(i, j) = items.G(i, j) && score > .7f;
    }
  }
  return items;
}

inline ItemShape item_shape_of(const Items& items) {
  ItemShape shape{{}, items.labels()};
  for (const auto& X : items.X) shape.columns.push_back(X.cols());
  return shape;
}

using MakeMethod = std::function<std::unique_ptr<Method>()>;

inline Matrix<float> scores_of(const Method& method, const Items& items, std::size_t c) {
  Matrix<float> scores(items.rows(), c);
  method.predict(items, scores);
  return scores;
}

inline void set_option(Method& method, const std::string& name, const std::string& value) {
  Options options;
  method.declare(options);
  options.set(name, value, "test");
}

inline void expect_same(const Matrix<float>& a, const Matrix<float>& b, double tolerance = 0) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.cols(), b.cols());
  double largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    ASSERT_TRUE(std::isfinite(a.values()[i]));
    largest =
        std::max(largest, std::abs(static_cast<double>(a.values()[i]) - static_cast<double>(b.values()[i])));
  }
  EXPECT_LE(largest, tolerance);
}

// What a missing instance holds, and what an unknown label holds, changes no bit.
inline void expect_gaps_are_not_read(const MakeMethod& make) {
  const Items train = small_items({}, 1), val = small_items({}, 2), test = small_items({}, 3);
  const auto spoil = [](Items items) {
    for (std::size_t i = 0; i < items.rows(); ++i) {
      for (std::size_t v = 0; v < items.views(); ++v)
        if (!items.W(i, v)) std::fill(items.X[v].row(i).begin(), items.X[v].row(i).end(), 1e9f);
      for (std::size_t j = 0; j < items.labels(); ++j)
        if (!items.G(i, j)) items.Y(i, j) = 1;
    }
    return items;
  };
  FitContext context;
  const auto clean = make(), spoilt = make();
  clean->fit(train, val, context);
  spoilt->fit(spoil(train), spoil(val), context);
  expect_same(scores_of(*clean, test, 5), scores_of(*spoilt, spoil(test), 5));
}

inline Items permuted(const Items& items, const std::vector<std::uint32_t>& rows,
                      const std::vector<std::uint32_t>& views, const std::vector<std::uint32_t>& labels) {
  Items out;
  out.W = Matrix<std::uint8_t>(rows.size(), views.size());
  out.Y = Matrix<float>(rows.size(), labels.size());
  out.G = Matrix<std::uint8_t>(rows.size(), labels.size());
  for (std::size_t v = 0; v < views.size(); ++v) {
    Matrix<float> X(rows.size(), items.X[views[v]].cols());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out.W(i, v) = items.W(rows[i], views[v]);
      std::copy(items.X[views[v]].row(rows[i]).begin(), items.X[views[v]].row(rows[i]).end(),
                X.row(i).begin());
    }
    out.X.push_back(std::move(X));
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < labels.size(); ++j) {
      out.Y(i, j) = items.Y(rows[i], labels[j]);
      out.G(i, j) = items.G(rows[i], labels[j]);
    }
  return out;
}

// Another order of rows, views and labels gives the same scores in that order. Only for methods without a
// random start.
inline void expect_order_does_not_matter(const MakeMethod& make, double tolerance) {
  const Items train = small_items({}, 1), val = small_items({}, 2), test = small_items({}, 3);
  Random random(5, Purpose::test);
  const auto rows = random.permutation(40), views = random.permutation(3), labels = random.permutation(5);
  std::vector<std::uint32_t> same(40);
  std::iota(same.begin(), same.end(), 0u);
  FitContext context;
  const auto plain = make(), shuffled = make();
  plain->fit(train, val, context);
  shuffled->fit(permuted(train, rows, views, labels), permuted(val, rows, views, labels), context);
  const Matrix<float> a = scores_of(*plain, test, 5),
                      b = scores_of(*shuffled, permuted(test, same, views, labels), 5);
  Matrix<float> back(40, 5);
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 5; ++j) back(i, labels[j]) = b(i, j);
  expect_same(a, back, tolerance);
}

// Stops after `stop` iterations with a snapshot; continues from one.
struct ResumeContext : FitContext {
  std::int64_t stop = 0;
  std::int64_t calls = 0;
  std::optional<Tensors> state;
  std::string path;  // of the snapshot
  bool resume = false;
  std::vector<EpochRecord> history;

  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
    history.push_back(record);
    if (++calls != stop) return true;
    Tensors file;
    snapshot(file);
    file.write(path);
    return false;
  }
  const Tensors* resume_from() override {
    if (!resume) return nullptr;
    state = Tensors::read(path);
    return &*state;
  }
};

inline void expect_resume_gives_the_same_bits(const MakeMethod& make, std::int64_t stop) {
  const Items train = small_items({}, 1), val = small_items({}, 2), test = small_items({}, 3);
  const TemporaryDirectory folder;
  ResumeContext whole, first, second;
  first.path = second.path = folder / "snapshot";
  const auto a = make(), b = make(), d = make();
  a->fit(train, val, whole);
  ASSERT_GT(static_cast<std::int64_t>(whole.history.size()), stop);
  first.stop = stop;
  b->fit(train, val, first);
  second.resume = true;
  d->fit(train, val, second);
  EXPECT_EQ(static_cast<std::int64_t>(second.history.size()),
            static_cast<std::int64_t>(whole.history.size()) - stop);
  expect_same(scores_of(*a, test, 5), scores_of(*d, test, 5));
}

inline void expect_save_and_load_keep_the_scores(const MakeMethod& make) {
  const Items train = small_items({}, 1), val = small_items({}, 2), test = small_items({}, 3);
  FitContext context;
  const auto a = make(), b = make();
  a->fit(train, val, context);
  const TemporaryDirectory folder;
  const std::string path = folder / "method";
  Tensors file;
  a->save(file);
  file.write(path);
  b->load(Tensors::read(path), item_shape_of(train));
  const Matrix<float> x = scores_of(*a, test, 5), y = scores_of(*b, test, 5);
  expect_same(x, y);
  Matrix<std::uint8_t> p(40, 5), q(40, 5);
  a->decide(x, p);
  b->decide(y, q);
  EXPECT_TRUE(std::equal(p.values().begin(), p.values().end(), q.values().begin()));
  EXPECT_EQ(a->parameters(), b->parameters());
  EXPECT_GT(a->parameters(), 0u);
}

inline void expect_threads_do_not_matter(const MakeMethod& make) {
  const Items train = small_items({}, 1), val = small_items({}, 2), test = small_items({}, 3);
  Matrix<float> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    FitContext context;
    const auto method = make();
    method->fit(train, val, context);
    const Matrix<float> scores = scores_of(*method, test, 5);
    if (first.empty()) first = scores;
    expect_same(first, scores);
  }
  set_threads(0);
}

// AP on new items of the same kind, and that of the label frequencies.
inline void expect_better_than_prior(const MakeMethod& make, double margin) {
  ItemsShape shape;
  shape.n = 150;
  const Items train = small_items(shape, 1), val = small_items(shape, 2);
  shape.missing_labels = 0;
  const Items test = small_items(shape, 3);
  FitContext context;
  const auto method = make(), prior = make_method("prior");
  method->fit(train, val, context);
  prior->fit(train, val, context);
  EXPECT_GT(evaluate_on(*method, test).ap, evaluate_on(*prior, test).ap + margin);
}

// A setting out of range is refused, and the message names the range.
inline void expect_refused(const MakeMethod& make, const std::string& name, const std::string& value) {
  try {
    set_option(*make(), name, value);
    ADD_FAILURE() << name << " = " << value << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("from"), std::string::npos) << error.what();
  }
}

}  // namespace lacuna
