// SPDX-License-Identifier: Apache-2.0
// A recurrent network made ready for a GPU: sizes, where everything lies in the workspace, the kernels. An execution
// multiplies the inputs of all steps at once, then launches one kernel for each step (two with a projection), or for
// all steps where tensor cores multiply and all weights fit into shared memory.
#pragma once

#include <optional>

#include "engines/cuda/rnn/args.cuh"
#include "engines/cuda/rnn/shape.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "engines/rnn/tensors.hpp"

namespace tsr::cuda {

// Memory of one layer in one direction; offsets into the workspace, in bytes. See RnnStepArgs.
struct RnnTape {
  size_t gates = 0, recurrent = 0, old_h = 0, old_c = 0, full_h = 0, projected_dh = 0, d_gates = 0, d_recurrent = 0;
};

// How steps are computed: on CUDA cores in the type of the computation, or on tensor cores, with what they multiply in
// its 16 bits; then also with weights that stay in shared memory.
struct RnnWay {
  bool tensor = false, resident = false;
  RnnTile tile = {};  // of the steps backward, or forward where there are no others
};
// The ways, the best first, with their modelled seconds.
std::vector<std::pair<RnnWay, double>> rnn_ways(const Region& r, const Device& d);

// What an execution finds in memory.
struct RnnMemory {
  std::byte* workspace;
  void *x, *y, *weight;  // as they are, where kernels read and write them in place
  dev::Operand lengths;
  dev::Operand tables[14];  // tensors that are moved from or to rows
};

class RnnNetwork {
 public:
  RnnNetwork(const Region& r, const Device& d, const RnnWay& way);
  size_t workspace_bytes() const { return bytes_; }
  int count_launches() const;
  void run(const StepArgs& a) const;

 private:
  friend class RnnExecution;
  enum Kernels : uint8_t {
    kLengths,
    kProduct,         // inputs of all steps
    kProductInput,    // their gradients
    kProductWeights,  // gradients of weights
    kAddParts,
    kSum,
    kDrop,
    kDropBwd,
    kSkip,
    kSkipBwd,
    kStep,
    kProject,
    kStepBwd,
    kProjectBwd,
    kPackWeights,
    kPackStates,
    kKernelCount
  };
  using KernelPointer = std::shared_ptr<const Kernel>;
  // A tensor, where it is in RnnMemory, and the kernel that moves it from or to rows.
  struct Table {
    RnnTensor tensor;
    size_t number = 0;
    KernelPointer kernel;
  };

  // What the steps of one direction have for themselves: states and their gradients; on tensor cores also weights and
  // states as fragments (in pairs: a step reads what the one before left), and counts of blocks.
  struct Direction {
    size_t h[2] = {}, c = 0, dh = 0, dc = 0;
    size_t fragments = 0, projected_fragments = 0, states[2] = {}, projected_states[2] = {}, arrived = 0;
  };

  size_t take(int64_t elements, int64_t element_bytes);
  void choose_shapes(const Device& d);
  void lay_out();
  void lay_out_fragments(Direction& to);
  int64_t first_bias() const;
  int64_t product_splits(int64_t m, int64_t n, int64_t k) const;
  void compile(const Graph& g, const Device& d);
  void compile_steps(const Device& d);
  KernelPointer kernel(const Device& d, const char* file, const char* args, const std::string& body,
                       int blocks_per_unit = 1) const;
  // Whether the rows of a sequence are the tensor itself.
  bool lies_in_rows(const Graph& g, const RnnTensor& t) const;
  const RnnTape& tape(int64_t layer, int64_t direction) const {
    return tapes_[static_cast<size_t>(keeps_ ? layer * w_.directions() + direction : paired_ ? direction : 0)];
  }
  // Input of a layer; that of layer `layers` is the output of the network.
  size_t sequence(int64_t layer) const { return sequences_[static_cast<size_t>(keeps_ ? layer : layer % 2)]; }

  tessera::RnnOptions o_;
  RnnTensors t_;
  RnnWeights w_;
  RnnExtent e_;
  bool keeps_;  // the backward pass needs everything
  RnnWay way_;
  std::string lane_, kept_;                          // types: of the computation, and of what is multiplied
  int64_t lane_bytes_, kept_bytes_, sums_;           // sums: gates * hidden
  bool weights_in_place_, x_in_place_, y_in_place_;  // the tensor is what the kernels read or write
  KernelArgs<RnnMemory> memory_;
  size_t bytes_ = 0;
  size_t lengths_ = 0, starts_ = 0, weights_ = 0, gradients_[2] = {}, dweight_ = 0;
  std::vector<size_t> sequences_;
  std::vector<RnnTape> tapes_;
  RnnShape shapes_[kKernelCount];  // on tensor cores, of kStep .. kProjectBwd
  int64_t product_blocks_ = 0;     // of products on tensor cores, that fill the GPU
  size_t parts_ = 0;               // of products whose blocks share the inner dimension
  bool paired_ = false;            // one launch runs the steps of both directions
  Direction directions_[2];        // the same memory, unless they are paired
  KernelPointer kernels_[kKernelCount];
  Table x_, weight_, h0_, c0_, dy_, dhn_, dcn_, y_, hn_, cn_, dx_, dh0_, dc0_, dweight_out_;
};

}  // namespace tsr::cuda
