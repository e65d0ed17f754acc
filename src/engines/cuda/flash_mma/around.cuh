// SPDX-License-Identifier: Apache-2.0
// Kernels before and behind the walks: numbers of rows, gradients of sinks.
#pragma once

#include "engines/cuda/flash_mma/back_args.cuh"
#include "engines/cuda/scores/row_numbers.cuh"
