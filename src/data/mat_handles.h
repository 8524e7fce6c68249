// Handles of libmatio that free themselves.
#pragma once

#include <matio.h>

#include <memory>

namespace lacuna {

struct CloseMat {
  void operator()(mat_t* mat) const { Mat_Close(mat); }
};
struct FreeVariable {
  void operator()(matvar_t* variable) const { Mat_VarFree(variable); }
};
using MatHandle = std::unique_ptr<mat_t, CloseMat>;
using Variable = std::unique_ptr<matvar_t, FreeVariable>;

}  // namespace lacuna
