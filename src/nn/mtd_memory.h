// Everything that a step of the two-channel network writes besides parameters. Sized once for the largest batch; a
// step allocates nothing. Private to nn/mtd*.cc.
#pragma once

#include "nn/mtd.h"

namespace lacuna {

// The instances of one view that a step computes: their rows in the stack, and their items.
struct MtdBlock {
  std::vector<std::uint32_t> rows;  // positions in the items, in batch order
  std::vector<Fragment> fragments;  // the hidden fragment of each row; all of the extra row
  std::size_t offset = 0;           // first row in the stack
  std::size_t missing = 0;          // instances that the extra last row stands for; 0 = there is no such row
  std::size_t noise = 0;            // rows of noise behind those of the items, one for each missing instance
  std::size_t total() const { return rows.size() + noise + (missing > 0 ? 1 : 0); }

  Parcel::Piece<std::uint32_t> rows_piece;  // the lists in the parcel that goes to the engine
  Parcel::Piece<Fragment> fragments_piece;
};

template <class T>
struct MtdNetwork<T>::Memory {
  std::size_t capacity = 0;  // rows of the largest batch so far

  // The plan of the step: which instances are left, which fragments are hidden, and the rows of the stack.
  std::vector<MtdBlock> blocks;              // of the views that encoders see
  std::vector<MtdBlock> targets;             // of the instances to be reconstructed
  std::vector<std::uint8_t> left;            // (b, m) flat: the view is present and not hidden
  std::vector<Fragment> fragments;           // (b, m) flat
  Matrix<std::int32_t> slots, target_slots;  // (b, m)
  std::size_t stack_rows = 0, target_rows = 0;
  Parcel parcel;  // the parts of the plan that the engine reads
  Parcel::Piece<std::uint32_t> rows_piece, noise_piece;
  Parcel::Piece<std::int32_t> slots_piece, target_slots_piece;

  // The same in the engine's memory.
  std::span<const std::uint32_t> rows() const { return parcel.at(rows_piece); }
  std::span<const std::uint32_t> rows(const MtdBlock& block) const { return parcel.at(block.rows_piece); }
  std::span<const Fragment> fragments_of(const MtdBlock& block) const {
    return parcel.at(block.fragments_piece);
  }
  Slots slots_of(Parcel::Piece<std::int32_t> piece) const {
    const std::size_t views = blocks.size();
    return {parcel.at(piece).data(), piece.count / views, views};
  }

  std::vector<Buffer<T>> X;                           // per view (b + 1, d_v): X'
  std::vector<EngineMatrix<float>> noise;             // per view (b, d_v), where missing instances are noise
  std::vector<std::uint32_t> noise_rows;              // 0 .. b - 1
  std::vector<FormPointer> X_forms;                   // per view: of X
  std::vector<std::vector<ChainMemory<T>>> encoders;  // per view and channel
  EngineMatrix<T> U[2], S[2], dS[2], saved[2];               // per channel, stacks: before and after the norm
  EngineMatrix<T> mean[2], dmean[2];                         // per channel (b, d_e): S̄, Ō
  EngineMatrix<T> F, Z, C, dF;                               // (b, d_e): fused, after ReLU, after dropout
  EngineMatrix<T> logits, dlogits;                           // (b, c)

  EngineMatrix<T> D, dD;                                 // stacks: decoder inputs
  std::vector<ChainMemory<T>> decoders;           // per view
  std::vector<Buffer<T>> reconstruction, target;  // per view (r, d_v)

  EngineMatrix<T> V, dV, view_logits;  // stacks: inputs and outputs of the view classifiers

  std::vector<PingPong<T>> scratch;  // per view and channel

  std::vector<Ranks::Part> parts;  // what ranks exchange
  // Lists of jobs, one for each use, whose memory is kept.
  std::vector<GatherJob<T>> gathers;
  std::vector<ChainForward<T>> forwards;
  std::vector<ChainBackward<T>> backwards;
  std::vector<NormForward<T>> norms;
  std::vector<NormBackward<T>> norms_back;
  std::vector<DropoutJob<T>> dropouts;
  std::vector<ForwardJob<T>> classifiers;
  std::vector<BackwardJob<T>> classifiers_back;
  std::vector<ReconstructionJob<T>> reconstructions;
};

}  // namespace lacuna
