#include "methods/ensemble.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "methods/member_share.h"
#include "methods/row_memory.h"

namespace lacuna {
namespace {

constexpr const char* kState = "ensemble";  // key of our part of a file's metadata
constexpr const char* kCurrent = "current.";
constexpr const char* kTaughtScores = "taught";  // the teachers' mean score so far, in checkpoints

std::string prefix(std::size_t member) {
  return fmt::format("member{}.", member);
}

// What a member's fit sees of the surroundings of the whole.
class MemberContext final : public FitContext {
 public:
  using Wrap = FunctionRef<void(Tensors&, FunctionRef<void(Tensors&)>)>;
  MemberContext(FitContext& outer, std::size_t member, std::size_t members, std::optional<Tensors> state,
                Wrap wrap)
      : outer_(outer), member_(member), members_(members), state_(std::move(state)), wrap_(wrap) {
    seed = member_seed(outer.seed, member);
  }
  void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) override {
    outer_.before_training(snapshot_bytes + model_bytes * member_, model_bytes * members_);
  }
  void after_step(FunctionRef<void(Tensors&)> snapshot) override {
    outer_.after_step([&](Tensors& file) { wrap_(file, snapshot); });
  }
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
    EpochRecord numbered = record;
    numbered.member = static_cast<std::int64_t>(member_);
    numbered.members = static_cast<std::int64_t>(members_);
    return outer_.after_epoch(numbered, [&](Tensors& file) { wrap_(file, snapshot); });
  }
  bool stopping() override { return outer_.stopping(); }
  const Tensors* resume_from() override { return state_ ? &*state_ : nullptr; }
  void remark(const std::string& text) override { outer_.remark(text); }
  const Ranks& ranks() const override { return outer_.ranks(); }

 private:
  FitContext& outer_;
  std::size_t member_, members_;
  std::optional<Tensors> state_;
  Wrap wrap_;
};

// Averages of scores, in the space where averages mean something.
class MeanScore {
 public:
  MeanScore(bool probabilities, std::size_t rows, std::size_t cols)
      : probabilities_(probabilities), sum_(rows, cols) {}
  void add(MatrixView<const float> scores) {
    ++count_;
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j) sum_(i, j) += forth(scores(i, j));
  }
  void write(MatrixView<float> scores) const {
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j)
        scores(i, j) = back(sum_(i, j) / static_cast<float>(count_));
  }

 private:
  float forth(float score) const { return probabilities_ ? log_odds(score) : score; }
  float back(float mean) const { return probabilities_ ? 1 / (1 + std::exp(-mean)) : mean; }

  bool probabilities_;
  std::size_t count_ = 0;
  Matrix<float> sum_;
};

class Ensemble final : public Method, public MemoryHolder {
 public:
  Ensemble(std::unique_ptr<Method> prototype, std::string preset, std::vector<MemberSpec> specs)
      : prototype_(std::move(prototype)), preset_(std::move(preset)), specs_(std::move(specs)) {
    while (teachers_ < specs_.size() && specs_[teachers_].teacher) ++teachers_;
  }

  Traits traits() const override { return prototype_->traits(); }
  void declare(Options& options) override { prototype_->declare(options); }
  std::vector<std::string> presets() const override { return prototype_->presets(); }
  Cost cost(const FitSize& size) const override {
    const Cost one = prototype_->cost(size);
    return {one.core_seconds * static_cast<double>(specs_.size()), one.bytes};
  }
  void set_preset(const std::string& name, PrepareOptions& prepare) override {
    prototype_->set_preset(name, prepare);
    preset_ = name;
  }

  void fit(const Items& train, const Items& val, FitContext& context) override {
    if (auto* shared = dynamic_cast<SharedFit*>(&context))
      if (MemberShare* share = shared->shared_members()) return fit_shared(train, val, context, *share);
    members_.clear();
    SharedMatrix<float> Q(teachers_ > 0 ? train.rows() : 0,
                          train.labels());  // mean score of the teachers so far
    std::size_t done = 0;                   // fits, teachers included
    std::optional<Tensors> current;
    if (const Tensors* state = context.resume_from()) {
      const auto saved = state->metadata.value(kState, nlohmann::json::object());
      done = saved.value("done", std::size_t{0});
      if (done >= specs_.size())
        fail(Exit::data, "{}: {} of {} members done", state->path(), done, specs_.size());
      if (teachers_ > 0) state->get(kTaughtScores, Q);
      load_members(*state, saved, done - std::min(done, teachers_), shape_of(train));
      current = member_file(*state, kCurrent, saved, members_.size());
    }
    for (std::size_t k = done; k < specs_.size(); ++k) {
      if (!members_.empty() && context.stopping()) break;  // those that are there are the model
      const auto wrap = [&](Tensors& file, FunctionRef<void(Tensors&)> snapshot) {
        save_members(file);
        Tensors part;
        snapshot(part);
        file.put_all(kCurrent, part);
        if (teachers_ > 0) file.put(kTaughtScores, std::as_const(Q).view());
        file.metadata[kState]["done"] = k;
        file.metadata[kState]["metadata"].push_back(part.metadata);
      };
      MemberContext member(context, k, specs_.size(), std::exchange(current, std::nullopt), wrap);
      std::unique_ptr<Method> method = make_member(specs_[k]);
      try {
        fit_member(*method, specs_[k], train, val, Q, member);
      } catch (const Diverged& diverged) {
        if (diverged.kept && !specs_[k].teacher) members_.push_back(std::move(method));
        throw Diverged(fmt::format("member {} of {}: {}", k + 1, specs_.size(), diverged.what()),
                       !members_.empty());
      } catch (const Error& error) {  // a member that was stopped too early does not count
        if (error.code() != Exit::interrupted || members_.empty() || !context.stopping()) throw;
        break;
      }
      if (specs_[k].teacher) {
        learn_from(*method, train.form(specs_[k].form), Q);
      } else {
        members_.push_back(std::move(method));
      }
    }
  }

  void predict(const Items& items, MatrixView<float> scores) const override {
    MeanScore mean(traits().probabilities, scores.rows, scores.cols);
    for (std::size_t k = 0; k < members_.size(); ++k) {
      members_[k]->predict(items.form(specs_[teachers_ + k].form), scores);
      mean.add(scores);
    }
    mean.write(scores);
  }
  void predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const override {
    MeanScore mean(false, values.rows, values.cols);  // log-odds already
    for (std::size_t k = 0; k < members_.size(); ++k) {
      members_[k]->predict_sets(items.form(specs_[teachers_ + k].form), sets, values);
      mean.add(values);
    }
    mean.write(values);
  }
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    members_.front()->decide(scores, decided);
  }

  void save(Tensors& file) const override {
    save_members(file);
    file.metadata[kState]["done"] = members_.size();
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    const auto saved = file.metadata.value(kState, nlohmann::json::object());
    const auto done = saved.value("done", std::size_t{0});
    if (done == 0 || done > specs_.size() - teachers_)
      fail(Exit::data, "{}: holds {} members, its settings say {}", file.path(), done,
           specs_.size() - teachers_);
    load_members(file, saved, done, shape);
  }
  std::uint64_t parameters() const override {
    std::uint64_t sum = 0;
    for (const auto& member : members_) sum += member->parameters();
    return sum;
  }
  nlohmann::json memory() const override {
    auto all = nlohmann::json::array();
    for (const auto& member : members_) all.push_back(memory_of(*member));
    const bool none = std::ranges::all_of(all, [](const auto& one) { return one.is_null(); });
    return none ? nlohmann::json() : all;
  }

 private:
  // Each process learns the members that nobody else has at work, then reads all of them: teachers first, as what they
  // say goes into the others. Sums are in the order of the plan, so all processes end with the same model.
  void fit_shared(const Items& train, const Items& val, FitContext& context, MemberShare& share) {
    members_.clear();
    SharedMatrix<float> Q(teachers_ > 0 ? train.rows() : 0, train.labels());
    const ItemShape shape = shape_of(train);
    learn_shared(0, teachers_, train, val, Q, context, share);
    for (std::size_t k = 0; k < teachers_; ++k)
      learn_from(*read_member(share.read(k), specs_[k], k, shape), train.form(specs_[k].form), Q);
    learn_shared(teachers_, specs_.size(), train, val, Q, context, share);
    for (std::size_t k = teachers_; k < specs_.size(); ++k)
      members_.push_back(read_member(share.read(k), specs_[k], k, shape));
  }

  void learn_shared(std::size_t begin, std::size_t end, const Items& train, const Items& val,
                    const SharedMatrix<float>& Q, FitContext& context, MemberShare& share) {
    for (bool open = begin < end; open;) {
      open = false;
      bool learned = false;
      for (std::size_t k = begin; k < end; ++k) {
        if (share.done(k)) continue;
        if (!share.take(k)) {
          open = true;
          continue;
        }
        const auto wrap = [](Tensors& file, FunctionRef<void(Tensors&)> snapshot) { snapshot(file); };
        MemberContext member(context, k, specs_.size(), std::nullopt, wrap);
        std::unique_ptr<Method> method = make_member(specs_[k]);
        fit_member(*method, specs_[k], train, val, Q, member);
        Tensors state;
        method->save(state);
        share.keep(k, state);
        learned = true;
      }
      if (open && !learned) share.wait();
    }
  }

  std::unique_ptr<Method> read_member(const Tensors& file, const MemberSpec& spec, std::size_t k,
                                      const ItemShape& shape) const {
    if (spec.form > shape.others.size())
      fail(Exit::data, "{}: the preparation of member {} is missing", file.path(), k);
    auto member = make_member(spec);
    member->load(file, {spec.form == 0 ? shape.columns : shape.others[spec.form - 1], shape.labels, {}});
    return member;
  }

  std::unique_ptr<Method> make_member(const MemberSpec& spec) const {
    auto member = make_method(prototype_->traits().name);
    PrepareOptions unused;
    if (!preset_.empty()) member->set_preset(preset_, unused);
    Options settings, own;
    prototype_->declare(settings);
    member->declare(own);
    own.from_json(settings.json(), prototype_->traits().name);
    for (const auto& [name, value] : spec.changes) own.set(name, value, "a member");
    return member;
  }

  // Labels belong to the first form alone; a member sees them, and what the teachers say, with its own form.
  static void fit_member(Method& method, const MemberSpec& spec, const Items& train, const Items& val,
                         const SharedMatrix<float>& Q, FitContext& context) {
    const bool taught = !spec.teacher && !Q.empty();
    if (spec.form == 0 && !taught) return method.fit(train, val, context);
    const auto own = [&](const Items& items) {
      Items result;  // shares everything
      result.X = items.form(spec.form).X;
      result.mapped = items.mapped;
      result.W = items.W;
      result.Y = items.Y;
      result.G = items.G;
      return result;
    };
    Items own_train = own(train);
    if (taught) own_train.Q = Q;
    method.fit(own_train, own(val), context);
  }

  void learn_from(const Method& teacher, const Items& train, SharedMatrix<float>& Q) const {
    Matrix<float> scores(Q.rows(), Q.cols());
    teacher.predict(train, scores);
    const float share = 1 / static_cast<float>(teachers_);
    const auto sums = Q.values();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += share * scores.values()[i];
  }

  static ItemShape shape_of(const Items& items) {
    ItemShape shape{{}, items.labels(), {}};
    for (const auto& X : items.X) shape.columns.push_back(X.cols());
    for (const auto& other : items.others) {
      auto& columns = shape.others.emplace_back();
      for (const auto& X : other.X) columns.push_back(X.cols());
    }
    return shape;
  }

  // The learned state of the members, without teachers. Each has a metadata object of its own, as methods may
  // write there.
  void save_members(Tensors& file) const {
    file.metadata[kState] = {{"metadata", nlohmann::json::array()}};
    for (std::size_t k = 0; k < members_.size(); ++k) {
      Tensors part;
      members_[k]->save(part);
      file.put_all(prefix(k), part);
      file.metadata[kState]["metadata"].push_back(part.metadata);
    }
  }
  void load_members(const Tensors& file, const nlohmann::json& saved, std::size_t count,
                    const ItemShape& shape) {
    members_.clear();
    for (std::size_t k = 0; k < count; ++k) {
      members_.push_back(
          read_member(member_file(file, prefix(k), saved, k), specs_[teachers_ + k], k, shape));
    }
  }
  static Tensors member_file(const Tensors& file, const std::string& name, const nlohmann::json& saved,
                             std::size_t k) {
    Tensors part = file.part(name);
    const auto all = saved.find("metadata");
    if (all == saved.end() || !all->is_array() || all->size() <= k || !(*all)[k].is_object())
      fail(Exit::data, "{}: metadata of member {} is missing", file.path(), k);
    part.metadata = (*all)[k];
    return part;
  }

  std::unique_ptr<Method> prototype_;
  std::string preset_;
  std::vector<MemberSpec> specs_;
  std::size_t teachers_ = 0;
  std::vector<std::unique_ptr<Method>> members_;  // of specs_, after the teachers
};

}  // namespace

std::uint64_t member_seed(std::uint64_t seed, std::size_t member) {
  if (member == 0) return seed;
  Random random(seed, Purpose::member, static_cast<std::uint32_t>(member));
  const std::uint64_t high = random.bits();
  return high << 32 | random.bits();
}

MemberForms member_forms(const std::vector<MemberPlan>& plan, const PrepareOptions& prepare) {
  if (plan.size() == 1 && plan.front().changes.empty()) return {{}, {prepare}, 1};
  MemberForms result;
  result.specs.resize(plan.size());
  std::vector<nlohmann::json> seen;
  for (const bool teachers : {false, true}) {
    for (std::size_t k = 0; k < plan.size(); ++k) {
      if (plan[k].teacher != teachers) continue;
      MemberSpec& spec = result.specs[k];
      spec.teacher = teachers;
      PrepareOptions own = prepare;
      Options options;
      own.declare(options);
      for (const Setting& change : plan[k].changes) {
        if (options.find(change.name) != nullptr) {
          options.set(change.name, change.value, "a member");
        } else {
          spec.changes.push_back(change);
        }
      }
      const auto found = std::find(seen.begin(), seen.end(), options.json());
      spec.form = static_cast<std::size_t>(found - seen.begin());
      if (found == seen.end()) {
        seen.push_back(options.json());
        result.forms.push_back(own);
      }
    }
    if (!teachers) result.forms_of_predictions = result.forms.size();
  }
  return result;
}

std::string form_prefix(std::size_t form) {
  return form == 0 ? "prepare." : fmt::format("prepare{}.", form);
}

std::unique_ptr<Method> make_ensemble(std::unique_ptr<Method> prototype, const std::string& preset,
                                      std::vector<MemberSpec> specs) {
  return std::make_unique<Ensemble>(std::move(prototype), preset, std::move(specs));
}

}  // namespace lacuna
