// SPDX-License-Identifier: Apache-2.0
// Every wrapper of an instruction, for kernels that try them one by one.
#pragma once

#include "device/block.cuh"
#include "device/cluster.cuh"
#include "device/memory.cuh"
#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "device/ptx/launch.cuh"
#include "device/ptx/matrix.cuh"
#include "device/ptx/mma.cuh"
#include "device/ptx/pieces.cuh"
#include "device/ptx/registers.cuh"
#include "device/ptx/remote.cuh"
#include "device/ptx/store.cuh"
#include "device/ptx/wgmma.cuh"
