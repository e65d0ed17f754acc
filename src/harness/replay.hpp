// SPDX-License-Identifier: Apache-2.0
// Time on a GPU: work is captured into a CUDA graph once for each set of buffers, and the graph is replayed. With more
// sets than the cache holds, every execution reads its data from memory, as it would in a model.
#pragma once

#include <functional>
#include <memory>

#include "harness/device_buffers.hpp"
#include "harness/measure.hpp"

namespace tsr {

class CudaStream {
 public:
  explicit CudaStream(const Device& d);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream();
  void* get() const { return stream_; }
  void synchronize() const;

 private:
  void* stream_ = nullptr;
};

// A captured sequence of launches.
class CapturedGraph {
 public:
  CapturedGraph(const CudaStream& stream, const std::function<void()>& launches);
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph();
  void launch() const;
  double timed_launch() const;  // seconds on the device

 private:
  const CudaStream& stream_;
  void *graph_ = nullptr, *exec_ = nullptr, *start_ = nullptr, *stop_ = nullptr;
};

// Several copies of a graph's tensors on a device, filled with random data.
class BufferSets {
 public:
  // As many as it takes to move `bytes` before a set comes round again, from 2 to 64.
  BufferSets(const Graph& g, const Device& d, const DataSpec& spec, int64_t bytes);
  int count() const { return static_cast<int>(sets_.size()); }
  const std::vector<Binding>& operator[](int i) const { return sets_[static_cast<size_t>(i)]; }

 private:
  std::vector<std::vector<Binding>> sets_;
  std::vector<std::shared_ptr<void>> memory_;
};

// Replays all graphs in turn until the time is over; seconds for one of `parts[i]` equal parts of graph i.
std::vector<Stats> replay_in_turn(const std::vector<const CapturedGraph*>& graphs, const std::vector<int>& parts,
                                  double seconds);

// Work that is launched on a stream, which is null on the CPU.
using StreamWork = std::function<void(void* stream)>;
// Seconds of each work on the device, all in turn: replayed on a GPU, called elsewhere.
std::vector<Stats> time_in_turn(const Device& d, const std::vector<StreamWork>& works, double seconds);

}  // namespace tsr
