// SPDX-License-Identifier: Apache-2.0
// A copy from one strided array to another of equal sizes: runs where both are contiguous, blocked transposition where
// they are contiguous along different axes.
#pragma once

#include <vector>

#include "graph/copies.hpp"

namespace tsr::cpu {

class StridedCopy {
 public:
  StridedCopy() = default;  // of nothing
  StridedCopy(std::vector<CopyAxis> axes, int64_t element_bytes);
  void run(const void* from, void* to, int threads) const;

 private:
  void run_lines(const char* from, char* to, int64_t first, int64_t last) const;
  void run_tiles(const char* from, char* to, int64_t first, int64_t last) const;

  std::vector<CopyAxis> outer_;  // slowest first
  CopyAxis line_{1, 1, 1};       // the innermost axis of the target
  CopyAxis across_{1, 0, 0};     // the innermost axis of the source, where that is another one
  int64_t bytes_ = 1;
  int64_t units_ = 1, unit_elements_ = 1;  // pieces of work
  bool tiled_ = false, empty_ = true, large_ = false;
};

}  // namespace tsr::cpu
