// SPDX-License-Identifier: Apache-2.0
#include "capi/adv/reserve.hpp"

namespace tsr::capi {

void keep(Maker& m, int64_t from, int64_t to, DType compute) {
  if (m[from] == kNone) return;
  tessera::PointwiseOptions identity{.mode = tessera::PointwiseMode::identity};
  m.pointwise(identity, {m[from]}, compute, m.result(to));
}

void deliver_weights(cudnnHandle_t handle, int64_t count, cudnnDataType_t type, const void* kept, void* dweights,
                     bool adds) {
  enum : int64_t { kKept = 1, kResult };
  constexpr double kOne = 1;
  constexpr float kOneFloat = 1;
  const void* one = type == CUDNN_DATA_DOUBLE ? static_cast<const void*>(&kOne) : &kOneFloat;
  Call c(handle, "gradient of weights");
  Blend blend(c, kNoFactor, adds ? one : kNoFactor, type);
  c.input(kKept, packed_shape(type_of_sums(type), {count}), kept, "reserveSpace")
      .output(kResult, packed_shape(type, {count}), dweights, "dweights");
  c.run([&](Maker& m) { m.blend(blend, kResult, m[kKept]); });
}

}  // namespace tsr::capi
