#include "methods/ensemble.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "methods/estimate.h"
#include "methods/members.h"

namespace lacuna {
namespace {

constexpr const char* kWhich = "which";  // of the specs the members are; without it, those after the teachers

std::string prefix(std::size_t member) {
  return fmt::format("member{}.", member);
}

}  // namespace

Ensemble::Ensemble(std::unique_ptr<Method> prototype, std::string preset, std::vector<MemberSpec> specs,
                   std::optional<Choosing> choosing)
    : prototype_(std::move(prototype)),
      preset_(std::move(preset)),
      specs_(std::move(specs)),
      choosing_(choosing) {
  while (teachers_ < specs_.size() && specs_[teachers_].teacher) ++teachers_;
}

void Ensemble::set_preset(const std::string& name, PrepareOptions& prepare) {
  prototype_->set_preset(name, prepare);
  preset_ = name;
}

// Candidates beyond the budget, or beyond the memory, are not fitted; the others also without parts of the rows.
Cost Ensemble::cost(const FitSize& size) const {
  Cost sum;
  std::size_t fits = 0;
  for (const MemberSpec& spec : specs_) {
    const Cost one = make_member(spec)->cost(size);
    if (choosing_ && fits > 0 &&
        (sum.core_seconds + one.core_seconds > choosing_->seconds ||
         one.bytes > static_cast<double>(machine_memory())))
      continue;
    ++fits;
    sum.core_seconds += one.core_seconds;
    sum.bytes = std::max(sum.bytes, sum.kept + one.bytes);
    sum.kept += one.kept;
  }
  sum.core_seconds *= std::max(1u, parts_within(fits, size.rows, sum.core_seconds));
  return sum;
}

void Ensemble::predict(const Items& items, MatrixView<float> scores) const {
  BlendedScore sum(blend_, scores.rows, scores.cols);
  for (std::size_t k = 0; k < members_.size(); ++k) {
    values_of(*members_[k], items.form(spec_of(k).form), scores);
    sum.add(scores);
  }
  sum.write(scores, traits().probabilities);
}

void Ensemble::predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const {
  BlendedScore sum(blend_, values.rows, values.cols);
  for (std::size_t k = 0; k < members_.size(); ++k) {
    members_[k]->predict_sets(items.form(spec_of(k).form), sets, values);
    sum.add(values);
  }
  sum.write(values, false);
}

void Ensemble::decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const {
  if (choosing_) return Method::decide(scores, decided);
  members_.front()->decide(scores, decided);
}

void Ensemble::save(Tensors& file) const {
  save_members(file);
  file.metadata[kEnsembleState]["done"] = members_.size();
  if (!choosing_) return;
  file.metadata[kEnsembleState]["choice"] = choice_;
  save_blend(blend_, file);
}

void Ensemble::load(const Tensors& file, const ItemShape& shape) {
  const auto saved = file.metadata.value(kEnsembleState, nlohmann::json::object());
  const auto done = saved.value("done", std::size_t{0});
  if (done == 0 || done > specs_.size() - teachers_)
    fail(Exit::data, "{}: contains {} members, its settings say {}", file.path(), done,
         specs_.size() - teachers_);
  load_members(file, saved, done, shape);
  if (!choosing_) return;
  choice_ = saved.value("choice", nlohmann::json());
  blend_ = load_blend(file, done);
}

std::uint64_t Ensemble::parameters() const {
  std::uint64_t sum = 0;
  for (const auto& member : members_) sum += member->parameters();
  return sum;
}

nlohmann::json Ensemble::memory() const {
  auto all = nlohmann::json::array();
  for (const auto& member : members_) all.push_back(memory_of(*member));
  const bool none = std::ranges::all_of(all, [](const auto& one) { return one.is_null(); });
  return none ? nlohmann::json() : all;
}

bool Ensemble::uses_form(std::size_t form) const {
  for (std::size_t k = 0; k < members_.size(); ++k)
    if (spec_of(k).form == form) return true;
  return false;
}

std::unique_ptr<Method> Ensemble::make_member(const MemberSpec& spec) const {
  const std::string own_name = prototype_->traits().name;
  const bool other = !spec.method.empty() && spec.method != own_name;
  auto member = make_method(other ? spec.method : own_name);
  PrepareOptions unused;
  const auto presets = member->presets();
  const std::string preset = other ? (presets.empty() ? "" : presets.front()) : preset_;
  if (!preset.empty()) member->set_preset(preset, unused);
  Options settings, own;
  member->declare(own);
  if (!other) {
    prototype_->declare(settings);
    own.from_json(settings.json(), own_name);
  }
  for (const auto& [name, value] : spec.changes) own.set(name, value, "a member");
  return member;
}

std::unique_ptr<Method> Ensemble::read_member(const Tensors& file, const MemberSpec& spec, std::size_t k,
                                              const ItemShape& shape) const {
  if (spec.form > shape.others.size() || (spec.form > 0 && shape.others[spec.form - 1].empty()))
    fail(Exit::data, "{}: the preparation of member {} is missing", file.path(), k);
  auto member = make_member(spec);
  member->load(file, {spec.form == 0 ? shape.columns : shape.others[spec.form - 1], shape.labels, {}});
  return member;
}

// The learned state of the members, without teachers. Each has a metadata object of its own, as methods may
// write there.
void Ensemble::save_members(Tensors& file) const {
  auto& state = file.metadata[kEnsembleState] = {{"metadata", nlohmann::json::array()}};
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Tensors part;
    members_[k]->save(part);
    file.put_all(prefix(k), part);
    state["metadata"].push_back(part.metadata);
  }
  if (choosing_) state[kWhich] = which_;
}

void Ensemble::load_members(const Tensors& file, const nlohmann::json& saved, std::size_t count,
                            const ItemShape& shape) {
  members_.clear();
  which_.clear();
  const std::vector<std::size_t> used = choosing_ ? members_in_use(file) : std::vector<std::size_t>();
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t spec = choosing_ && k < used.size() ? used[k]
                             : choosing_                  ? specs_.size()
                                                          : teachers_ + k;
    if (spec < teachers_ || spec >= specs_.size())
      fail(Exit::data, "{}: member {} is not among the {} that its settings plan", file.path(), k,
           specs_.size() - teachers_);
    members_.push_back(read_member(member_file(file, prefix(k), saved, k), specs_[spec], k, shape));
    which_.push_back(spec);
  }
}

Tensors member_file(const Tensors& file, const std::string& name, const nlohmann::json& saved,
                    std::size_t k) {
  Tensors part = file.part(name);
  const auto all = saved.find("metadata");
  if (all == saved.end() || !all->is_array() || all->size() <= k || !(*all)[k].is_object())
    fail(Exit::data, "{}: metadata of member {} is missing", file.path(), k);
  part.metadata = (*all)[k];
  return part;
}

ItemShape shape_of(const Items& items) {
  ItemShape shape{{}, items.labels(), {}};
  for (const auto& X : items.X) shape.columns.push_back(X.cols());
  for (const auto& other : items.others) {
    auto& columns = shape.others.emplace_back();
    for (const auto& X : other.X) columns.push_back(X.cols());
  }
  return shape;
}

std::vector<std::size_t> members_in_use(const Tensors& file) {
  const auto saved = file.metadata.value(kEnsembleState, nlohmann::json::object());
  return saved.value(kWhich, std::vector<std::size_t>());
}

nlohmann::json choice_of(const Method& method) {
  const auto* ensemble = dynamic_cast<const Ensemble*>(&method);
  return ensemble == nullptr ? nlohmann::json() : ensemble->choice();
}

std::vector<bool> forms_in_use(const Method& method, std::size_t forms) {
  const auto* ensemble = dynamic_cast<const Ensemble*>(&method);
  std::vector<bool> used(forms);
  for (std::size_t k = 0; k < forms; ++k) used[k] = ensemble == nullptr || ensemble->uses_form(k);
  return used;
}

std::uint64_t member_seed(std::uint64_t seed, std::size_t member) {
  if (member == 0) return seed;
  Random random(seed, Purpose::member, static_cast<std::uint32_t>(member));
  const std::uint64_t high = random.bits();
  return high << 32 | random.bits();
}

// Of a member of another method: that method's, but for who may be looked at.
static PrepareOptions own_preparation(const std::string& method, const PrepareOptions& prepare) {
  const Traits traits = make_method(method)->traits();
  PrepareOptions own;
  own.kind = traits.prepare;
  own.components = traits.components;
  own.leaky = prepare.leaky;
  own.seed = prepare.seed;
  return own;
}

MemberForms member_forms(const std::vector<MemberPlan>& plan, const PrepareOptions& prepare) {
  if (plan.size() == 1 && plan.front().changes.empty() && plan.front().method.empty())
    return {{}, {prepare}, 1};
  MemberForms result;
  result.specs.resize(plan.size());
  std::vector<nlohmann::json> seen;
  for (const bool teachers : {false, true}) {
    for (std::size_t k = 0; k < plan.size(); ++k) {
      if (plan[k].teacher != teachers) continue;
      MemberSpec& spec = result.specs[k];
      spec.teacher = teachers;
      spec.method = plan[k].method;
      PrepareOptions own = spec.method.empty() ? prepare : own_preparation(spec.method, prepare);
      Options options;
      own.declare(options);
      for (const Setting& change : plan[k].changes) {
        if (options.find(change.name) != nullptr) {
          options.set(change.name, change.value, "a member");
          spec.prepared.push_back(change);
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

bool has_form(const Tensors& file, std::size_t form) {
  return file.metadata.contains(form_prefix(form) + "views");
}

std::unique_ptr<Method> make_ensemble(std::unique_ptr<Method> prototype, const std::string& preset,
                                      std::vector<MemberSpec> specs, std::optional<Choosing> choosing) {
  return std::make_unique<Ensemble>(std::move(prototype), preset, std::move(specs), choosing);
}

}  // namespace lacuna
