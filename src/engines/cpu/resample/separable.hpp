// SPDX-License-Identifier: Apache-2.0
// Windows over few planes (an image and its three colours): too few for the lanes of a vector. First the axes before
// the last, for all positions of a row side by side; then the last, for many rows side by side.
#pragma once

#include "engines/cpu/resample/gather.hpp"

namespace tsr::cpu {

bool separates(const GatherShape& s);

template <class T>
class SeparableGather {
 public:
  SeparableGather(const GatherShape& s, int threads);
  size_t workspace_bytes() const;
  void run(const GatherPointers& p, std::byte* workspace) const;

 private:
  size_t between_bytes_;  // results of the first part
  Gather<T> columns_, rows_;
};

}  // namespace tsr::cpu
