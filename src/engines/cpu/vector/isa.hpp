// SPDX-License-Identifier: Apache-2.0
// What the files compiled for each instruction set share, in the namespace that TESSERA_ISA names. Everything else in
// them is internal, so that the linker can never pick a wider instruction set's copy of a shared function.
#pragma once

#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu::TESSERA_ISA {

void run_chain(const ChainArgs& args);
void random(uint64_t seed, uint64_t offset, int64_t first, int64_t stride, float* y, int64_t n);
void reduce(Lane lane, tessera::ReduceMode mode, const void* a, int64_t n, void* acc);
void max_blocks(Lane lane, const void* a, void* y, int64_t block, int64_t n);
void accumulate(Lane lane, tessera::ReduceMode mode, const void* a, int64_t n, void* acc);
void drain(tessera::ReduceMode mode, float* partials, double& total);

}  // namespace tsr::cpu::TESSERA_ISA
