// SPDX-License-Identifier: Apache-2.0
// `tessera bench --device cuda`: plans on a GPU beside a copy and other libraries, by replay of CUDA graphs.
#pragma once

#include <string>
#include <vector>

namespace tsr::cli {

struct CudaBench {
  std::vector<std::string> files;
  std::string device, filter, json;
  std::vector<std::string> peers;  // NAME=PATH
  double seconds = 1;
  bool candidates = false;  // also every engine and configuration that takes the graph as one step
};

int bench_cuda(const CudaBench& b);

}  // namespace tsr::cli
