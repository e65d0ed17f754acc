// SPDX-License-Identifier: Apache-2.0
// Cases that go through a libcudnn.so.9, as the descriptors that a client of cuDNN would send.
#pragma once

#include "cudnn/plan.hpp"
#include "harness/runner.hpp"

namespace tsr::cli {

class CudnnRunner {
 public:
  // The library's handle works on `o.device`.
  CudnnRunner(const std::string& path, const RunnerOptions& o);
  // Every plan that the library offers is compared with the oracle. What cuDNN's interface cannot express is skipped,
  // what the library refuses has failed.
  void run(const Case& c, Tally& tally);

 private:
  const RunnerOptions& options_;
  cudnn::Library library_;
  cudnn::Handle handle_;
};

}  // namespace tsr::cli
