// SPDX-License-Identifier: Apache-2.0
// The steps of the attention engine, and what they share: a list of launches with the same arguments.
#pragma once

#include "engines/cuda/attention/args.cuh"
#include "engines/cuda/scores/arguments.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {

std::unique_ptr<Step> make_attention_forward(const Region& r, const Device& d);
std::unique_ptr<Step> make_attention_backward(const Region& r, const Device& d);

// Kernels that run one after the other. Each has its own cut of the work.
class AttentionLaunches {
 public:
  struct Cut {
    int parts = 1, splits = 1;
    int tiles = 0;            // of rows or keys of a sequence that blocks share; 0: as the arguments say
    int64_t first_block = 0;  // among those that keep their largest magnitudes side by side
  };
  // A kernel without blocks is left out.
  void add(Program p, int64_t blocks, int64_t shared_bytes, Cut cut);
  void compile(const Device& d) { kernels_ = get_kernels(programs_, d); }
  int count() const { return static_cast<int>(programs_.size()); }
  const std::vector<std::shared_ptr<const Kernel>>& kernels() const { return kernels_; }
  void run(const dev::attention::AttentionArgs& args, void* stream) const;

 private:
  std::vector<Program> programs_;
  std::vector<Grid> grids_;
  std::vector<Cut> cuts_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;
};

class AttentionStep : public Step {
 public:
  AttentionStep(const Region& r, const Device& d);
  size_t workspace_bytes() const override { return arguments_.workspace_bytes(); }
  int kernels() const override { return launches_.count(); }
  const AttentionLaunches& launches() const { return launches_; }
  void run(const StepArgs& a) const override { launches_.run(arguments_.filled(a), a.stream); }

 protected:
  // Columns of a result that one block of a tile kernel holds, in slices of 64; and the blocks that share a row then.
  struct Columns {
    int slices, parts;
  };
  Columns columns_of(int64_t width) const;
  // A kernel of `include`: its types are the lane and `types`, then come the other template arguments.
  Program program(const char* include, const std::string& function, std::initializer_list<DType> types,
                  const std::string& more, int threads, int blocks_per_unit = 0) const;
  // One with tiles, for the options of this node. Two blocks hide each other's barriers, as long as registers last.
  Program tiles(const char* include, const std::string& function, std::initializer_list<DType> types,
                const std::string& more, int slices) const {
    int blocks_per_unit = wide_ || slices > 2 || p_.options.score_mod_bwd ? 1 : 2;
    return program(include, function, types, more + ", tsr::dev::attention::Options", dev::attention::kTileThreads,
                   blocks_per_unit);
  }
  Program plain(const std::string& function, std::initializer_list<DType> types = {}) const {
    return program("around", function, types, "", dev::attention::kAroundThreads);
  }
  int64_t tile_bytes() const;
  // Splits so that all units of the device have work, each with at least `least` of `length`.
  static int splits_of(int64_t blocks, int64_t wanted, int64_t length, int64_t least);
  // Blocks that share what lies beyond the sizes, of so many sequences: enough for the device, since nobody knows its
  // length.
  int tiles_beyond(int64_t sequences) const;
  // Room for one number of each of `blocks` blocks, where the output is wanted.
  void add_amax(const Region& r, int which, int slot, int64_t blocks);
  void join_amax();
  attention::Numbers numbers(int slot) const { return attention::make_numbers(g_, n_, slot); }

  const Graph& g_;  // while the step is built
  const Node& n_;
  const Device& d_;
  attention::Problem p_;
  OptionsText options_;
  Arguments<dev::attention::AttentionArgs> arguments_;
  AttentionLaunches launches_;
  bool wide_;  // computes in f64
  int64_t lane_bytes_;
  bool wants_amax_ = false;
};

}  // namespace tsr::cuda
