// SPDX-License-Identifier: Apache-2.0
// The tiles of Intel's AMX: registers of 16 rows of 64 bytes, which one instruction multiplies.
#pragma once

#include <cstdint>

namespace tsr {

// The processor has tiles of bf16 and of bytes, and the system lets this process use them; asked once.
bool amx_granted();

// Whether tiles multiply rightly here: tried in a child process, since an illegal instruction would end this one.
bool amx_works();

// Multiply-adds of bf16 in tiles, two operations each: how many it did. Only where amx_granted().
double amx_multiply_adds(int64_t rounds);

}  // namespace tsr
