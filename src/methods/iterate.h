// The loop of every iterative classical method: resume, iterate, report, stop.
//
//   // Fills W and Z if there is a state to resume.
//   Iteration loop(context, "naim3l", limit, {{"W", &W}, {"Z", &Z}});
//   if (!loop.resumed()) { ...start... }
//   while (loop.next()) {
//     ...update W, Z...
//     loop.report({{"total", objective}}, change < tolerance);
//   }
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "nn/fit.h"

namespace lacuna {

class Iteration {
 public:
  struct State {
    std::string name;
    Matrix<double>* matrix;  // already of its final shape
  };
  Iteration(FitContext& context, std::string method, std::int64_t limit, std::vector<State> state)
      : context_(context), method_(std::move(method)), limit_(limit), state_(std::move(state)) {
    if (const Tensors* file = context.resume_from()) {
      if (file->metadata.value("method", "") != method_)
        fail(Exit::mismatch, "{}: the state to resume is of method '{}', not of '{}'", file->path(),
             file->metadata.value("method", ""), method_);
      for (const State& part : state_) file->get(part.name, part.matrix->view());
      done_ = file->metadata.value("iterations", std::int64_t{0});
      stopped_ = file->metadata.value("converged", false);
      before_ = file->metadata.value("seconds", 0.0);
      resumed_ = true;
    }
  }

  bool resumed() const { return resumed_; }
  bool next() const { return !stopped_ && done_ < limit_ && (done_ == 0 || !context_.stopping()); }
  std::int64_t done() const { return done_; }

  // Ends an iteration. `losses` names "total" and its parts. Throws Diverged if total is not a number.
  void report(const std::map<std::string, double>& losses, bool converged) {
    ++done_;
    const double total = losses.at("total");
    if (!std::isfinite(total))
      throw Diverged(
          fmt::format("{}: the objective is {} after iteration {}; smaller steps or weights may help",
                      method_, total, done_),
          false);
    EpochRecord record;
    record.epoch = done_;
    record.epochs = limit_;
    record.seconds = before_ + watch_.seconds();
    record.losses = losses;
    stopped_ = converged;
    const bool go_on = context_.after_epoch(record, [&](Tensors& file) {
      for (const State& part : state_) file.put(part.name, std::as_const(*part.matrix).view());
      file.metadata["method"] = method_;
      file.metadata["iterations"] = done_;
      file.metadata["converged"] = stopped_;
      file.metadata["seconds"] = record.seconds;
    });
    if (!go_on) stopped_ = true;
  }

 private:
  FitContext& context_;
  std::string method_;
  std::int64_t limit_, done_ = 0;
  std::vector<State> state_;
  bool resumed_ = false, stopped_ = false;
  double before_ = 0;
  Stopwatch watch_;
};

}  // namespace lacuna
