// SPDX-License-Identifier: Apache-2.0
// TENSOR: what can be checked before an operation uses it.
#include <algorithm>

#include "capi/backend/table.hpp"
#include "capi/types.hpp"

namespace tsr::capi {
namespace {

void check_data_type(const Descriptor& d) {
  auto type = d.one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  bool exists = type >= CUDNN_DATA_FLOAT && type <= CUDNN_DATA_FP8_E5M3;
  demand(exists && type != CUDNN_DATA_FAST_FLOAT_FOR_FP8, CUDNN_STATUS_BAD_PARAM, d.describe(), ": data type ",
         exists ? "FAST_FLOAT_FOR_FP8 is only to compute in" : std::to_string(type) + " does not exist");
  bool vectors = type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 || type == CUDNN_DATA_INT8x32;
  demand(!vectors, CUDNN_STATUS_NOT_SUPPORTED, d.describe(),
         ": vectors are INT8 or UINT8 with a vector count and a vectorized dimension here");
}

void check_sizes(const Descriptor& d) {
  std::vector<int64_t> dims = d.ints(CUDNN_ATTR_TENSOR_DIMENSIONS), strides = d.ints(CUDNN_ATTR_TENSOR_STRIDES);
  demand(!dims.empty() && dims.size() == strides.size(), CUDNN_STATUS_BAD_PARAM, d.describe(), ": there are ",
         dims.size(), " sizes and ", strides.size(), " strides, needed are 1 to ", CUDNN_DIM_MAX, " of each");
  for (size_t i = 0; i < dims.size(); ++i)
    demand(dims[i] > 0 && strides[i] >= 0, CUDNN_STATUS_BAD_PARAM, d.describe(), ": dimension ", i, " has size ",
           dims[i], " and stride ", strides[i], ", sizes are positive and strides not negative");
  double elements = 1, last = 0;  // of all dimensions; the largest offset
  for (size_t i = 0; i < dims.size(); ++i) {
    elements *= static_cast<double>(dims[i]);
    last += static_cast<double>(dims[i]) * static_cast<double>(strides[i]);
  }
  demand(elements < kMostElements && last < kMostElements, CUDNN_STATUS_BAD_PARAM, d.describe(),
         ": sizes and strides span more elements than memory can hold");
  auto count = d.one<int64_t>(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1);
  auto along = d.one<int64_t>(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, -1);
  demand(count >= 1, CUDNN_STATUS_BAD_PARAM, d.describe(), ": the vector count is ", count);
  demand(count == 1 || (along >= 0 && along < static_cast<int64_t>(dims.size())), CUDNN_STATUS_BAD_PARAM, d.describe(),
         ": the vectorized dimension is ", along, ", there are ", dims.size(), " dimensions");
}

}  // namespace

void finalize_tensor(Descriptor& d) {
  check_data_type(d);
  check_sizes(d);
  auto alignment = d.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  bool by_value = d.one(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false), hidden = d.one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  demand(by_value || hidden || (alignment > 0 && (alignment & (alignment - 1)) == 0), CUDNN_STATUS_BAD_PARAM,
         d.describe(), ": the alignment is ", alignment, ", allowed are powers of two");
  demand(!by_value || !hidden, CUDNN_STATUS_BAD_PARAM, d.describe(), " is both virtual and by value");
  auto multiplier = d.one<int64_t>(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER, 1);
  demand(multiplier > 0, CUDNN_STATUS_BAD_PARAM, d.describe(), ": the ragged offset multiplier is ", multiplier);
  demand(multiplier == 1 || d.has(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC), CUDNN_STATUS_BAD_PARAM, d.describe(),
         ": a ragged offset multiplier of ", multiplier, " needs a ragged offset tensor");
}

// The element is the address of the scalar, which need not live on.
bool set_tensor(Descriptor& d, cudnnBackendAttributeName_t name, const void* elements) {
  if (name != CUDNN_ATTR_TENSOR_CONSTANT_VALUE) return false;
  const void* scalar = *static_cast<void* const*>(elements);
  demand(scalar, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, d.describe(), ": its constant is a null pointer");
  demand(d.one(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false), CUDNN_STATUS_BAD_PARAM, d.describe(),
         ": a constant must be declared by value first");
  // Programs that say the type later have scalars of 8 bytes at most.
  size_t bytes = 8;
  if (d.has(CUDNN_ATTR_TENSOR_DATA_TYPE)) bytes = bytes_of(d.one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT));
  const auto* from = static_cast<const std::byte*>(scalar);
  d.put(name, std::vector<std::byte>(from, from + bytes));
  return true;
}

bool get_tensor(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
                void* elements) {
  if (name != CUDNN_ATTR_TENSOR_CONSTANT_VALUE || !d.has(name)) return false;
  hand_out(std::vector<const void*>{d.address(name)}, requested, count, elements);
  return true;
}

}  // namespace tsr::capi
