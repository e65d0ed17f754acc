// SPDX-License-Identifier: Apache-2.0
// Other libraries that `tessera bench` measures beside a plan.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "graph/graph.hpp"

namespace tsr::cli {

// oneDNN called directly for the first operation of a graph, where it has that: one execution. Empty otherwise.
std::function<void()> onednn_peer(const Graph& g);

// PyTorch in a process of its own, which evaluates the graphs it is sent (bench/torch_peer.py). Absent when the Python
// that was named has no PyTorch.
class TorchPeer {
 public:
  explicit TorchPeer(const std::string& python);
  TorchPeer(const TorchPeer&) = delete;
  TorchPeer& operator=(const TorchPeer&) = delete;
  ~TorchPeer();
  const std::string& version() const { return version_; }  // empty: absent
  // Median seconds of the graph; nullopt when PyTorch lacks an operation of it (the reason is kept).
  std::optional<double> measure(const Graph& g, double seconds);
  const std::string& reason() const { return reason_; }

 private:
  std::string line();
  int child_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
  std::string version_, reason_;
};

}  // namespace tsr::cli
