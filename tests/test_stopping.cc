// A fit that is asked to stop ends with what it has learned: as if that had been all of it.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/protocol.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "temporary.h"

namespace lacuna {
namespace {

Dataset small_data() {
  SimulateOptions options;
  options.rows = 80;
  options.labels = 4;
  options.sizes = {9, 7};
  return simulate(options).data;
}

// Wants the fit to end after so many epochs, and some questions later.
struct Stopper : FitContext {
  int epochs = 0, stop_after = 0, patience = 0, questions = 0;
  std::int64_t members = 0;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)>) override {
    ++epochs;
    members = record.members;
    return true;
  }
  bool stopping() override { return epochs >= stop_after && questions++ >= patience; }
};

Model fitted(const char* method, std::initializer_list<std::pair<const char*, const char*>> settings,
             Stopper& context, const Dataset& data) {
  Model model(method);
  for (const auto& [name, value] : settings) model.options().set(name, value, "test");
  const LearningRows rows = learning_rows(select_all(data), .2, 1);
  model.fit(rows.learn, rows.val, context);
  return model;
}

void expect_usable(const Model& model, const Dataset& data) {
  const TemporaryDirectory folder;
  model.save(folder / "model");
  const Matrix<float> scores = model.predict(data), again = Model::load(folder / "model").predict(data);
  EXPECT_TRUE(std::ranges::equal(scores.values(), again.values()));
  for (const float x : scores.values()) EXPECT_TRUE(std::isfinite(x));
}

TEST(Stopping, ANetworkKeepsWhatItHas) {
  const Dataset data = small_data();
  for (const int patience : {0, 1}) {  // between epochs, and within one
    Stopper context;
    context.stop_after = 3;
    context.patience = patience;
    const Model model =
        fitted("lacuna", {{"precision", "f32"}, {"epochs", "500"}, {"members", "1"}, {"batch", "16"}},
               context, data);
    EXPECT_EQ(context.epochs, 3);
    expect_usable(model, data);
  }
}

TEST(Stopping, WithinTheFirstEpochThereIsNothing) {
  const Dataset data = small_data();
  Stopper context;
  context.patience = 1;
  try {
    fitted("lacuna", {{"precision", "f32"}, {"epochs", "500"}, {"members", "1"}, {"batch", "16"}}, context,
           data);
    ADD_FAILURE() << "an untrained model was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::interrupted);
  }
}

TEST(Stopping, TheMembersThatAreThereAreTheModel) {
  const Dataset data = small_data();
  Stopper first, context;
  first.stop_after = context.stop_after = 6;
  context.patience = 2;  // the third member has begun its first epoch
  const std::initializer_list<std::pair<const char*, const char*>> settings = {
      {"precision", "f32"}, {"epochs", "3"}, {"members", "4"}, {"batch", "16"}};
  const Model model = fitted("lacuna", settings, first, data);
  EXPECT_EQ(first.epochs, 6);
  EXPECT_GE(first.members, 4);
  expect_usable(model, data);
  const Model same = fitted("lacuna", settings, context, data);
  EXPECT_EQ(context.epochs, 6);
  const Matrix<float> scores = model.predict(data), again = same.predict(data);
  EXPECT_TRUE(std::ranges::equal(scores.values(), again.values()));
}

TEST(Stopping, IterativeMethodsEndAfterAnIteration) {
  const Dataset data = small_data();
  for (const char* method : {"naim3l", "glocal", "lvsl", "imvwl"}) {
    Stopper context;
    context.stop_after = 1;
    const Model model = fitted(method, {}, context, data);
    EXPECT_GE(context.epochs, 1) << method;
    EXPECT_LE(context.epochs, 2) << method;  // a method for one view may have begun the next one
    expect_usable(model, data);
  }
}

}  // namespace
}  // namespace lacuna
