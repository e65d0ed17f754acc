// SPDX-License-Identifier: Apache-2.0
// Kernels: device code that is compiled when it is first wanted and kept in memory and on disk. An engine describes the
// program, takes the kernel when it builds a step, and only launches it when the step runs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "planner/device.hpp"

namespace tsr {

// One instance of a kernel: a device source, straight-line code generated for it, and the function to call. Sizes never
// appear here: another size must not need another kernel.
struct Program {
  std::string include;      // path of the source below src/, for instance engines/cuda/fused/pointwise.cuh
  std::string generated;    // code that stands between that source and the kernel
  std::string args;         // type of the one argument, a struct that host and device share
  std::string body;         // what is called with it: a function, or an instance of a function template
  int threads = 256;        // of one block, at most
  int blocks_per_unit = 0;  // blocks that must fit on a multiprocessor together; 0: no demand
  bool waits = false;       // by itself for the kernels in front (device/ptx/launch.cuh), once it has prepared its work
};

struct Grid {
  int64_t blocks = 1;
  int threads = 256;
  int64_t shared_bytes = 0;
  int cluster = 1;        // blocks that form a cluster
  bool together = false;  // all blocks run at the same time and may wait for each other (device/grid.cuh)
};

// What the compiler says of a kernel.
struct KernelInfo {
  int registers = 0, stack_bytes = 0, spill_bytes = 0;
  std::string log;  // the compiler's own words
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  const std::string& name() const { return name_; }
  const KernelInfo& info() const { return info_; }
  const std::string& code() const { return code_; }  // the cubin; empty where none could be had for an absent device
  // Engines with arguments of more than 4096 bytes ask Device::argument_bytes.
  template <class Args>
  void launch(const Grid& g, void* stream, const Args& args) const {
    static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= 32764, "what a launch can carry");
    start(g, stream, &args);
  }
  // The same for arguments that are put together byte by byte; at least as many as the kernel reads.
  void launch_packed(const Grid& g, void* stream, const void* args) const { start(g, stream, args); }
  // Sets memory of the kernel's device to zero, in the stream's order.
  virtual void clear(void* data, size_t bytes, void* stream) const = 0;

 protected:
  friend struct KernelLibrary;
  virtual void start(const Grid& g, void* stream, const void* args) const = 0;
  std::string name_, code_;
  KernelInfo info_;
};

// From memory, from the pack compiled ahead of time, from disk, or from the compiler. For a device that is absent the
// kernel is compiled all the same where there is a compiler, and has no code where there is none: planning needs
// neither. Launching it raises. May be called from many threads at once.
std::shared_ptr<const Kernel> get_kernel(const Program& p, const Device& d);
// Several at once, compiled side by side.
std::vector<std::shared_ptr<const Kernel>> get_kernels(std::span<const Program> programs, const Device& d);

// Every kernel that this thread takes while the object lives, for showing and checking what a plan launches.
class KernelRecorder {
 public:
  struct Entry {
    Program program;
    std::shared_ptr<const Kernel> kernel;
  };
  KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;
  ~KernelRecorder();
  const std::vector<Entry>& entries() const { return entries_; }
  void add(Entry e) { entries_.push_back(std::move(e)); }

 private:
  std::vector<Entry> entries_;
  KernelRecorder* outer_;
};

// The translation unit that is compiled for it.
std::string kernel_text(const Program& p, const Device& d);

struct KernelCounts {
  int64_t compiled = 0, from_disk = 0, from_pack = 0, from_memory = 0;
  double compile_seconds = 0;
};
KernelCounts kernel_counts();
// Empties the memory; plans keep their kernels. For measuring what a new process pays.
void forget_kernels();

// Copies every kernel that is compiled or loaded from now on into a folder that can serve as a pack.
void record_kernels(const std::string& folder);

}  // namespace tsr
