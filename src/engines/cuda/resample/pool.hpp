// SPDX-License-Identifier: Apache-2.0
// Pooling with windows of 2 x 2 and 3 x 3 elements, which kernels of their own load whole before they compute.
#pragma once

#include <optional>
#include <string>

#include "engines/cuda/resample/args.cuh"
#include "graph/graph.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {

// Channels that a thread takes at once: they share its window.
struct Channels {
  int64_t count = 1;
  bool together = true;
};

struct PoolTensors {
  TensorId x, y, index;    // backward: dx and dy. kNone: not wanted, or the index is packed in the workspace
  std::string index_type;  // in device code
  Dims size;               // of y: n, c and three spatial ones
  Channels channels;
};

struct PoolKernel {
  std::string include;
  std::string body;
  Grid grid;
};

// The kernel, with the threads' shares set in `a`, which holds all else; nothing where the windows, types or layouts
// are others.
std::optional<PoolKernel> choose_pool(const Graph& g, const PoolTensors& t, dev::ResampleArgs& a);
std::optional<PoolKernel> choose_pool_bwd(const Graph& g, const PoolTensors& t, dev::ResampleArgs& a);

}  // namespace tsr::cuda
