// SPDX-License-Identifier: Apache-2.0
// CTC loss: connectionist temporal classification with blank 0.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "capi/call.hpp"
#include "capi/host_graph.hpp"
#include "capi/legacy/check.hpp"
#include "runtime/devices.hpp"

struct cudnnCTCLossStruct {
  bool set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnLossNormalizationMode_t normalization = CUDNN_LOSS_NORMALIZATION_NONE;
  cudnnCTCGradMode_t gradients = CUDNN_CTC_ZERO_OOB_GRADIENTS;
  int max_labels = 0;  // of one sequence; 0: nobody has said
};

using namespace tsr::capi;
using tsr::DType;
using tsr::TensorId;
using M = tessera::PointwiseMode;

namespace {

enum : int64_t { kProbs = 1, kLabels, kLabelLengths, kInputLengths, kCosts, kGradients };

// Versions before 9 tell by an option about NaN what becomes of sequences that are too short for their labels.
cudnnCTCGradMode_t from_nan(cudnnNanPropagation_t nan) {
  demand_enumerator(nan, CUDNN_PROPAGATE_NAN, "gradMode");
  return nan == CUDNN_PROPAGATE_NAN ? CUDNN_CTC_SKIP_OOB_GRADIENTS : CUDNN_CTC_ZERO_OOB_GRADIENTS;
}
cudnnNanPropagation_t to_nan(cudnnCTCGradMode_t mode) {
  return mode == CUDNN_CTC_SKIP_OOB_GRADIENTS ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN;
}

void set(cudnnCTCLossDescriptor_t desc, cudnnDataType_t type, cudnnLossNormalizationMode_t normalization,
         cudnnCTCGradMode_t gradients, int max_labels) {
  demand(type == CUDNN_DATA_FLOAT, CUDNN_STATUS_BAD_PARAM, "compType is ", name_of(type), ", allowed is FLOAT");
  demand_enumerator(normalization, CUDNN_LOSS_NORMALIZATION_SOFTMAX, "normMode");
  demand_enumerator(gradients, CUDNN_CTC_SKIP_OOB_GRADIENTS, "ctcGradMode");
  demand(max_labels >= 0, CUDNN_STATUS_BAD_PARAM, "maxLabelLength is ", max_labels, ", it must not be negative");
  given(desc, "ctcLossDesc") = {true, type, normalization, gradients, max_labels};
}

const cudnnCTCLossStruct& given_ctc(cudnnCTCLossDescriptor_t d) {
  demand(given(d, "ctcLossDesc").set, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "ctcLossDesc has not been set");
  return *d;
}

// What all versions tell.
const cudnnCTCLossStruct& get(cudnnCTCLossDescriptor_t desc, cudnnDataType_t* type,
                              cudnnLossNormalizationMode_t* normalization, int* max_labels) {
  const cudnnCTCLossStruct& d = given_ctc(desc);
  if (type) *type = d.type;
  if (normalization) *normalization = d.normalization;
  if (max_labels) *max_labels = d.max_labels;
  return d;
}

void check_shapes(const Shape& probs, const Shape* gradients, cudnnCTCLossAlgo_t algo) {
  demand_enumerator(algo, CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC, "algo");
  demand(probs.type == CUDNN_DATA_FLOAT && probs.dims.size() == 3, CUDNN_STATUS_BAD_PARAM, "probsDesc is ", probs,
         ", needed is FLOAT [steps, batch, labels]");
  if (gradients)
    demand(gradients->dims == probs.dims && gradients->type == probs.type, CUDNN_STATUS_BAD_PARAM, "gradientsDesc is ",
           *gradients, ", probsDesc ", probs, ": sizes and types must be equal");
}

Shape integers(int64_t n) { return {CUDNN_DATA_INT32, {n}, {1}}; }

// Labels on the host, one sequence after another. Room is rounded up, so that batches with a label more or less find
// the same plan.
std::vector<int32_t> with_room(const int* labels, const int* lengths, int64_t batch) {
  int64_t total = std::accumulate(lengths, lengths + batch, int64_t{0});
  size_t room = 16;
  while (room < static_cast<size_t>(total)) room *= 2;
  std::vector<int32_t> copy(room);
  std::copy(labels, labels + total, copy.begin());
  return copy;
}

void check_lengths(const Shape& probs, const int* labels, const int* label_lengths, const int* input_lengths) {
  int64_t steps = probs.dims[0], batch = probs.dims[1], classes = probs.dims[2], label = 0;
  given(labels, "labels"), given(label_lengths, "labelLengths"), given(input_lengths, "inputLengths");
  for (int64_t n = 0; n < batch; ++n) {
    demand(label_lengths[n] >= 0, CUDNN_STATUS_BAD_PARAM, "labelLengths[", n, "] is ", label_lengths[n],
           ", it must not be negative");
    demand(input_lengths[n] >= 0 && input_lengths[n] <= steps, CUDNN_STATUS_BAD_PARAM, "inputLengths[", n, "] is ",
           input_lengths[n], ", allowed are 0 to ", steps);
    for (int i = 0; i < label_lengths[n]; ++i, ++label)
      demand(labels[label] > 0 && labels[label] < classes, CUDNN_STATUS_BAD_PARAM, "labels[", label, "] is ",
             labels[label], ", allowed are 1 to ", classes - 1, "; 0 is the blank");
  }
}

void build(Maker& m, const cudnnCTCLossStruct& d) {
  bool normalizes = d.normalization == CUDNN_LOSS_NORMALIZATION_SOFTMAX;
  TensorId logits = normalizes ? m[kProbs] : m.pointwise({.mode = M::log}, {m[kProbs]});
  TensorId costs = m.result(kCosts), gradients = m.result(kGradients);
  bool skips = gradients != tsr::kNone && d.gradients == CUDNN_CTC_SKIP_OOB_GRADIENTS;
  auto r = m.add(tsr::ops::ctc_loss, {logits, m[kLabels], m[kLabelLengths], m[kInputLengths]},
                 {costs, skips ? tsr::kNew : gradients}, tessera::CtcOptions{});
  if (!skips) return;
  // Where no path is long enough, the cost is infinite and gradients stay as they were.
  int64_t batch = m.graph().tensor(costs).dims[0];
  TensorId by_batch = m.add(tsr::ops::reshape, {costs}, {tsr::kNew}, tessera::ReshapeOptions{.size = {1, batch, 1}})[0];
  TensorId possible = m.inferred(DType::boolean);
  m.pointwise({.mode = M::cmp_lt}, {by_batch, m.constant(INFINITY)}, DType::f32, possible);
  m.pointwise({.mode = M::select}, {r[1], m.before(kGradients), possible}, DType::f32, gradients);
}

Call common_call(cudnnHandle_t handle, const cudnnCTCLossStruct& d, const Shape& probs, const void* data, void* costs,
                 const Shape* gradients, void* gradient_data) {
  Call c(handle, "ctc loss");
  c.key(d.normalization, d.gradients)
      .input(kProbs, probs, data, "probs")
      .output(kCosts, {probs.type, {probs.dims[1]}, {1}}, costs, "costs")
      .optional_output(kGradients, gradients, gradient_data);
  return c;
}

void add_host_labels(Call& c, const Shape& probs, const std::vector<int32_t>& labels, const int* label_lengths,
                     const int* input_lengths) {
  int64_t batch = probs.dims[1];
  c.host_input(kLabels, integers(static_cast<int64_t>(labels.size())), labels.data(), "labels")
      .host_input(kLabelLengths, integers(batch), label_lengths, "labelLengths")
      .host_input(kInputLengths, integers(batch), input_lengths, "inputLengths");
}

// Labels that only the device can read: of their number the descriptor tells the most.
void add_device_labels(Call& c, const cudnnCTCLossStruct& d, const Shape& probs, const void* labels,
                       const void* label_lengths, const void* input_lengths) {
  demand(d.max_labels > 0, CUDNN_STATUS_BAD_PARAM, "maxLabelLength of ctcLossDesc is 0, it must be positive");
  int64_t batch = probs.dims[1];
  c.input(kLabels, integers(batch * d.max_labels), labels, "labels")
      .input(kLabelLengths, integers(batch), label_lengths, "labelLengths")
      .input(kInputLengths, integers(batch), input_lengths, "inputLengths");
}

void run_with_host_labels(cudnnHandle_t handle, const cudnnCTCLossStruct& d, const Shape& probs, const void* data,
                          const int* labels, const int* label_lengths, const int* input_lengths, void* costs,
                          const Shape* gradients, void* gradient_data, void* workspace, size_t bytes) {
  check_lengths(probs, labels, label_lengths, input_lengths);
  std::vector<int32_t> copy = with_room(labels, label_lengths, probs.dims[1]);
  Call c = common_call(handle, d, probs, data, costs, gradients, gradient_data);
  add_host_labels(c, probs, copy, label_lengths, input_lengths);
  c.run_in(workspace, bytes, [&](Maker& m) { build(m, d); });
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t* ctcLossDesc) {
  return answer(TESSERA_CALL(cudnnCreateCTCLossDescriptor, ctcLossDesc), [&] { create(ctcLossDesc, "ctcLossDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc) {
  return answer(TESSERA_CALL(cudnnDestroyCTCLossDescriptor, ctcLossDesc), [&] { delete ctcLossDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType) {
  return answer(TESSERA_CALL(cudnnSetCTCLossDescriptor, ctcLossDesc, compType),
                [&] { set(ctcLossDesc, compType, CUDNN_LOSS_NORMALIZATION_NONE, CUDNN_CTC_ZERO_OOB_GRADIENTS, 0); });
}

cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
                                                      cudnnLossNormalizationMode_t normMode,
                                                      cudnnNanPropagation_t gradMode) {
  return answer(TESSERA_CALL(cudnnSetCTCLossDescriptorEx, ctcLossDesc, compType, normMode, gradMode),
                [&] { set(ctcLossDesc, compType, normMode, from_nan(gradMode), 0); });
}

cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
                                                       cudnnLossNormalizationMode_t normMode,
                                                       cudnnNanPropagation_t gradMode, int maxLabelLength) {
  auto entry = TESSERA_CALL(cudnnSetCTCLossDescriptor_v8, ctcLossDesc, compType, normMode, gradMode, maxLabelLength);
  return answer(entry, [&] { set(ctcLossDesc, compType, normMode, from_nan(gradMode), maxLabelLength); });
}

cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
                                                       cudnnLossNormalizationMode_t normMode,
                                                       cudnnCTCGradMode_t ctcGradMode, int maxLabelLength) {
  auto entry = TESSERA_CALL(cudnnSetCTCLossDescriptor_v9, ctcLossDesc, compType, normMode, ctcGradMode, maxLabelLength);
  return answer(entry, [&] { set(ctcLossDesc, compType, normMode, ctcGradMode, maxLabelLength); });
}

cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t* compType,
                                                       cudnnLossNormalizationMode_t* normMode,
                                                       cudnnCTCGradMode_t* ctcGradMode, int* maxLabelLength) {
  auto entry = TESSERA_CALL(cudnnGetCTCLossDescriptor_v9, ctcLossDesc, compType, normMode, ctcGradMode, maxLabelLength);
  return answer(entry, [&] {
    const cudnnCTCLossStruct& d = get(ctcLossDesc, compType, normMode, maxLabelLength);
    if (ctcGradMode) *ctcGradMode = d.gradients;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t* compType,
                                                       cudnnLossNormalizationMode_t* normMode,
                                                       cudnnNanPropagation_t* gradMode, int* maxLabelLength) {
  auto entry = TESSERA_CALL(cudnnGetCTCLossDescriptor_v8, ctcLossDesc, compType, normMode, gradMode, maxLabelLength);
  return answer(entry, [&] {
    const cudnnCTCLossStruct& d = get(ctcLossDesc, compType, normMode, maxLabelLength);
    if (gradMode) *gradMode = to_nan(d.gradients);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t* compType,
                                                      cudnnLossNormalizationMode_t* normMode,
                                                      cudnnNanPropagation_t* gradMode) {
  return answer(TESSERA_CALL(cudnnGetCTCLossDescriptorEx, ctcLossDesc, compType, normMode, gradMode), [&] {
    const cudnnCTCLossStruct& d = get(ctcLossDesc, compType, normMode, nullptr);
    if (gradMode) *gradMode = to_nan(d.gradients);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t* compType) {
  return answer(TESSERA_CALL(cudnnGetCTCLossDescriptor, ctcLossDesc, compType),
                [&] { get(ctcLossDesc, compType, nullptr, nullptr); });
}

cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t probsDesc,
                                                       const cudnnTensorDescriptor_t gradientsDesc, const int* labels,
                                                       const int* labelLengths, const int* inputLengths,
                                                       cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
                                                       size_t* sizeInBytes) {
  auto entry = TESSERA_CALL(cudnnGetCTCLossWorkspaceSize, handle, probsDesc, gradientsDesc, labels, labelLengths,
                            inputLengths, algo, ctcLossDesc, sizeInBytes);
  return answer(entry, [&] {
    const cudnnCTCLossStruct& d = given_ctc(ctcLossDesc);
    const Shape& probs = given(probsDesc, "probsDesc");
    check_shapes(probs, gradientsDesc, algo);
    check_lengths(probs, labels, labelLengths, inputLengths);
    Call c = common_call(handle, d, probs, kSomewhere, kSomewhere, gradientsDesc, kSomewhere);
    std::vector<int32_t> copy = with_room(labels, labelLengths, probs.dims[1]);
    add_host_labels(c, probs, copy, labelLengths, inputLengths);
    given(sizeInBytes, "sizeInBytes") = c.workspace_bytes(*c.plan([&](Maker& m) { build(m, d); }));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                                                          cudnnCTCLossDescriptor_t ctcLossDesc,
                                                          const cudnnTensorDescriptor_t probsDesc,
                                                          const cudnnTensorDescriptor_t gradientsDesc,
                                                          size_t* sizeInBytes) {
  auto entry =
      TESSERA_CALL(cudnnGetCTCLossWorkspaceSize_v8, handle, algo, ctcLossDesc, probsDesc, gradientsDesc, sizeInBytes);
  return answer(entry, [&] {
    const cudnnCTCLossStruct& d = given_ctc(ctcLossDesc);
    const Shape& probs = given(probsDesc, "probsDesc");
    check_shapes(probs, gradientsDesc, algo);
    Call c = common_call(handle, d, probs, kSomewhere, kSomewhere, gradientsDesc, kSomewhere);
    add_device_labels(c, d, probs, kSomewhere, kSomewhere, kSomewhere);
    given(sizeInBytes, "sizeInBytes") = c.workspace_bytes(*c.plan([&](Maker& m) { build(m, d); }));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCTCLoss(cudnnHandle_t handle, const cudnnTensorDescriptor_t probsDesc, const void* probs,
                                       const int* hostLabels, const int* hostLabelLengths, const int* hostInputLengths,
                                       void* costs, const cudnnTensorDescriptor_t gradientsDesc, void* gradients,
                                       cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc, void* workspace,
                                       size_t workSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnCTCLoss, handle, probsDesc, probs, hostLabels, hostLabelLengths, hostInputLengths,
                            costs, gradientsDesc, gradients, algo, ctcLossDesc, workspace, workSpaceSizeInBytes);
  return answer(entry, [&] {
    check_shapes(given(probsDesc, "probsDesc"), gradientsDesc, algo);
    run_with_host_labels(handle, given_ctc(ctcLossDesc), *probsDesc, probs, hostLabels, hostLabelLengths,
                         hostInputLengths, costs, gradientsDesc, gradients, workspace, workSpaceSizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                                          cudnnCTCLossDescriptor_t ctcLossDesc, const cudnnTensorDescriptor_t probsDesc,
                                          const void* probs, const int* labels, const int* labelLengths,
                                          const int* inputLengths, void* costs,
                                          const cudnnTensorDescriptor_t gradientsDesc, void* gradients,
                                          size_t workSpaceSizeInBytes, void* workspace) {
  auto entry = TESSERA_CALL(cudnnCTCLoss_v8, handle, algo, ctcLossDesc, probsDesc, probs, labels, labelLengths,
                            inputLengths, costs, gradientsDesc, gradients, workSpaceSizeInBytes, workspace);
  return answer(entry, [&] {
    const cudnnCTCLossStruct& d = given_ctc(ctcLossDesc);
    check_shapes(given(probsDesc, "probsDesc"), gradientsDesc, algo);
    // Where the device's memory is the host's, labels can be counted and none is read that is not there; unless they
    // come only when a captured stream runs.
    const cudnnContext& h = given(handle, "handle");
    if (!tsr::is_gpu(h.device) && !is_recording(h.stream))
      return run_with_host_labels(handle, d, *probsDesc, probs, labels, labelLengths, inputLengths, costs,
                                  gradientsDesc, gradients, workspace, workSpaceSizeInBytes);
    Call c = common_call(handle, d, *probsDesc, probs, costs, gradientsDesc, gradients);
    add_device_labels(c, d, *probsDesc, labels, labelLengths, inputLengths);
    c.run_in(workspace, workSpaceSizeInBytes, [&](Maker& m) { build(m, d); });
  });
}
