// SPDX-License-Identifier: Apache-2.0
// Stores by the copy engine besides those of boxes (device/ptx/copy.cuh, whose groups count these too): runs of shared
// memory, and stores that add to what lies in memory, element by element, in no fixed order among blocks.
#pragma once

#include "device/ptx/copy.cuh"
#include "device/types.cuh"

namespace tsr::dev {

// Both addresses and the number of bytes are multiples of 16.
inline void bulk_store(void* to, const void* from, u32 bytes, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->store_run({to, from, bytes, tsr_emulated::Adds::nothing, nullptr, 0, here});
#else
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
               "r"(bytes)
               : "memory");
#endif
}

// T: float, f16 or bf16.
template <class T>
void bulk_add(T* to, const T* from, u32 bytes, Here here = {}) {
  static_assert(kSame<T, float> || kSame<T, f16> || kSame<T, bf16>);
#if defined(TSR_EMULATED)
  using A = tsr_emulated::Adds;
  constexpr A kAdds = kSame<T, float> ? A::f32 : kSame<T, f16> ? A::f16 : A::bf16;
  tsr_emulated::world->store_run({to, from, bytes, kAdds, nullptr, 0, here});
#else
  u32 s = shared_address(from);
  if constexpr (kSame<T, float>)
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(s),
                 "r"(bytes)
                 : "memory");
  if constexpr (kSame<T, f16>)
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(to), "r"(s),
                 "r"(bytes)
                 : "memory");
  if constexpr (kSame<T, bf16>)
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(to), "r"(s),
                 "r"(bytes)
                 : "memory");
#endif
}

// Four neighbours by an ordinary thread, without shared memory between; the address is a multiple of 16.
inline void add_four(float* to, const Vec<float, 4>& x) {
#if defined(TSR_EMULATED)
  for (int i = 0; i < 4; ++i) to[i] += x.v[i];
#else
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x.v[0]), "f"(x.v[1]),
               "f"(x.v[2]), "f"(x.v[3])
               : "memory");
#endif
}

// A box; the map says what numbers its elements are (TensorBox::adds).
template <int RANK>
void tensor_add(const TensorMap* map, const int (&at)[RANK], const void* from, Here here = {}) {
  static_assert(RANK >= 2 && RANK <= 3);
#if defined(TSR_EMULATED)
  tsr_emulated::world->store_box({const_cast<void*>(from), map, at, RANK, nullptr, 0, here}, true);
#else
  u32 s = shared_address(from);
  if constexpr (RANK == 2)
    asm volatile(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
        "r"(s), "r"(at[0]), "r"(at[1])
        : "memory");
  if constexpr (RANK == 3)
    asm volatile(
        "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
        "r"(s), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
#endif
}

}  // namespace tsr::dev
