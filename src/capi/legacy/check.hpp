// SPDX-License-Identifier: Apache-2.0
// What the older calls demand of their arguments, in the same words.
#pragma once

#include "capi/types.hpp"

namespace tsr::capi {

// A tensor's descriptor and its name in messages.
struct Named {
  const Shape& shape;
  const char* name;
};

inline void demand_equal_sizes(const Named& a, const Named& b) {
  demand(a.shape.dims == b.shape.dims, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, a.name, " is ", a.shape, ", ", b.name,
         " is ", b.shape, ": sizes must be equal");
}

inline void demand_equal_types(const Named& a, const Named& b) {
  demand(a.shape.type == b.shape.type, CUDNN_STATUS_BAD_PARAM, a.name, " is ", a.shape, ", ", b.name, " is ", b.shape,
         ": types must be equal");
}

inline void demand_rank(const Named& a, int least, int most) {
  int rank = a.shape.dims.size();
  demand(rank >= least && rank <= most, CUDNN_STATUS_BAD_PARAM, a.name, " has ", rank, " dimensions, allowed are ",
         least, " to ", most);
}

// Each size is that of `target` or 1.
inline void demand_broadcast(const Named& a, const Named& target) {
  bool fits = a.shape.dims.size() == target.shape.dims.size();
  for (int i = 0; fits && i < a.shape.dims.size(); ++i)
    fits = a.shape.dims[i] == 1 || a.shape.dims[i] == target.shape.dims[i];
  demand(fits, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, a.name, " is ", a.shape, ": each size must be 1 or that of ",
         target.name, ", ", target.shape);
}

// Of memory that a call must be given and does not look at.
inline void demand_pointer(const void* p, const char* name) {
  demand(p, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, name, " is a null pointer");
}

template <class E>
void demand_enumerator(E value, E last, const char* name) {
  demand(value >= 0 && value <= last, CUDNN_STATUS_BAD_PARAM, name, " ", static_cast<int>(value), " does not exist");
}

// A type to compute in: what is narrower than f32 is computed in f32.
inline void demand_compute_type(cudnnDataType_t type, const char* name) {
  bool known =
      type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  demand(known, CUDNN_STATUS_BAD_PARAM, name, " is ", name_of(type), ", allowed are FLOAT, DOUBLE, HALF and BFLOAT16");
}
inline DType compute_in(cudnnDataType_t type) { return type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32; }

inline bool propagates_nan(cudnnNanPropagation_t n) { return n == CUDNN_PROPAGATE_NAN; }

}  // namespace tsr::capi
