// SPDX-License-Identifier: Apache-2.0
// Finds rows. The rows themselves are in table_*.cpp.
#include "capi/backend/table.hpp"

#include <array>

namespace tsr::capi {
namespace {

constexpr int kTypes = CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR + 1;

template <class F>
void for_each_row(const F& f) {
  for (auto group : {rows_of_attention(), rows_of_math(), rows_of_moves(), rows_of_norms(), rows_of_plans()})
    for (const DescriptorRow& r : group) f(r);
}

std::array<const DescriptorRow*, kTypes> by_type() {
  std::array<const DescriptorRow*, kTypes> rows{};
  for_each_row([&](const DescriptorRow& r) { rows[static_cast<size_t>(r.type)] = r.creatable ? &r : nullptr; });
  return rows;
}

}  // namespace

const DescriptorRow* find_row(cudnnBackendDescriptorType_t type) {
  static const auto rows = by_type();
  auto i = static_cast<int64_t>(type);
  return i >= 0 && i < kTypes ? rows[static_cast<size_t>(i)] : nullptr;
}

const AttributeRow* find_attribute(cudnnBackendAttributeName_t name) {
  const AttributeRow* found = nullptr;
  for_each_row([&](const DescriptorRow& r) {
    for (const AttributeRow& a : r.attributes)
      if (a.name == name) found = &a;
  });
  return found;
}

const char* name_of(cudnnBackendAttributeType_t t) {
  static constexpr const char* kNames[] = {
      "HANDLE",
      "DATA_TYPE",
      "BOOLEAN",
      "INT64",
      "FLOAT",
      "DOUBLE",
      "VOID_PTR",
      "CONVOLUTION_MODE",
      "HEUR_MODE",
      "KNOB_TYPE",
      "NAN_PROPOGATION",
      "NUMERICAL_NOTE",
      "LAYOUT_TYPE",
      "ATTRIB_NAME",
      "POINTWISE_MODE",
      "BACKEND_DESCRIPTOR",
      "GENSTATS_MODE",
      "BN_FINALIZE_STATS_MODE",
      "REDUCTION_OPERATOR_TYPE",
      "BEHAVIOR_NOTE",
      "TENSOR_REORDERING_MODE",
      "RESAMPLE_MODE",
      "PADDING_MODE",
      "INT32",
      "CHAR",
      "SIGNAL_MODE",
      "FRACTION",
      "NORM_MODE",
      "NORM_FWD_PHASE",
      "RNG_DISTRIBUTION",
      "MOE_GROUPED_MATMUL_MODE",
      "RESHAPE_MODE",
      "OPERATIONGRAPH_MODE",
  };
  auto i = static_cast<int64_t>(t);
  return i >= 0 && i < static_cast<int64_t>(std::size(kNames)) ? kNames[i] : "unknown";
}

}  // namespace tsr::capi
