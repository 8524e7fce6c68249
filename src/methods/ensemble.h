// Several fits used as one. Members may differ in seed, in settings, in the preparation of their inputs and in method.
//
// Teachers are fitted first: the mean of their scores on the training rows becomes the soft labels of the members after
// them (Items::Q), and they are not part of the result. The others have equal weights, or they are candidates: fitted
// as far as a budget allows, judged on rows that they did not learn from, and weighted or left out (methods/blend.h).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "methods/method.h"

namespace lacuna {

struct MemberSpec {
  std::vector<Setting> changes;        // of the method's settings, on top of those of the prototype
  std::size_t form = 0;                // number of its preparation (Items::form)
  bool teacher = false;                // teachers come first
  std::string method = {};             // empty: that of the prototype
  std::vector<Setting> prepared = {};  // settings of its preparation, for its name
};

// The members of a plan, and their preparations, each once; those needed for predictions come first.
struct MemberForms {
  std::vector<MemberSpec> specs;  // none: a single fit
  std::vector<PrepareOptions> forms;
  std::size_t forms_of_predictions = 1;
};
// A member's changes to the settings of the preparation determine its form; the others are its own settings.
MemberForms member_forms(const std::vector<MemberPlan>& plan, const PrepareOptions& prepare);
// The prefix of form k's tensors and metadata in a model file.
std::string form_prefix(std::size_t form);
bool has_form(const Tensors& file, std::size_t form);

// For candidates: processor time for all fits together, by the methods' own estimates, so that the same call gives the
// same model on any machine. The first candidate is always fitted.
struct Choosing {
  double seconds = 0;
};

// `prototype` has the settings (and stays bound to its owner); the members are made from it. Member 0 uses the
// seed itself, so an ensemble of one equals the single fit. With `choosing` the members are candidates.
std::unique_ptr<Method> make_ensemble(std::unique_ptr<Method> prototype, const std::string& preset,
                                      std::vector<MemberSpec> specs, std::optional<Choosing> choosing = {});

// The seed of member k.
std::uint64_t member_seed(std::uint64_t seed, std::size_t member);

// The choice among candidates: {"members": [{"method", "settings", "weight", "ap"} or {..., "left_out": why}],
// "judged_rows", "crossed", "ap", "gain", "error"}; null for other models.
nlohmann::json choice_of(const Method& method);
// The members of a model that are in use: positions in the plan without teachers. Empty: all of the first `done`.
std::vector<std::size_t> members_in_use(const Tensors& file);
// Which preparations predictions read, by number; only the first if the method is no ensemble.
std::vector<bool> forms_in_use(const Method& method, std::size_t forms);

}  // namespace lacuna
