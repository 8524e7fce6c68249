// Several fits of one method, used as one: probabilities are averaged as logits, other scores as they are.
// Members may differ in seed, in settings and in the preparation of their inputs. Some of them may be
// teachers: they are fitted first, the mean of their scores on the training rows becomes the soft labels of
// the members after them (Items::Q), and they are not part of the result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "methods/method.h"

namespace lacuna {

struct MemberSpec {
  std::vector<Setting> changes;  // of the method's settings, on top of those of the prototype
  std::size_t form = 0;          // the preparation it sees (Items::form)
  bool teacher = false;          // teachers come first
};

// The members of a plan, and the preparations that they see, each once; those that predictions need come first.
struct MemberForms {
  std::vector<MemberSpec> specs;  // none: a single fit
  std::vector<PrepareOptions> forms;
  std::size_t forms_of_predictions = 1;
};
// What a member changes in the settings of the preparation gives its form; the rest is its own.
MemberForms member_forms(const std::vector<MemberPlan>& plan, const PrepareOptions& prepare);
// The prefix of form k's tensors and metadata in a model file.
std::string form_prefix(std::size_t form);

// `prototype` holds the settings (and stays bound to whoever set them); the members are made from it. Member
// 0 has the seed itself, so that an ensemble of one is the single fit.
std::unique_ptr<Method> make_ensemble(std::unique_ptr<Method> prototype, const std::string& preset,
                                      std::vector<MemberSpec> specs);

// The seed of member k.
std::uint64_t member_seed(std::uint64_t seed, std::size_t member);

}  // namespace lacuna
