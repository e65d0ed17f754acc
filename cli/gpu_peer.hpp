// SPDX-License-Identifier: Apache-2.0
// Other libraries that a benchmark on a GPU runs the same graphs with.
#pragma once

#include <memory>
#include <string>

#include "harness/replay.hpp"

namespace tsr::cli {

// A graph on its way through another library, ready to be captured.
class GpuPeer {
 public:
  virtual ~GpuPeer() = default;
  virtual void run(int i) = 0;  // launches, with set i of the buffers
  virtual size_t workspace_bytes() const = 0;
};

class GpuPeerLibrary {
 public:
  virtual ~GpuPeerLibrary() = default;
  virtual std::string about() const = 0;  // version and file
  // Its fastest way to run a graph; or nothing, and why.
  virtual std::unique_ptr<GpuPeer> prepare(const Graph& g, const Device& d, const BufferSets& sets,
                                           const CudaStream& stream, std::string& reason) = 0;
};

// Libraries at these paths; a CUDA context is current.
std::unique_ptr<GpuPeerLibrary> open_cudnn(const std::string& path);
std::unique_ptr<GpuPeerLibrary> open_cublaslt(const std::string& path);

// Seconds of work(i) with set i of the buffers, replayed for a moment: what a peer's ways are chosen by.
template <class Work>
double replayed_seconds(const BufferSets& sets, const CudaStream& stream, const Work& work) {
  work(0);
  stream.synchronize();
  CapturedGraph captured(stream, [&] {
    for (int i = 0; i < sets.count(); ++i) work(i);
  });
  return replay_in_turn({&captured}, {1}, 0.02)[0].median;
}

}  // namespace tsr::cli
