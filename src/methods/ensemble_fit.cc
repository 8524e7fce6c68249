// Fits the members: one after the other, at the same time, or shared among processes; teachers, members, and fits on
// parts of the rows, by which candidates are judged.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "methods/estimate.h"
#include "methods/fits_ahead.h"
#include "methods/member_fit.h"
#include "methods/member_share.h"
#include "methods/members.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kFewParts = 3, kManyParts = 5;  // of the training rows
constexpr const char* kCurrent = "current.";
constexpr const char* kTaughtScores = "taught";  // the teachers' mean score so far, in checkpoints
constexpr const char* kLeftOut = "left_out";     // why, in checkpoints and in what processes share
const SharedMatrix<float> kNone;

std::string crossed_name(std::size_t member) {
  return fmt::format("crossed{}", member);
}

// Somebody stopped the fit, or the machine refused something, such as a full disk. That is no candidate's fault:
// without it another model would come out, as if it had been chosen.
bool was_stopped(const Error& error) {
  return error.code() == Exit::interrupted || error.code() == Exit::terminated || error.code() == Exit::failed;
}

// "lacuna (prepare=log-pca, fusion=early)"
std::string name_of(const MemberSpec& spec, const std::string& own) {
  std::vector<std::string> changes;
  for (const auto* some : {&spec.prepared, &spec.changes})
    for (const auto& [name, value] : *some) changes.push_back(name + "=" + value);
  return (spec.method.empty() ? own : spec.method) +
         (changes.empty() ? "" : " (" + join(changes, ", ") + ")");
}

}  // namespace

void Ensemble::fit(const Items& train, const Items& val, FitContext& context) {
  begin(train, context);
  auto* shared = dynamic_cast<SharedFit*>(&context);
  if (MemberShare* share = shared == nullptr ? nullptr : shared->shared_members()) {
    fit_shared(train, val, context, *share);
  } else {
    fit_alone(train, val, context);
  }
  if (choosing_ && context.follows() == nullptr) choose(train, val, context);
}

nlohmann::json Ensemble::selected() const {
  return {{"members", selected_}, {"which", which_}, {"blend", blend_json(blend_)}, {"choice", choice_}};
}

// The fits of an earlier ensemble's members and their teachers, blended as they were.
void Ensemble::follow(const nlohmann::json& first) {
  const nlohmann::json& members = first.at("members");
  const auto which = first.at("which").get<std::vector<std::size_t>>();
  std::vector<std::size_t> all(teachers_);
  std::iota(all.begin(), all.end(), std::size_t{0});
  all.insert(all.end(), which.begin(), which.end());
  for (const std::size_t k : all) {
    if (k >= specs_.size() || !members.is_array() || members.size() != specs_.size())
      fail(Exit::data, "broken checkpoint: the first fit had other members");
    fits_.push_back({k, kWhole});
  }
  blend_ = blend_from_json(first.at("blend"));
  choice_ = first.at("choice");
}

// Nothing is fitted yet: the planned fits, and the candidates that are left out.
void Ensemble::begin(const Items& train, FitContext& context) {
  members_.clear();
  which_.clear();
  blend_ = {};
  choice_ = nullptr;
  left_out_.assign(specs_.size(), "");
  failure_.reset();
  Q_ = SharedMatrix<float>(teachers_ > 0 ? train.rows() : 0, train.labels());
  selected_ = nlohmann::json::array();
  for (std::size_t k = 0; k < specs_.size(); ++k) selected_.push_back(nullptr);
  fits_.clear();
  parts_.clear();
  crossed_.assign(specs_.size(), {});
  all_crossed_ = false;
  if (const nlohmann::json* first = context.follows()) return follow(*first);
  double seconds = 0;
  FitSize size = fit_size(train);
  for (std::size_t k = 0; k < specs_.size(); ++k) {
    if (choosing_) {
      const auto& X = train.form(specs_[k].form).X;
      std::ranges::transform(X, size.columns.begin(), [](const auto& view) { return view.cols(); });
      const Cost cost = make_member(specs_[k])->cost(size);
      const bool first = fits_.empty();
      if (!first && seconds + cost.core_seconds > choosing_->seconds)
        left_out_[k] = fmt::format("beyond the budget, by its estimate of {} after {} for those before it",
                                   duration_text(cost.core_seconds), duration_text(seconds));
      if (!first && cost.bytes > static_cast<double>(machine_memory()))
        left_out_[k] = fmt::format("would need {} of memory", bytes_text(cost.bytes));
      if (!left_out_[k].empty()) continue;
      seconds += cost.core_seconds;
    }
    fits_.push_back({k, kWhole});
  }
  if (choosing_ && seconds > choosing_->seconds)
    context.remark(
        fmt::format("by its estimate {} alone takes {} of processor time, and the budget is {}: it is "
                    "fitted all the same, and no other candidate",
                    name_of(specs_[fits_.front().member], prototype_->traits().name), duration_text(seconds),
                    duration_text(choosing_->seconds)));
  plan_parts(train, seconds, context);
}

// Fits without one of k parts take k - 1 times the time of one fit, so all together k times. Of five parts they see
// more of the rows than of three.
std::uint32_t Ensemble::parts_within(std::size_t fits, std::size_t rows, double seconds) const {
  if (!choosing_ || fits < 2 || rows < kFewestJudged) return 0;
  for (const std::uint32_t parts : {kManyParts, kFewParts})
    if (parts * seconds <= choosing_->seconds) return parts;
  return 0;
}

void Ensemble::plan_parts(const Items& train, double seconds, const FitContext& context) {
  const std::uint32_t parts = parts_within(fits_.size(), train.rows(), seconds);
  if (parts == 0) return;
  std::vector<std::uint32_t> order(train.rows());
  std::iota(order.begin(), order.end(), 0u);
  Random(context.seed, Purpose::crossing).shuffle(order);
  parts_.resize(train.rows());
  for (std::size_t i = 0; i < order.size(); ++i) parts_[order[i]] = static_cast<std::uint32_t>(i) % parts;
  const std::vector<Fit> whole = fits_;
  for (const Fit& fit : whole) {
    if (specs_[fit.member].teacher) continue;
    crossed_[fit.member] = Matrix<float>(train.rows(), train.labels());
    for (std::uint32_t part = 0; part < parts; ++part) fits_.push_back({fit.member, part});
  }
}

void Ensemble::fit_alone(const Items& train, const Items& val, FitContext& context) {
  std::size_t done = 0;
  std::optional<Tensors> current;
  if (const Tensors* state = context.resume_from()) current = restore(*state, train, done);
  const std::size_t taught = std::max(done, teachers_);
  if (fit_some(done, taught, current, train, val, context) &&
      fit_some(taught, fits_.size(), current, train, val, context))
    all_crossed_ = !parts_.empty();
}

// Whether all of [begin, end) are fitted, not only those before a stop; fits that need nothing of one another. `current`
// is the state to continue the first of them from.
bool Ensemble::fit_some(std::size_t begin, std::size_t end, std::optional<Tensors>& current,
                        const Items& train, const Items& val, FitContext& context) {
  std::vector<std::unique_ptr<Method>> methods(fits_.size());
  const nlohmann::json* first = context.follows();
  const bool may_fail = choosing_ && first == nullptr;
  const auto learn = [&](std::size_t f, FitContext& outer) {
    const std::size_t k = fits_[f].member;
    const auto wrap = [&](Tensors& file, FunctionRef<void(Tensors&)> inner) {
      Tensors part;
      inner(part);
      snapshot(file, f, part);
    };
    MemberContext member(outer, f, fits_.size(), member_seed(context.seed, k),
                         first == nullptr ? nullptr : &first->at("members").at(k),
                         f == begin ? std::exchange(current, std::nullopt) : std::nullopt, wrap);
    methods[f] = make_member(specs_[k]);
    run(*methods[f], fits_[f], train, val, member);
  };
  FitsAhead fits(context, begin, end, at_once(train, context), learn);
  for (std::size_t f = begin; f < end; ++f) {
    const std::size_t k = fits_[f].member;
    if (!left_out_[k].empty()) continue;                        // it failed before
    if (!members_.empty() && context.stopping()) return false;  // those that are there are the model
    try {
      fits.finish(f);
    } catch (const Diverged& diverged) {
      if (!may_fail) {
        if (diverged.kept && !specs_[k].teacher) take(fits_[f], std::move(methods[f]), train);
        throw Diverged(fmt::format("member {} of {}: {}", k + 1, specs_.size(), diverged.what()),
                       !members_.empty());
      }
      leave_out(k, diverged);
      continue;
    } catch (const Error& error) {  // a member that was stopped too early does not count
      if (error.code() == Exit::interrupted && !members_.empty() && context.stopping()) return false;
      if (!may_fail || was_stopped(error)) throw;
      leave_out(k, error);
      continue;
    }
    take(fits_[f], std::move(methods[f]), train);
  }
  return true;
}

// Candidates may fail and be left out, so that each waits for those before it.
std::size_t Ensemble::at_once(const Items& train, const FitContext& context) const {
  if (choosing_) return 1;
  double bytes = 0;
  for (const MemberSpec& spec : specs_)
    bytes = std::max(bytes, make_member(spec)->cost(fit_size(train)).bytes);
  return context.fits_at_once(bytes);
}

// Each process runs the fits that no other process works on, then reads all of them: teachers first, as what they
// say goes into the others. Sums are in the order of the plan, so all processes end with the same model.
void Ensemble::fit_shared(const Items& train, const Items& val, FitContext& context, MemberShare& share) {
  const ItemShape shape = shape_of(train);
  for (const auto& [begin, end] : {std::pair{std::size_t{0}, teachers_}, {teachers_, fits_.size()}}) {
    learn_shared(begin, end, train, val, context, share);
    for (std::size_t f = begin; f < end; ++f) {
      const std::size_t k = fits_[f].member;
      const Tensors file = share.read(f);
      if (const auto why = file.metadata.value(kLeftOut, std::string()); !why.empty())
        leave_out(k, Error(Exit::failed, why));
      else if (left_out_[k].empty())
        take(fits_[f], read_member(file, specs_[k], k, shape), train);
    }
  }
  all_crossed_ = !parts_.empty();
}

void Ensemble::learn_shared(std::size_t begin, std::size_t end, const Items& train, const Items& val,
                            FitContext& context, MemberShare& share) {
  for (bool open = begin < end; open;) {
    open = false;
    bool learned = false;
    for (std::size_t f = begin; f < end; ++f) {
      if (share.done(f)) continue;
      if (!share.take(f)) {
        open = true;
        continue;
      }
      const std::size_t k = fits_[f].member;
      const auto wrap = [](Tensors& file, FunctionRef<void(Tensors&)> inner) { inner(file); };
      MemberContext member(context, f, fits_.size(), member_seed(context.seed, k), nullptr, std::nullopt,
                           wrap);
      std::unique_ptr<Method> method = make_member(specs_[k]);
      Tensors state;
      try {
        run(*method, fits_[f], train, val, member);
        method->save(state);
      } catch (const Error& error) {
        if (!choosing_ || was_stopped(error)) throw;
        state.metadata[kLeftOut] = error.what();
      }
      share.keep(f, state);
      learned = true;
    }
    if (open && !learned) share.wait();
  }
}

void Ensemble::run(Method& method, const Fit& fit, const Items& train, const Items& val,
                   FitContext& context) const {
  const MemberSpec& spec = specs_[fit.member];
  const SharedMatrix<float>& Q = spec.teacher ? kNone : Q_;
  if (fit.part != kWhole)
    return method.fit(member_rows(train, spec.form, Q, rows_of(fit.part, false)),
                      member_items(val, spec.form, kNone), context);
  if (spec.form == 0 && Q.empty()) return method.fit(train, val, context);
  method.fit(member_items(train, spec.form, Q), member_items(val, spec.form, kNone), context);
}

// What a finished fit leaves.
void Ensemble::take(const Fit& fit, std::unique_ptr<Method> method, const Items& train) {
  const MemberSpec& spec = specs_[fit.member];
  if (fit.part == kWhole) selected_[fit.member] = method->selected();
  if (spec.teacher) {
    Matrix<float> scores(Q_.rows(), Q_.cols());
    method->predict(train.form(spec.form), scores);
    const float share = 1 / static_cast<float>(teachers_);
    const auto sums = Q_.values();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += share * scores.values()[i];
  } else if (fit.part == kWhole) {
    members_.push_back(std::move(method));
    which_.push_back(fit.member);
  } else {
    const std::vector<std::uint32_t> rows = rows_of(fit.part, true);
    Matrix<float> values(rows.size(), train.labels());
    values_of(*method, member_rows(train, spec.form, kNone, rows), values);
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::ranges::copy(values.row(i), crossed_[fit.member].row(rows[i]).begin());
  }
}

// A candidate that cannot be fitted is no reason to have no model, as long as there is another one.
void Ensemble::leave_out(std::size_t k, const Error& error) {
  left_out_[k] = fmt::format("failed: {}", error.what());
  if (!failure_) failure_ = error;
  const auto at = std::ranges::find(which_, k) - which_.begin();
  if (at == std::ssize(which_)) return;
  which_.erase(which_.begin() + at);
  members_.erase(members_.begin() + at);
}

std::vector<std::uint32_t> Ensemble::rows_of(std::uint32_t part, bool inside) const {
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if ((parts_[i] == part) == inside) rows.push_back(static_cast<std::uint32_t>(i));
  return rows;
}

// The candidates in use are judged on training rows, each by the fit that did not see it, and on the validation rows;
// on the latter alone where the budget did not reach for more.
void Ensemble::choose(const Items& train, const Items& val, FitContext& context) {
  if (members_.empty()) {
    if (failure_) throw *failure_;
    fail(Exit::interrupted, "stopped before a candidate was fitted");
  }
  const std::size_t crossed = all_crossed_ ? train.rows() : 0, c = train.labels();
  std::vector<Matrix<float>> values;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Matrix<float>& X = values.emplace_back(crossed + val.rows(), c);
    for (std::size_t row = 0; row < crossed; ++row)
      std::ranges::copy(crossed_[which_[i]].row(row), X.row(row).begin());
    if (val.rows() > 0)
      values_of(*members_[i], val.form(spec_of(i).form), X.view().slice(crossed, val.rows()));
  }
  Matrix<std::int8_t> truth(crossed + val.rows(), c);
  const auto put = [&](const Items& items, std::size_t begin) {
    const Matrix<std::int8_t> known = truth_of(items);
    for (std::size_t row = 0; row < known.rows(); ++row)
      std::ranges::copy(known.row(row), truth.row(begin + row).begin());
  };
  if (crossed > 0) put(train, 0);
  if (val.rows() > 0) put(val, crossed);
  keep_chosen(choose_blend(values, truth), context);
}

void Ensemble::keep_chosen(const BlendChoice& choice, FitContext& context) {
  const std::string own = prototype_->traits().name;
  const char* measure = choice.by_order ? "AP" : "1 - log loss";
  const bool judged = choice.rows >= kFewestJudged;
  auto report = nlohmann::json::array();
  std::vector<std::string> used, unused;
  for (std::size_t k = teachers_; k < specs_.size(); ++k) {
    const std::string name = name_of(specs_[k], own);
    const auto at = static_cast<std::size_t>(std::ranges::find(which_, k) - which_.begin());
    nlohmann::json& one = report.emplace_back(nlohmann::json{{"member", name}});
    if (at == which_.size()) {
      if (left_out_[k].empty()) left_out_[k] = "the training ended before it";
      one[kLeftOut] = left_out_[k];
      unused.push_back(name + ": " + left_out_[k]);
      continue;
    }
    one["weight"] = choice.weights[at];
    one[measure] = choice.worth[at];
    if (choice.weights[at] > 0)
      used.push_back(fmt::format("{:.0f} % {}", 100 * choice.weights[at], name));
    else
      one[kLeftOut] = judged ? "adds too little" : "too few rows to judge it by";
  }
  choice_ = {{"members", report},    {"judged_rows", choice.rows}, {"crossed", all_crossed_},
             {"measure", measure},   {measure, choice.blended},    {"gain", choice.gain},
             {"error", choice.error}};
  const std::string others = unused.empty() ? "" : "; left out: " + join(unused, "; ");
  if (choice.rows == 0)
    context.remark(fmt::format("no row was held out, so there was nothing to judge candidates by: {} alone{}",
                               name_of(spec_of(0), own), others));
  else if (!judged)
    context.remark(fmt::format("candidates are judged on {} rows at least, and there were {}: {} alone{}",
                               kFewestJudged, choice.rows, name_of(spec_of(0), own), others));
  else
    context.remark(
        fmt::format("chosen on {} rows{} that {}: {}; {} {:.4f} there, {:+.4f} ± {:.4f} over {} alone{}",
                    choice.rows, choice.by_order ? " with labels of both kinds" : "",
                    all_crossed_ ? "no candidate learned from" : "were held out", join(used, ", "),
                    measure, choice.blended, choice.gain, choice.error, name_of(spec_of(0), own), others));
  std::vector<std::unique_ptr<Method>> members;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (choice.weights[i] == 0) continue;
    members.push_back(std::move(members_[i]));
    which.push_back(which_[i]);
  }
  members_ = std::move(members);
  which_ = std::move(which);
  blend_ = choice.blend;
  crossed_.clear();
}

void Ensemble::snapshot(Tensors& file, std::size_t done, const Tensors& current) const {
  save_members(file);
  file.put_all(kCurrent, current);
  auto& state = file.metadata[kEnsembleState];
  state["done"] = done;
  state["selected"] = selected_;
  state["metadata"].push_back(current.metadata);
  if (teachers_ > 0) file.put(kTaughtScores, Q_.view());
  if (!choosing_) return;
  state[kLeftOut] = left_out_;
  for (std::size_t k = 0; k < crossed_.size(); ++k)
    if (!crossed_[k].empty()) file.put(crossed_name(k), crossed_[k].view());
}

// The state of the fit that was running.
std::optional<Tensors> Ensemble::restore(const Tensors& file, const Items& train, std::size_t& done) {
  const auto saved = file.metadata.value(kEnsembleState, nlohmann::json::object());
  done = saved.value("done", std::size_t{0});
  if (done >= fits_.size()) fail(Exit::data, "{}: {} of {} members done", file.path(), done, fits_.size());
  if (teachers_ > 0) file.get(kTaughtScores, Q_);
  if (const auto selected = saved.value("selected", nlohmann::json());
      selected.is_array() && selected.size() == specs_.size())
    selected_ = selected;
  std::size_t there = done - std::min(done, teachers_);
  if (choosing_) {
    there = members_in_use(file).size();
    left_out_ = saved.value(kLeftOut, left_out_);
    if (left_out_.size() != specs_.size())
      fail(Exit::data, "{}: lists {} candidates, the settings plan {}", file.path(), left_out_.size(),
           specs_.size());
    for (std::size_t k = 0; k < crossed_.size(); ++k)
      if (!crossed_[k].empty()) file.get(crossed_name(k), crossed_[k]);
  }
  load_members(file, saved, there, shape_of(train));
  return member_file(file, kCurrent, saved, members_.size());
}

}  // namespace lacuna
