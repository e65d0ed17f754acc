// SPDX-License-Identifier: Apache-2.0
// The engine contract. An engine is a stateless object that can run some regions of a graph on some devices. It is
// asked once about a region: `match` gives a Match, which carries what was found out, or the reason why not.
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
#include "planner/cost.hpp"

namespace tsr {

// One of the ways in which an engine can run a region. Knobs are named, and a value means the same in every version:
// programs and tuning records keep them.
struct Config {
  std::vector<std::pair<std::string, int64_t>> knobs;
  double seconds = 0;     // modelled, or measured by tuning
  bool measured = false;  // whether `seconds` was measured on this machine

  int64_t knob(std::string_view name) const;  // which must be there
};
std::string to_string(const Config& c);
// The one with the same knobs, or null.
const Config* find_config(const std::vector<Config>& list, const Config& c);

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
  // May the output lie in the memory of the input, which has the same sizes and strides? Then the step reads each
  // element before it writes the result in its place. Otherwise the plan hands the step a copy of the input.
  virtual bool may_overwrite(TensorId /*input*/, TensorId /*output*/) const { return false; }
  virtual void run(const StepArgs& args) const = 0;
};

// What an engine found out about a region that it takes. The region, its graph and the device outlive it; steps that
// it builds outlive it, and the region, but not the graph.
class Match {
 public:
  virtual ~Match() = default;
  virtual std::vector<Config> configs() const = 0;  // candidates with a modelled cost, best first; at least one
  // Makes the step of one of the candidates, any number of them; may only fail for lack of resources.
  virtual std::unique_ptr<Step> build(const Config& c) const = 0;
};

// A match, or why there is none.
struct Matched {
  Matched(Reason no) : why(std::move(no)) {}  // NOLINT: engines return either
  template <class M>
  Matched(std::unique_ptr<M> m) : match(std::move(m)) {}  // NOLINT
  bool ok() const { return match != nullptr; }

  std::unique_ptr<Match> match;
  Reason why;
};

// For engines that have one way to run a region: `build` makes the step.
template <class Build>
Matched one_way(Config config, Build build) {
  class OneWay : public Match {
   public:
    OneWay(Config c, Build b) : config_(std::move(c)), build_(std::move(b)) {}
    std::vector<Config> configs() const override { return {config_}; }
    std::unique_ptr<Step> build(const Config&) const override { return build_(); }

   private:
    Config config_;
    Build build_;
  };
  return std::make_unique<OneWay>(std::move(config), std::move(build));
}
template <class Build>
Matched one_way(double seconds, Build build) {
  return one_way(Config{{}, seconds}, std::move(build));
}

struct EngineInfo {
  std::string_view name;
  int id = 0;  // public and stable: never reused
  DeviceKind device = DeviceKind::cpu;
  bool deterministic = true;  // the same bits for the same input, every time
  std::string_view text;      // one line for `list engines`
  bool last_resort = false;   // takes what all other engines of its device decline, at any cost
  bool tensor_cores = false;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const EngineInfo& info() const = 0;
  // The only place where support is decided; cheap, called thousands of times.
  virtual Matched match(const Region& r, const Device& d) const = 0;
};

// All engines in order of preference. Defined by the one list in engines/list.cpp.
std::span<const Engine* const> all_engines();
const Engine* find_engine(std::string_view name);

}  // namespace tsr
