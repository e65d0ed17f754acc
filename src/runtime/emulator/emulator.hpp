// SPDX-License-Identifier: Apache-2.0
// Runs device code on the processor. A C++ compiler makes a shared library of the kernel's translation unit, in which
// device/emulated.cuh stands in for CUDA's built-in names; the threads of a cluster of blocks run as fibres in turn.
#pragma once

#include <string>

#include "runtime/kernel.hpp"

namespace tsr::emulator {

// Compiles, or finds on disk, and returns the path of the shared library. Raises with the compiler's words.
std::string compile(const std::string& text, const std::string& key);

class LoadedKernel {
 public:
  explicit LoadedKernel(const std::string& path);
  // Empty, or what went wrong: threads that wait for each other for ever.
  std::string run(const Grid& g, const void* args) const;

 private:
  void* enter_ = nullptr;
};

}  // namespace tsr::emulator
