// SPDX-License-Identifier: Apache-2.0
// The arguments of the kernels of causal convolutions, shared by host and device.
#pragma once

#include "device/divide.cuh"

namespace tsr::dev {

// Filters of up to so many taps have kernels of their own length; longer ones are taken kLongTaps taps at a time.
constexpr int kShortTaps = 4, kLongTaps = 8;

// A tensor of sequences; steps by batch, channel and time, in elements.
struct Signal {
  void* data;
  i64 steps[3];
};

// The tap that meets x[t - j] is element channel * steps[0] + first + j * steps[1].
struct Filter {
  void* data;
  i64 first, steps[2];
  i32 taps;
};

// One value for each channel.
struct PerChannel {
  void* data;
  i64 step;
};

// How threads share the work. A thread has its channels, and takes spans of times from all batches one after the other.
struct Share {
  i64 channels, length;
  i64 spans;  // of all batches
  i64 spans_of_block;
  i32 channel_threads;  // threads of a block that have different channels, a power of two; the others share the spans
  bool channels_fast;   // neighbouring threads have neighbouring channels rather than neighbouring spans
  Divisor channel_blocks, spans_of_row;
};

struct CausalArgs {
  Share share;
  Signal x, dy, out;  // out: the result, or the gradient of x or of what the activation gets
  Filter w;
  PerChannel bias;
  void* partials;  // of gradients of filters: [splits, channels, taps + 1]
  bool silu;
};

struct FilterGradientArgs {
  Share share;
  Signal x, dz;
  i32 taps;
  Divisor groups;  // of taps
  void* partials;
};

// Adds up what blocks found.
struct SumArgs {
  const void* partials;
  i64 splits, channels;
  i32 taps;
  Filter dw;
  PerChannel extra;  // takes the sum numbered extra_index
  i32 extra_index;
};

// Three projections p of x, g = p1 p2, y = mixer * g + skip g, gated = y p0.
struct GatedArgs {
  Share share;
  Signal x[3], y, gated, dy, dx[3];
  Signal p[3], g, e;  // in the workspace; backwards p becomes the gradient of p
  Filter proj[3], mixer;
  PerChannel skip;
  void* partials[4];  // of the gradients of the projections' filters and of the mixer
};

}  // namespace tsr::dev
