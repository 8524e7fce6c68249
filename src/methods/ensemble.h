// Several fits of one method with different seeds, used as one: the score is the mean of the members' scores.
#pragma once

#include <memory>
#include <string>

#include "methods/method.h"

namespace lacuna {

// `prototype` holds the settings (and stays bound to whoever set them); the members are made from it. Member
// 0 has the seed itself, so that an ensemble of one is the single fit.
std::unique_ptr<Method> make_ensemble(std::unique_ptr<Method> prototype, const std::string& preset,
                                      std::size_t members);

// The seed of member k.
std::uint64_t member_seed(std::uint64_t seed, std::size_t member);

}  // namespace lacuna
