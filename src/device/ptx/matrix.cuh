// SPDX-License-Identifier: Apache-2.0
// Matrices of 8 x 8 elements of 16 bits between shared memory and the registers of a warp: ldmatrix (compute capability
// 7.5 and later) and stmatrix (9.0). Lanes 8 m to 8 m + 7 name the rows of matrix m, 16 bytes each, at multiples of 16.
// Lane l then has in r[m] the elements 2 (l % 4) and the next of row l / 4; TURNED: of column l / 4.
#pragma once

#include "device/ptx/address.cuh"

namespace tsr::dev {

template <bool TURNED = false, int COUNT>
void matrix_load(u32 (&r)[COUNT], const void* row, Here here = {}) {
  static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4);
#if defined(TSR_EMULATED)
  tsr_emulated::world->move_matrices({r, COUNT, row, TURNED, false, here});
#else
  u32 s = shared_address(row);
  if constexpr (COUNT == 1 && !TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(s) : "memory");
  if constexpr (COUNT == 1 && TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(s) : "memory");
  if constexpr (COUNT == 2 && !TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(s)
                 : "memory");
  if constexpr (COUNT == 2 && TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(s)
                 : "memory");
  if constexpr (COUNT == 4 && !TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(s)
                 : "memory");
  if constexpr (COUNT == 4 && TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(s)
                 : "memory");
#endif
}

template <bool TURNED = false, int COUNT>
void matrix_store(void* row, const u32 (&r)[COUNT], Here here = {}) {
  static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4);
#if defined(TSR_EMULATED)
  tsr_emulated::world->move_matrices({const_cast<u32*>(r), COUNT, row, TURNED, true, here});
#else
  u32 s = shared_address(row);
  if constexpr (COUNT == 1 && !TURNED)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(s), "r"(r[0]) : "memory");
  if constexpr (COUNT == 1 && TURNED)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(s), "r"(r[0]) : "memory");
  if constexpr (COUNT == 2 && !TURNED)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(s), "r"(r[0]), "r"(r[1]) : "memory");
  if constexpr (COUNT == 2 && TURNED)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(s), "r"(r[0]), "r"(r[1])
                 : "memory");
  if constexpr (COUNT == 4 && !TURNED)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(s), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
  if constexpr (COUNT == 4 && TURNED)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(s), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
#endif
}

}  // namespace tsr::dev
