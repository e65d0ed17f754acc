// SPDX-License-Identifier: Apache-2.0
// A recurrent network made ready for a GPU: sizes, where everything lies in the workspace, the kernels. An execution
// multiplies the inputs of all steps at once, then launches one kernel for each step (two with a projection).
#pragma once

#include "engines/cuda/rnn/args.cuh"
#include "engines/cuda/toolkit/launches.hpp"
#include "engines/rnn/tensors.hpp"

namespace tsr::cuda {

// Memory of one layer in one direction; offsets into the workspace, in bytes. See RnnStepArgs.
struct RnnTape {
  size_t gates = 0, recurrent = 0, old_h = 0, old_c = 0, full_h = 0, projected_dh = 0;
};

class RnnNetwork {
 public:
  RnnNetwork(const Region& r, const Device& d);
  size_t workspace_bytes() const { return bytes_; }
  // With `dry` nothing is launched. Returns the number of launches.
  int run(const StepArgs& a, bool dry = false) const;

 private:
  friend class RnnExecution;
  enum Kernels : uint8_t {
    kLengths,
    kProduct,
    kSum,
    kDrop,
    kSkip,
    kSkipBwd,
    kStep,
    kProject,
    kStepBwd,
    kProjectBwd,
    kKernelCount
  };
  using KernelPointer = std::shared_ptr<const Kernel>;
  // A tensor, and the kernel that moves it from or to rows.
  struct Table {
    RnnTensor tensor;
    size_t host_bytes = 0;
    KernelPointer kernel;
  };

  size_t take(int64_t elements, int64_t element_bytes);
  void lay_out();
  void compile(const Graph& g, const Device& d);
  const RnnTape& tape(int64_t layer, int64_t direction) const {
    return tapes_[static_cast<size_t>(keeps_ ? layer * w_.directions() + direction : 0)];
  }
  // Input of a layer; that of layer `layers` is the output of the network.
  size_t sequence(int64_t layer) const { return sequences_[static_cast<size_t>(keeps_ ? layer : layer % 2)]; }

  tessera::RnnOptions o_;
  RnnTensors t_;
  RnnWeights w_;
  RnnExtent e_;
  bool keeps_;  // the backward pass needs everything
  std::string lane_;
  int64_t lane_bytes_, sums_;  // sums: gates * hidden
  bool weights_in_place_;      // the tensor is what the kernels read
  size_t lengths_host_bytes_ = 0;
  size_t bytes_ = 0;
  size_t lengths_ = 0, starts_ = 0, weights_ = 0, h_[2] = {}, c_ = 0, dh_ = 0, dc_ = 0, gradients_[2] = {},
         dweight_ = 0;
  std::vector<size_t> sequences_;
  std::vector<RnnTape> tapes_;
  KernelPointer kernels_[kKernelCount];
  Table x_, weight_, h0_, c0_, dy_, dhn_, dcn_, y_, hn_, cn_, dx_, dh0_, dc0_, dweight_out_;
};

}  // namespace tsr::cuda
