// What a step of the two-channel network writes besides parameters: sized once for the largest batch, never
// inside a step. Private to nn/mtd*.cc.
#pragma once

#include "nn/mtd.h"

namespace lacuna {

template <class T>
struct MtdNetwork<T>::Memory {
  std::size_t capacity = 0;  // rows of the largest batch so far

  // The plan of the step: which instances are left, what is hidden of them, where they lie.
  struct Block {
    std::vector<std::uint32_t> rows;    // positions in the items, in batch order
    std::vector<Fragment> fragments;    // what is hidden of each row; of the extra row everything
    std::span<const float> background;  // that most of X' equals, or empty
    Deviations few;                     // X' once more, if it has a background
    LayerInput<T> input(MatrixView<const T> X) const { return {X, few}; }
    std::size_t offset = 0;   // first row in the stack
    std::size_t missing = 0;  // instances that the extra last row stands for; 0 = there is no such row
    std::size_t total() const { return rows.size() + (missing > 0 ? 1 : 0); }
  };
  std::vector<Block> blocks;                 // of the views that encoders see
  std::vector<Block> targets;                // of the instances to be reconstructed
  std::vector<std::uint8_t> left;            // (b, m) flat: the view is present and not hidden
  std::vector<Fragment> fragments;           // (b, m) flat
  Matrix<std::int32_t> slots, target_slots;  // (b, m)
  std::size_t stack_rows = 0, target_rows = 0;

  std::vector<Buffer<T>> X;                           // per view (b + 1, d_v): X'
  std::vector<std::vector<ChainMemory<T>>> encoders;  // per view and channel
  Matrix<T> U[2], S[2], dS[2], saved[2];              // per channel, stacks: before and after the norm
  Matrix<T> mean[2], dmean[2];                        // per channel (b, d_e): S̄, Ō
  Matrix<T> F, Z, C, dF;                              // (b, d_e): fused, after ReLU, after dropout
  Matrix<std::uint8_t> keep_C;
  Matrix<T> logits, dlogits;  // (b, c)

  Matrix<T> D, dD;                       // stacks: decoder inputs
  std::vector<ChainMemory<T>> decoders;  // per view
  Buffer<T> reconstruction, target;      // (r, d_v) of one view at a time

  Matrix<T> V, dV, view_logits;  // stacks: inputs and outputs of the view classifiers
  Matrix<std::uint8_t> keep_V;

  PingPong<T> scratch;
};

}  // namespace lacuna
