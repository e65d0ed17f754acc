// SPDX-License-Identifier: Apache-2.0
// Dropout's descriptor. Its states are a seed and an offset in the device's memory: random numbers are a function of
// these two and the element's place (base/philox.hpp), and every use moves the offset on, so that states that are saved
// and restored give the same masks again.
#pragma once

#include "capi/call.hpp"

struct cudnnDropoutStruct {
  float dropout = 0;
  void* states = nullptr;
  size_t state_bytes = 0;
  unsigned long long seed = 0;
  int64_t drawn = 0;  // without states: how often random numbers were taken
};

namespace tsr::capi {

constexpr size_t kDropoutStateBytes = 16;  // two 64-bit integers

// The call reads seed and offset under these ids. A descriptor without states counts for itself, on the host: layers
// inside others (recurrent networks, attention) are trained so.
void read_dropout_state(Call& c, const cudnnDropoutStruct& d, int64_t seed_id, int64_t offset_id);
// Copies of them, for gradients: the call writes them under other ids, another call reads them.
void write_dropout_copy(Call& c, void* copy, int64_t seed_id, int64_t offset_id);
void read_dropout_copy(Call& c, const void* copy, int64_t seed_id, int64_t offset_id);
// Moves the offset on, behind a call that has used it.
void advance_dropout_state(cudnnHandle_t handle, cudnnDropoutStruct& d);

}  // namespace tsr::capi
