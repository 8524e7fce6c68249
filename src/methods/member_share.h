// The members of an ensemble, divided among several processes.
#pragma once

#include <cstddef>

#include "nn/fit.h"

namespace lacuna {

// A member's state has the same bits whichever process trained it.
class MemberShare {
 public:
  virtual ~MemberShare() = default;
  virtual bool done(std::size_t member) const = 0;
  // Whether this process should train it now, because no other process does.
  virtual bool take(std::size_t member) = 0;
  virtual void keep(std::size_t member, const Tensors& state) = 0;  // stores a trained member, ends its claim
  virtual Tensors read(std::size_t member) const = 0;               // a member that is done
  virtual void wait() = 0;                                          // a moment, for members that others train
};

// The context of a fit that may share its members. Only ensembles use it.
class SharedFit : public FitContext {
 public:
  virtual MemberShare* shared_members() = 0;  // null: this process trains all of them
};

}  // namespace lacuna
