// The class behind methods/ensemble.h. ensemble.cc predicts with members and stores them, ensemble_fit.cc fits them.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "methods/blend.h"
#include "methods/ensemble.h"
#include "methods/row_memory.h"

namespace lacuna {

class MemberShare;

class Ensemble final : public Method, public MemoryHolder {
 public:
  Ensemble(std::unique_ptr<Method> prototype, std::string preset, std::vector<MemberSpec> specs,
           std::optional<Choosing> choosing);

  Traits traits() const override { return prototype_->traits(); }
  void declare(Options& options) override { prototype_->declare(options); }
  std::vector<std::string> presets() const override { return prototype_->presets(); }
  void set_preset(const std::string& name, PrepareOptions& prepare) override;
  Cost cost(const FitSize& size) const override;
  void fit(const Items& train, const Items& val, FitContext& context) override;
  nlohmann::json selected() const override;  // {"members": of each spec, "which", "blend", "choice"}
  void predict(const Items& items, MatrixView<float> scores) const override;
  void predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const override;
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override;
  void save(Tensors& file) const override;
  void load(const Tensors& file, const ItemShape& shape) override;
  std::uint64_t parameters() const override;
  nlohmann::json memory() const override;

  const nlohmann::json& choice() const { return choice_; }
  bool uses_form(std::size_t form) const;

 private:
  // One of all fits: of a member, on all training rows or without one part of them.
  static constexpr std::uint32_t kWhole = std::numeric_limits<std::uint32_t>::max();
  struct Fit {
    std::size_t member = 0;  // of the specs
    std::uint32_t part = kWhole;
  };

  void begin(const Items& train, FitContext& context);
  void follow(const nlohmann::json& first);
  // Into how many parts rows are divided for fits that take so long together; 0: they are not.
  std::uint32_t parts_within(std::size_t fits, std::size_t rows, double seconds) const;
  void plan_parts(const Items& train, double seconds, const FitContext& context);
  void fit_alone(const Items& train, const Items& val, FitContext& context);
  bool fit_some(std::size_t begin, std::size_t end, std::optional<Tensors>& current, const Items& train,
                const Items& val, FitContext& context);
  std::size_t at_once(const Items& train, const FitContext& context) const;
  void fit_shared(const Items& train, const Items& val, FitContext& context, MemberShare& share);
  void learn_shared(std::size_t begin, std::size_t end, const Items& train, const Items& val,
                    FitContext& context, MemberShare& share);
  void run(Method& method, const Fit& fit, const Items& train, const Items& val, FitContext& context) const;
  void take(const Fit& fit, std::unique_ptr<Method> method, const Items& train);
  void leave_out(std::size_t member, const Error& error);
  void choose(const Items& train, const Items& val, FitContext& context);
  void keep_chosen(const BlendChoice& choice, FitContext& context);
  std::vector<std::uint32_t> rows_of(std::uint32_t part, bool inside) const;
  void snapshot(Tensors& file, std::size_t done, const Tensors& current) const;
  std::optional<Tensors> restore(const Tensors& file, const Items& train, std::size_t& done);

  const MemberSpec& spec_of(std::size_t member) const { return specs_[which_[member]]; }
  std::unique_ptr<Method> make_member(const MemberSpec& spec) const;
  std::unique_ptr<Method> read_member(const Tensors& file, const MemberSpec& spec, std::size_t k,
                                      const ItemShape& shape) const;
  void save_members(Tensors& file) const;
  void load_members(const Tensors& file, const nlohmann::json& saved, std::size_t count,
                    const ItemShape& shape);

  std::unique_ptr<Method> prototype_;
  std::string preset_;
  std::vector<MemberSpec> specs_;
  std::optional<Choosing> choosing_;
  std::size_t teachers_ = 0;
  std::vector<std::unique_ptr<Method>> members_;  // those in the model
  std::vector<std::size_t> which_;                // the position of each one's spec
  Blend blend_;
  nlohmann::json choice_;

  // Used during a fit.
  std::vector<Fit> fits_;
  std::vector<std::uint32_t> parts_;  // of the training rows; empty: no fits on parts
  std::vector<Matrix<float>>
      crossed_;  // per spec: the values of each training row, by the fit that did not learn from it
  bool all_crossed_ = false;
  std::vector<std::string> left_out_;  // per spec: why it was left out, or empty
  std::optional<Error> failure_;       // the first error
  nlohmann::json selected_;            // per spec: what its fit selected, or null
  SharedMatrix<float> Q_;              // mean score of the teachers so far
};

constexpr const char* kEnsembleState = "ensemble";  // key of our part of a file's metadata
ItemShape shape_of(const Items& items);
// The part of a file that belongs to one member; entry k of the stored metadata is its metadata.
Tensors member_file(const Tensors& file, const std::string& name, const nlohmann::json& saved, std::size_t k);

}  // namespace lacuna
