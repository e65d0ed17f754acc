// SPDX-License-Identifier: Apache-2.0
// The device code that is built into the library: every .cuh file under src/, by its path there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tsr::jit {

struct Source {
  std::string_view path, text;
};

std::span<const Source> sources();  // sorted by path
const Source& find_source(std::string_view path);
// A hash of a file and of everything it includes: what makes a compiled kernel stale.
uint64_t closure_hash(std::string_view path);
// A hash of all device code, for records of test and benchmark runs.
uint64_t all_sources_hash();

}  // namespace tsr::jit
