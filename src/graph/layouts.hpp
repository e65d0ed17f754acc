// SPDX-License-Identifier: Apache-2.0
// Named layouts: how a word such as nhwc or bshd orders the dimensions of a tensor in memory.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/dims.hpp"

namespace tsr {

struct Layout {
  std::string_view name;
  std::string_view logical;  // letters of the dimensions in logical order
};

std::span<const Layout> layouts();
// Strides of `dims` in the named layout; nullopt when no layout of that name has this rank.
std::optional<Dims> layout_strides(std::string_view name, const Dims& dims);
// The name of a non-row-major layout with exactly these strides, or empty.
std::string_view layout_name(const Dims& dims, const Dims& strides);

// Dimensions of more than one element from slowest to fastest, as the strides put them into memory.
std::vector<int> memory_order(const Dims& dims, const Dims& strides);

}  // namespace tsr
