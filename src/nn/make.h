// Makes the network that the options describe.
#pragma once

#include <memory>

#include "nn/early.h"
#include "nn/mtd.h"
#include "nn/pair.h"

namespace lacuna {

template <class T>
std::unique_ptr<BasicNetwork<T>> make_network(const MtdOptions& options, const NetworkShape& shape,
                                              std::uint64_t seed, std::unique_ptr<Ops<T>> ops) {
  if (options.fusion == Fusion::both)
    return std::make_unique<PairNetwork<T>>(options, shape, seed, std::move(ops));
  if (options.fusion == Fusion::early)
    return std::make_unique<EarlyNetwork<T>>(options, shape, seed, std::move(ops));
  return std::make_unique<MtdNetwork<T>>(options, shape, seed, std::move(ops));
}

}  // namespace lacuna
