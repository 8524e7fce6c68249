// The members of an ensemble as work that several processes share.
#pragma once

#include <cstddef>

#include "nn/fit.h"

namespace lacuna {

// A member's state has the same bits whichever process trained it.
class MemberShare {
 public:
  virtual ~MemberShare() = default;
  virtual bool done(std::size_t member) const = 0;
  // Whether this process should train it now: no other process does.
  virtual bool take(std::size_t member) = 0;
  virtual void keep(std::size_t member, const Tensors& state) = 0;  // and gives it back
  virtual Tensors read(std::size_t member) const = 0;               // of one that is done
  virtual void wait() = 0;                                          // a moment, for those that others learn
};

// Surroundings of a fit that may share its members. Methods that are no ensembles do not ask.
class SharedFit : public FitContext {
 public:
  virtual MemberShare* shared_members() = 0;  // null: this process learns them all
};

}  // namespace lacuna
