#include "methods/ensemble.h"

#include <optional>

#include "base/random.h"

namespace lacuna {
namespace {

constexpr const char* kState = "ensemble";  // key of our part of a file's metadata
constexpr const char* kCurrent = "current.";

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
  const Tensors* resume_from() override { return state_ ? &*state_ : nullptr; }

 private:
  FitContext& outer_;
  std::size_t member_, members_;
  std::optional<Tensors> state_;
  Wrap wrap_;
};

class Ensemble final : public Method {
 public:
  Ensemble(std::unique_ptr<Method> prototype, std::string preset, std::size_t members)
      : prototype_(std::move(prototype)), preset_(std::move(preset)), count_(members) {}

  Traits traits() const override { return prototype_->traits(); }
  void declare(Options& options) override { prototype_->declare(options); }
  std::vector<std::string> presets() const override { return prototype_->presets(); }
  void set_preset(const std::string& name, PrepareOptions& prepare) override {
    prototype_->set_preset(name, prepare);
    preset_ = name;
  }

  void fit(const Items& train, const Items& val, FitContext& context) override {
    make_members();
    std::size_t done = 0;
    std::optional<Tensors> current;
    ItemShape shape{{}, train.labels()};
    for (const auto& X : train.X) shape.columns.push_back(X.cols());
    if (const Tensors* state = context.resume_from()) {
      const auto saved = state->metadata.value(kState, nlohmann::json::object());
      done = saved.value("done", std::size_t{0});
      if (done >= count_) fail(Exit::data, "{}: {} of {} members done", state->path(), done, count_);
      for (std::size_t k = 0; k < done; ++k)
        members_[k]->load(member_file(*state, prefix(k), saved, k), shape);
      current = member_file(*state, kCurrent, saved, done);
    }
    for (std::size_t k = done; k < count_; ++k) {
      const auto wrap = [&](Tensors& file, FunctionRef<void(Tensors&)> snapshot) {
        save_members(file, k);
        Tensors part;
        snapshot(part);
        file.put_all(kCurrent, part);
        file.metadata[kState]["done"] = k;
        file.metadata[kState]["metadata"].push_back(part.metadata);
      };
      MemberContext member(context, k, count_, std::exchange(current, std::nullopt), wrap);
      try {
        members_[k]->fit(train, val, member);
      } catch (const Diverged& diverged) {
        members_.resize(k + (diverged.kept ? 1 : 0));
        throw Diverged(fmt::format("member {} of {}: {}", k + 1, count_, diverged.what()), !members_.empty());
      }
    }
  }

  void predict(const Items& items, MatrixView<float> scores) const override {
    Matrix<float> own(scores.rows, scores.cols);
    for (std::size_t i = 0; i < scores.rows; ++i) std::fill_n(scores.row(i).begin(), scores.cols, 0.f);
    const float share = 1.f / static_cast<float>(members_.size());
    for (const auto& member : members_) {
      member->predict(items, own);
      for (std::size_t i = 0; i < scores.rows; ++i)
        for (std::size_t j = 0; j < scores.cols; ++j) scores(i, j) += share * own(i, j);
    }
  }
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    members_.front()->decide(scores, decided);
  }

  void save(Tensors& file) const override {
    save_members(file, members_.size());
    file.metadata[kState]["done"] = members_.size();
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    const auto saved = file.metadata.value(kState, nlohmann::json::object());
    const auto done = saved.value("done", std::size_t{0});
    if (done == 0 || done > count_)
      fail(Exit::data, "{}: holds {} members, its settings say {}", file.path(), done, count_);
    count_ = done;
    make_members();
    for (std::size_t k = 0; k < count_; ++k) members_[k]->load(member_file(file, prefix(k), saved, k), shape);
  }
  std::uint64_t parameters() const override {
    std::uint64_t sum = 0;
    for (const auto& member : members_) sum += member->parameters();
    return sum;
  }

 private:
  void make_members() {
    Options settings;
    prototype_->declare(settings);
    members_.clear();
    for (std::size_t k = 0; k < count_; ++k) {
      members_.push_back(make_method(prototype_->traits().name));
      PrepareOptions unused;
      if (!preset_.empty()) members_[k]->set_preset(preset_, unused);
      Options own;
      members_[k]->declare(own);
      own.from_json(settings.json(), prototype_->traits().name);
    }
  }
  // The first `count` members' learned state. Each has a metadata object of its own, as methods may write
  // there.
  void save_members(Tensors& file, std::size_t count) const {
    file.metadata[kState] = {{"metadata", nlohmann::json::array()}};
    for (std::size_t k = 0; k < count; ++k) {
      Tensors part;
      members_[k]->save(part);
      file.put_all(prefix(k), part);
      file.metadata[kState]["metadata"].push_back(part.metadata);
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
  std::size_t count_;
  std::vector<std::unique_ptr<Method>> members_;
};

}  // namespace

std::uint64_t member_seed(std::uint64_t seed, std::size_t member) {
  if (member == 0) return seed;
  Random random(seed, Purpose::member, static_cast<std::uint32_t>(member));
  const std::uint64_t high = random.bits();
  return high << 32 | random.bits();
}

std::unique_ptr<Method> make_ensemble(std::unique_ptr<Method> prototype, const std::string& preset,
                                      std::size_t members) {
  return std::make_unique<Ensemble>(std::move(prototype), preset, members);
}

}  // namespace lacuna
