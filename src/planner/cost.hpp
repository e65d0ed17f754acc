// SPDX-License-Identifier: Apache-2.0
// What the model of time is made of: the bytes and the arithmetic of a region, and the rates of a device.
#pragma once

#include "planner/device.hpp"
#include "planner/region.hpp"

namespace tsr {

// Bytes a region must move when every input is read once and every output written once, and its arithmetic.
double region_bytes(const Region& r);
double region_flops(const Region& r);

// Into how many parts of so many bytes blocks may divide sums that they leave in the workspace: together parts take no
// more than the region's tensors.
int64_t most_parts(const Region& r, double bytes);

// Seconds below which the machine cannot do it: the time to move the bytes, and to do the arithmetic.
struct Limits {
  double memory = 0, arithmetic = 0;
  double seconds() const { return memory > arithmetic ? memory : arithmetic; }
};
Limits region_limits(const Region& r, const Device& d);

// Seconds where all bytes are moved once and `efficiency` of the f32 multiply-adds is reached, whichever takes longer.
double roofline(const Region& r, const Device& d, double efficiency);

}  // namespace tsr
