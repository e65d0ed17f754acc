// SPDX-License-Identifier: Apache-2.0
// The engine contract. An engine is a stateless object that can run some regions of a graph on some devices.
//
//   check    decides support, and is the only place where that is decided; cheap, called thousands of times
//   configs  lists candidates with a modelled cost, best first
//   build    makes the step; may not fail for a region that check accepted, except for lack of resources
//
// Executing a step only launches work: no allocation, compilation, synchronisation or lock, any number of threads at
// once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "graph/graph.hpp"
#include "planner/device.hpp"

namespace tsr {

// A part of a graph that one step computes. Nodes are in topological order.
struct Region {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;
  std::vector<TensorId> inputs;     // read, not produced inside; constants included
  std::vector<TensorId> outputs;    // produced inside; stored, or read by other regions
  std::vector<TensorId> internals;  // produced and used inside only
};

struct Config {
  std::vector<std::pair<std::string, int64_t>> knobs;
  double seconds = 0;     // modelled, or measured by tuning
  bool measured = false;  // whether `seconds` was measured on this machine
};
std::string to_string(const Config& c);

struct StepArgs {
  // By TensorId: device memory; host memory for by-value scalars and constants of one element.
  void* const* tensors = nullptr;
  std::byte* workspace = nullptr;  // workspace_bytes() of the step, aligned to 256
  void* stream = nullptr;          // a CUstream on CUDA devices
};

class Step {
 public:
  virtual ~Step() = default;
  virtual size_t workspace_bytes() const { return 0; }
  virtual int kernels() const { return 1; }  // launches, for explain
  // The input whose memory the one output is, for steps that move nothing; the plan then gives both the same pointer.
  virtual TensorId view_of() const { return kNone; }
  // May the output lie in the memory of the input, which has the same sizes and strides? Then the step reads each element
  // before it writes the result in its place. Otherwise the plan hands the step a copy of the input.
  virtual bool may_overwrite(TensorId /*input*/, TensorId /*output*/) const { return false; }
  virtual void run(const StepArgs& args) const = 0;
};

struct EngineInfo {
  std::string_view name;
  int id = 0;  // public and stable: never reused
  DeviceKind device = DeviceKind::cpu;
  bool deterministic = true;  // the same bits for the same input, every time
  std::string_view text;      // one line for `list engines`
  bool last_resort = false;   // takes what all other engines of its device decline, at any cost
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const EngineInfo& info() const = 0;
  virtual Reason check(const Region& r, const Device& d) const = 0;
  virtual std::vector<Config> configs(const Region& r, const Device& d) const = 0;
  virtual std::unique_ptr<Step> build(const Region& r, const Config& c, const Device& d) const = 0;
};

// All engines in order of preference. Defined by the one list in engines/list.cpp.
std::span<const Engine* const> all_engines();
const Engine* find_engine(std::string_view name);

// Bytes a region must move when every input is read once and every output written once, and its arithmetic.
double region_bytes(const Region& r);
double region_flops(const Region& r);
// Seconds below which the machine cannot do it: the time to move the bytes, and to do the arithmetic.
struct Limits {
  double memory = 0, arithmetic = 0;
  double seconds() const { return memory > arithmetic ? memory : arithmetic; }
};
Limits region_limits(const Region& r, const Device& d);

}  // namespace tsr
