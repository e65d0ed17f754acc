// SPDX-License-Identifier: Apache-2.0
// A convolution in groups of few channels, as its kernels see it (args.cuh), and the ways to cut it into patches.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engines/cuda/groups/args.cuh"
#include "engines/cuda/toolkit/epilogue.hpp"

namespace tsr::cuda {

// The filter has its taps there, counted from its end where it is turned.
struct GroupsAxis : dev::GroupsWindow {
  int64_t in = 1, out = 1, first = 0;
  bool turned = false;
};

struct GroupsProblem {
  NodeId anchor = kNone;
  Epilogue epilogue;
  Reduction reduction{};
  TensorId pictures = kNone, other = kNone;  // what windows walk over; the filter, or for its gradient that of results
  bool data_gradient = false, filter_gradient = false;
  DType type = DType::bf16;
  int64_t size = 1, channels = 1, images = 1;  // size: channels of a group
  GroupsAxis planes, rows, columns;
  std::vector<std::array<int64_t, 5>> strides;  // of the operands of what follows, as args.cuh has them

  int element_bytes() const { return info(type).bits / 8; }
  int64_t taps() const { return int64_t{rows.taps} * columns.taps; }
  int64_t sums() const { return channels * planes.taps * taps() * size; }  // of the gradient of the filter
  int residues() const { return rows.spread * columns.spread; }
};

// With channels apart, or in groups. Nothing, and why, if the engine cannot take the region.
std::optional<GroupsProblem> find_groups(const Region& r, bool apart, Reason* why);

struct GroupsChoice {
  int rows, columns;  // positions of a patch, of each pair of residues
  int wide;           // columns of a thread, of each residue; 0: on tensor cores
  int chunks;         // 16 bytes of channels each
  int tap_rows;       // that a block sums at once, for the gradient of a filter on CUDA cores
  int64_t shares;     // of the patches, for the gradient of a filter
  double seconds = 0;

  int threads(const GroupsProblem& p) const;
  int64_t shared_bytes(const GroupsProblem& p) const;
  int64_t tiles(const GroupsProblem& p) const;                                     // of channels
  int64_t down(const GroupsProblem&p) const, across(const GroupsProblem&p) const;  // patches of an image
  int64_t patches(const GroupsProblem& p) const;
  // Blocks that share a patch: for the gradient of a filter they have planes of taps, on CUDA cores also rows; else
  // residues, on tensor cores.
  int64_t parts(const GroupsProblem& p) const;
};

// Best first, by the model; none: no patch fits into shared memory.
std::vector<GroupsChoice> groups_choices(const GroupsProblem& p, const Region& r, const Device& d);

}  // namespace tsr::cuda
