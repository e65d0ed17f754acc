// SPDX-License-Identifier: Apache-2.0
// How the rows of the tables are written, and the functions that they name.
#pragma once

#include <climits>
#include <limits>

#include "capi/backend/graph_builder.hpp"

namespace tsr::capi {

// An enumerator and its name.
#define NAMED(x) x, #x

constexpr AttributeRow value(cudnnBackendAttributeName_t name, const char* text, cudnnBackendAttributeType_t type) {
  return {.name = name, .text = text, .type = type};
}
constexpr AttributeRow part(cudnnBackendAttributeName_t name, const char* text, cudnnBackendDescriptorType_t of) {
  return {.name = name, .text = text, .type = CUDNN_TYPE_BACKEND_DESCRIPTOR, .part = of};
}
constexpr AttributeRow tensor(cudnnBackendAttributeName_t name, const char* text) {
  return part(name, text, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
}
constexpr AttributeRow operations(cudnnBackendAttributeName_t name, const char* text) {
  return part(name, text, kAnyOperation);
}
// One element for each dimension; any number of them.
constexpr AttributeRow for_dims(AttributeRow r) { return r.most = CUDNN_DIM_MAX, r; }
constexpr AttributeRow list(AttributeRow r) { return r.most = INT_MAX, r; }
constexpr AttributeRow or_number(AttributeRow r) { return r.also_number = true, r; }
constexpr AttributeRow initially(double v, AttributeRow r) { return r.initial = v, r; }
constexpr AttributeRow required(AttributeRow r) { return r.required = true, r; }
constexpr AttributeRow read_only(AttributeRow r) { return r.access = AttributeRow::get_only, r; }
constexpr AttributeRow refused(AttributeRow r) { return r.access = AttributeRow::refused, r; }

std::span<const DescriptorRow> rows_of_attention();
std::span<const DescriptorRow> rows_of_math();
std::span<const DescriptorRow> rows_of_moves();
std::span<const DescriptorRow> rows_of_norms();
std::span<const DescriptorRow> rows_of_plans();

// tensor.cpp
void finalize_tensor(Descriptor& d);
bool set_tensor(Descriptor& d, cudnnBackendAttributeName_t name, const void* elements);
bool get_tensor(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
                void* elements);
// operation_graph.cpp
void finalize_graph(Descriptor& d);
bool set_graph(Descriptor& d, cudnnBackendAttributeName_t name, const void* elements);
bool get_graph(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
               void* elements);
// engine.cpp
void finalize_engine(Descriptor& d);
bool get_engine(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
                void* elements);
void finalize_config(Descriptor& d);
bool get_config(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
                void* elements);
// heuristics.cpp
void finalize_heuristics(Descriptor& d);
// execution_plan.cpp
void finalize_plan(Descriptor& d);
bool get_plan(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count, void* elements);
// variant_pack.cpp
void finalize_pack(Descriptor& d);
bool set_pack(Descriptor& d, cudnnBackendAttributeName_t name, const void* elements);
// kernel_cache.cpp
void finalize_cache(Descriptor& d);
bool get_cache(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
               void* elements);
// device_prop.cpp
void finalize_device(Descriptor& d);

}  // namespace tsr::capi
