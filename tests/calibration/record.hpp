// SPDX-License-Identifier: Apache-2.0
// What a GPU left of the micro-kernels, as text: a line for each, with a hash of all words and the first few, or with
// all words of sums that need not be the same.
#pragma once

#include <map>
#include <string>

#include "micro_kernel.hpp"

namespace tsr::calibration {

struct Entry {
  std::string hash;  // of all words; empty for sums
  Words words;       // the first few, or all of sums
};
using Record = std::map<std::string, Entry>;

Entry entry(const MicroKernel& k, const Words& result);
std::string line(const std::string& name, const Entry& e);
Record parse_record(const std::string& text);
// Empty, or how the result differs from what was recorded.
std::string difference(const MicroKernel& k, const Words& result, const Entry& recorded);

}  // namespace tsr::calibration
