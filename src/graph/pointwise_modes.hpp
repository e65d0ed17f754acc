// SPDX-License-Identifier: Apache-2.0
// Facts about the pointwise modes, one row each; the mathematics is in engines/reference/ops/pointwise.cpp.
#pragma once

#include <span>
#include <string_view>

#include "tessera/options.hpp"

namespace tsr {

using tessera::PointwiseMode;

struct PointwiseInfo {
  std::string_view name;
  int arity;                 // inputs: x, then b (or dy), then t
  std::string_view formula;  // for documentation
  bool boolean = false;      // the result is a truth value
};

const PointwiseInfo& info(PointwiseMode m);
std::span<const PointwiseInfo> pointwise_infos();  // in the order of the enumeration
std::span<const std::string_view> pointwise_names();

}  // namespace tsr
