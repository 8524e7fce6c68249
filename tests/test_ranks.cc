// Networks divided among ranks: the same bits as on one, for steps, predictions, models, snapshots and what follows them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "data/prepare.h"
#include "data/protocol.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "network_cases.h"
#include "nn/make.h"
#include "nn/ranked_fit.h"
#include "thread_ranks.h"

namespace lacuna {
namespace {

TEST(Ranks, EachRankReceivesWhatItRequests) {
  ThreadRanks(3).run([](Ranks& ranks) {
    int value = 10 + ranks.rank();
    broadcast(ranks, value);
    EXPECT_EQ(value, 10);
    EXPECT_EQ(all_gather(ranks, ranks.rank()), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(all_gather(ranks, std::string(static_cast<std::size_t>(ranks.rank()), 'x')),
              (std::vector<std::string>{"", "x", "xx"}));
    int own = ranks.rank(), other = -1;
    const Ranks::Part parts[] = {{ranks.rank() == 1 ? &own : &other, sizeof(int), 1, 2}};
    ranks.exchange(parts);
    EXPECT_EQ(other, ranks.rank() == 2 ? 1 : -1);
  });
}

TEST(Ranks, TrafficCountsBytes) {
  ThreadRanks(3).run([](Ranks& ranks) {
    double value = 0;
    broadcast(ranks, value);
    EXPECT_EQ(ranks.traffic().total().sent, ranks.leads() ? 16u : 0u);
    EXPECT_EQ(ranks.traffic().total().received, ranks.leads() ? 0u : 8u);
    const Ranks::Part part{&value, sizeof value, 1, 2};
    ranks.exchange({&part, 1}, Ranks::gradients);
    EXPECT_EQ(ranks.traffic().of[Ranks::gradients].sent, ranks.rank() == 1 ? 8u : 0u);
    EXPECT_EQ(ranks.traffic().of[Ranks::gradients].received, ranks.rank() == 2 ? 8u : 0u);
    EXPECT_EQ(ranks.traffic().of[Ranks::other].sent, ranks.leads() ? 16u : 0u);
    EXPECT_EQ(ranks.traffic().total().exchanges, 2u);
  });
}

TEST(Ranks, TensorsComeTogether) {
  ThreadRanks(3).run([](Ranks& ranks) {
    for (const Wanted wanted : {Wanted::by_leader, Wanted::by_everyone}) {
      Matrix<float> everybody(2, 3), own(4, 5);
      std::ranges::fill(everybody.values(), static_cast<float>(ranks.rank()));
      std::ranges::fill(own.values(), static_cast<float>(ranks.rank()));
      Tensors tensors;
      tensors.put("everybody", everybody.view());
      tensors.put("own" + std::to_string(ranks.rank()), own.view().columns(1, 3));  // rows with gaps
      gather(ranks, wanted, tensors);
      const bool whole = wanted == Wanted::by_everyone || ranks.leads();
      EXPECT_EQ(tensors.all().size(), whole ? 4u : 2u);
      if (!whole) continue;
      EXPECT_EQ(tensors.matrix("everybody")(1, 2), 0.f) << "of the lowest rank";
      EXPECT_EQ(tensors.matrix("own2").rows(), 4u);
      EXPECT_EQ(tensors.matrix("own2").cols(), 3u);
      EXPECT_EQ(tensors.matrix("own2")(3, 2), 2.f);
    }
  });
}

TEST(Division, LoadsAreEvenAndEveryChainHasOneOwner) {
  ThreadRanks(3).run([](Ranks& ranks) {
    const std::vector<double> costs = {9, 1, 8, 2, 7, 3};
    const Division division(ranks, costs);
    std::map<int, double> loads;
    for (std::size_t chain = 0; chain < costs.size(); ++chain) loads[division.owner(chain)] += costs[chain];
    EXPECT_EQ(loads, (std::map<int, double>{{0, 10}, {1, 10}, {2, 10}}));
  });
}

// Decoders wait for encoders: each kind is divided evenly. Three views of six are large.
TEST(Division, WhatWorksLaterIsDividedByItself) {
  std::vector<double> costs;
  for (const double cost : {1., 30., .5, 3., 30., 30.}) costs.insert(costs.end(), {cost, cost});
  for (const double cost : {1., 30., .5, 3., 30., 30.}) costs.push_back(cost);
  for (const int size : {2, 3, 6, 9}) {
    std::vector<double> first(static_cast<std::size_t>(size)), second(first);
    ThreadRanks(size).run([&](Ranks& ranks) {
      const Division division(ranks, costs, 12);
      const auto r = static_cast<std::size_t>(ranks.rank());  // each writes its own place
      for (std::size_t chain = 0; chain < costs.size(); ++chain)
        if (division.mine(chain)) (chain < 12 ? first : second)[r] += costs[chain];
    });
    const double most = std::ranges::max(first) + std::ranges::max(second);
    EXPECT_LT(most, size == 2 ? 156. : size == 3 ? 104. : 66.) << size;
  }
}

TEST(Division, RefusesMoreRanksThanChains) {
  try {
    ThreadRanks(3).run([](Ranks& ranks) { Division(ranks, std::vector<double>{1, 2}); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("2 parts"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("3 ranks"), std::string::npos) << error.what();
  }
}

// Everything that is learned after some steps, and predictions, of all ranks together.
std::string trained(const MtdOptions& options, const Items& items, const Ranks& ranks,
                    std::vector<double>& losses) {
  NetworkShape shape = network_shape_of(items);
  shape.ranks = &ranks;
  const auto network = make_network<float>(options, shape, 3, make_cpu_ops(Precision::f32));
  network->keep({.second = true, .mean = true});
  UpdateRule rule;
  rule.optimiser = Optimiser::adamw;
  rule.rate = 1e-3;
  rule.average = .9;
  const auto rows = all_rows(items);
  for (std::uint32_t step = 0; step < 4; ++step) {
    rule.step = step + 1;
    const Losses values = network->step({&items, std::span(rows).subspan(step * 7, 30), 5, step, step}, rule);
    for (const auto& loss : values) losses.push_back(loss.value);
  }
  Tensors file;
  network->visit([&](const std::string& name, ParameterView<float> p, bool) {
    file.put(name, MatrixView<const float>(p.value));
    file.put(name + ".first", MatrixView<const float>(p.first));
    file.put(name + ".second", MatrixView<const float>(p.second));
    file.put(name + ".mean", MatrixView<const float>(p.mean));
  });
  network->visit_buffers([&](const std::string& name, MatrixView<float> buffer, bool) {
    file.put(name, MatrixView<const float>(buffer));
  });
  Matrix<float> scores(items.rows(), items.labels());
  network->predict(items, scores);
  file.put("scores", scores.view());
  gather(network->ranks(), Wanted::by_everyone, file);
  return file.text();
}

struct NetworkCase {
  const char* preset;
  std::vector<std::pair<std::string, std::string>> changes;
};

TEST(DividedNetwork, HasTheBitsOfOneRank) {
  const Items items =
      with_background(random_items({.rows = 60, .columns = {23, 41, 17}, .labels = 6}, 2), 1, true);
  const NetworkCase cases[] = {
      {"best", {{"guess-weight", "0.3"}, {"guess-from", "1"}, {"guess-every", "2"}}},
      {"best", {{"decoder-input", "shared"}, {"view-weight", "0"}, {"reconstruct-hidden", "false"}}},
      {"best", {{"fusion", "early"}, {"gamma", "0"}}},
      {"best", {{"fusion", "both"}, {"joint-widths", "8"}, {"guess-from", "1"}, {"guess-every", "2"}}},
      {"repaired", {}},
      {"authors", {}},
      {"authors", {{"end-norm", "batch-noise"}, {"gate", "false"}}},
      {"paper", {}},
  };
  for (const auto& [preset, changes] : cases) {
    const MtdOptions options = small_options(preset, changes);
    std::vector<double> losses;
    const std::string alone = trained(options, items, one_rank(), losses);
    for (const int size : {2, 6}) {
      std::mutex mutex;
      ThreadRanks(size).run([&, &preset = preset](Ranks& ranks) {
        std::vector<double> own;
        const std::string together = trained(options, items, ranks, own);
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(together == alone) << preset << " on rank " << ranks.rank() << " of " << size;
        EXPECT_EQ(own, losses) << preset << " on rank " << ranks.rank() << " of " << size;
      });
    }
  }
}

TEST(DividedNetwork, ARankHoldsItsOwnPart) {
  const Items items = random_items({.rows = 20, .columns = {23, 41, 17}, .labels = 6}, 2);
  const MtdOptions options = small_options("authors", {});
  const MtdNetwork<float> whole(options, network_shape_of(items), 1, make_cpu_ops(Precision::f32));
  ThreadRanks(3).run([&](Ranks& ranks) {
    NetworkShape shape = network_shape_of(items);
    shape.ranks = &ranks;
    MtdNetwork<float> network(options, shape, 1, make_cpu_ops(Precision::f32));
    std::uint64_t own = 0;
    network.visit([&](const std::string&, ParameterView<float> p, bool) { own += p.value.size(); });
    EXPECT_EQ(network.parameters(), whole.parameters());
    EXPECT_LT(own, whole.parameters() / 2);
  });
}

struct Recorder : FitContext {
  std::string checkpoint;  // the last one
  std::int64_t take_at = 0, stop_at = 1000;
  std::optional<Tensors> from;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
    if (record.epoch == take_at) {
      Tensors file;
      snapshot(file);
      file.metadata["train"]["seconds"] = 0;  // the only thing that differs from run to run
      file.metadata["train"]["epoch_began"] = 0;
      checkpoint = file.text();
    }
    return record.epoch < stop_at;
  }
  const Tensors* resume_from() override { return from ? &*from : nullptr; }
};

Tensors parsed(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return Tensors::parse(owner, std::as_bytes(std::span(*owner)), "checkpoint");
}

struct Fitted {
  std::string model, checkpoint;
};

Fitted fitted(int size, const std::string& method, const std::string& preset,
              const std::vector<std::pair<std::string, std::string>>& settings,
              const std::string& from = "") {
  static const Dataset data = simulate({.rows = 90, .views = 3, .labels = 4, .sizes = {9, 7, 12}}).data;
  Fitted result;
  const auto fit = [&](Ranks& ranks) {
    Model model(method);
    if (!preset.empty()) model.set_preset(preset);
    for (const auto& [name, value] : settings) model.options().set(name, value, "test");
    Recorder own;
    own.take_at = 2;
    if (!from.empty()) own.from = parsed(from);
    RankedFit together(ranks, own);
    const LearningRows rows = learning_rows(select_all(data), .2, 1);
    model.fit(rows.learn, rows.val, together);
    const std::string text = model.tensors().text();
    const auto texts = all_gather(ranks, text);
    for (const auto& other : texts) EXPECT_TRUE(other == text) << "every rank has the whole model";
    if (ranks.leads()) result = {text, own.checkpoint};
  };
  ThreadRanks(size).run(fit);
  return result;
}

const std::vector<std::pair<std::string, std::string>> kSmall = {
    {"epochs", "4"}, {"batch", "32"}, {"encoder-widths", "10"}, {"decoder-widths", "9"}, {"embedding", "8"}};

TEST(DividedTraining, ModelsAndCheckpointsHaveTheBitsOfOneRank) {
  for (const auto& [method, preset] : {std::pair{"lacuna", "best"},
                                       {"mtd", "repaired"},
                                       {"mtd", "authors"},
                                       {"mtd", "paper"},
                                       {"dicnet", ""}}) {
    auto settings = kSmall;
    if (std::string(method) == "lacuna") {
      settings.push_back({"guess-from", "1"});
      settings.push_back({"patience", "1"});
    }
    const Fitted alone = fitted(1, method, preset, settings);
    EXPECT_FALSE(alone.checkpoint.empty());
    for (const int size : {2, 5}) {
      const Fitted together = fitted(size, method, preset, settings);
      EXPECT_TRUE(together.model == alone.model) << method << " " << preset << " on " << size;
      EXPECT_TRUE(together.checkpoint == alone.checkpoint) << method << " " << preset << " on " << size;
    }
  }
}

// Rows of other views are not there at all: a rank that read them would be ended by the system.
TEST(DividedTraining, ARankHasTheRowsOfItsOwnChains) {
  const ItemShape shape{.columns = {512, 4096, 100, 1000, 4096, 4096}, .labels = 260};
  for (const char* name : {"mtd", "dicnet"})
    for (const int size : {2, 6, 9}) {
      std::vector<int> readers(shape.columns.size());
      std::mutex mutex;
      ThreadRanks(size).run([&](Ranks& ranks) {
        const std::vector<bool> read = make_method(name)->views_read(shape, ranks);
        const std::lock_guard lock(mutex);
        for (std::size_t v = 0; v < read.size(); ++v) readers[v] += read[v];
        if (size > 6) {
          EXPECT_LT(std::ranges::count(read, true), 4);
        }
      });
      for (const int count : readers) {
        EXPECT_GE(count, 1) << name << ' ' << size;
        EXPECT_LE(count, 3) << name << ' ' << size;  // two encoders and a decoder
      }
    }
  EXPECT_TRUE(make_method("lacuna")->views_read(shape, one_rank()).empty());  // its row memory reads all
  const Dataset data = simulate({.rows = 20, .views = 2, .labels = 3, .sizes = {6, 5}}).data;
  const Items items = Preparation::fit(select_all(data), {}).apply(select_all(data), true, {false, true});
  EXPECT_EQ(items.X[0].rows(), 20u);
  EXPECT_EQ(items.X[0].cols(), 6u);
  EXPECT_EQ(items.W(3, 0), 1);
  EXPECT_DEATH(EXPECT_EQ(std::as_const(items).X[0](3, 2), 0), "");
  EXPECT_NE(std::as_const(items).X[1](3, 2), 0);
}

TEST(DividedTraining, AnotherNumberOfRanksGoesOnToTheSameBits) {
  for (const auto& [method, preset] : {std::pair{"lacuna", "best"}, {"mtd", "authors"}}) {
    const Fitted whole = fitted(1, method, preset, kSmall), three = fitted(3, method, preset, kSmall);
    for (const int size : {1, 4})
      EXPECT_TRUE(fitted(size, method, preset, kSmall, three.checkpoint).model == whole.model)
          << method << ", 3 ranks, then " << size;
  }
}

TEST(DividedTraining, EnsemblesAreDividedMemberByMember) {
  auto settings = kSmall;
  settings.push_back({"members", "2"});
  settings[0].second = "2";
  const Fitted alone = fitted(1, "lacuna", "distilled", settings);
  EXPECT_TRUE(fitted(2, "lacuna", "distilled", settings).model == alone.model);
}

TEST(DividedPreparation, EveryRankHasTheMapsOfOne) {
  const Dataset data = simulate({.rows = 60, .views = 4, .labels = 3, .sizes = {6, 30, 5, 8}}).data;
  for (const char* kind : {"zscore", "log-pca", "rbf-pca", "root-rbf-pca"}) {
    PrepareOptions options;
    options.kind = kind;
    options.components = 4;
    const auto text = [](const Preparation& preparation) {
      Tensors file;
      preparation.save(file, "p.");
      return file.text();
    };
    const std::string alone = text(Preparation::fit(select_all(data), options));
    for (const int size : {2, 3, 6})  // more ranks than views: some have none
      ThreadRanks(size).run([&](Ranks& ranks) {
        EXPECT_TRUE(text(Preparation::fit(select_all(data), options, ranks)) == alone)
            << kind << " on " << size;
      });
  }
}

TEST(DividedPrediction, RankZeroGetsTheRowsOfOneProcessInOrder) {
  const Dataset data = simulate({.rows = 300, .views = 2, .labels = 3, .sizes = {6, 5}}).data;
  Model model("linear");
  model.fit(select_all(data));
  for (const std::size_t rows : {std::size_t{1}, std::size_t{2048}, std::size_t{5000}, std::size_t{12'300}}) {
    Selection many = select_all(data);  // every row again and again, and not in the order of the file
    many.rows.clear();
    for (std::size_t i = 0; i < rows; ++i) many.rows.push_back(static_cast<std::uint32_t>(i * 7 % 300));
    const Matrix<float> alone = model.predict(many);
    for (const int size : {2, 3}) {
      std::size_t next = 0;
      ThreadRanks(size).run([&](Ranks& ranks) {
        model.predict(
            many,
            [&](std::size_t begin, MatrixView<const float> block) {
              ASSERT_TRUE(ranks.leads());
              ASSERT_EQ(begin, next);
              next += block.rows;
              for (std::size_t i = 0; i < block.rows; ++i)
                ASSERT_TRUE(std::ranges::equal(block.row(i), alone.row(begin + i)))
                    << begin + i << " of " << rows;
            },
            ranks);
      });
      EXPECT_EQ(next, rows) << size;
    }
  }
}

TEST(DividedTraining, RefusesMethodsThatDoNotDivide) {
  try {
    fitted(2, "naim3l", "", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("method naim3l is not divided among ranks, and there are 2"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("mtd"), std::string::npos) << error.what();
  }
}

TEST(RankedFit, WhatEndsRankZeroEndsAll) {
  struct FullDisk : FitContext {
    void before_training(std::uint64_t, std::uint64_t) override { fail(Exit::failed, "the disk is full"); }
  };
  std::atomic<int> ended{0};
  ThreadRanks(3).run([&](Ranks& ranks) {
    FullDisk own;
    RankedFit together(ranks, own);
    try {
      together.before_training(1, 1);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const EndedByLeader& error) {
      EXPECT_FALSE(ranks.leads());
      EXPECT_EQ(error.code(), Exit::failed);
      ++ended;
    } catch (
        const Error& error) {  // caught here, so that no rank is ended by the harness before it has heard
      EXPECT_TRUE(ranks.leads());
      EXPECT_STREQ(error.what(), "the disk is full");
    }
  });
  EXPECT_EQ(ended, 2);
}

TEST(RankedFit, TheOthersFollowRankZero) {
  ThreadRanks(2).run([](Ranks& ranks) {
    struct Own : FitContext {
      bool stop = false;
      bool stopping() override { return stop; }
    } own;
    own.stop = ranks.leads();
    RankedFit together(ranks, own);
    EXPECT_TRUE(together.stopping());
  });
}

}  // namespace
}  // namespace lacuna
