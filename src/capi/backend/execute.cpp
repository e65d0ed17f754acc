// SPDX-License-Identifier: Apache-2.0
// The C calls that run plans.
#include "capi/backend/cuda_graph.hpp"
#include "capi/backend/planning.hpp"
#include "capi/host_graph.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {
namespace {

// A plan on the handle's device, for the sizes of a variant pack.
std::shared_ptr<const Plan> plan_for(const cudnnContext& handle, const Descriptor& plan, const Descriptor& pack) {
  std::shared_ptr<const Plan> p = plan_on(made<MadePlan>(plan), handle.device);
  std::vector<ShapeOverride> changed = overrides(pack, p->source());
  if (changed.empty()) return p;
  cuda::RelaxedCapture allowed;
  return p->with_shapes(changed);
}

const Descriptor& given_plan(cudnnBackendDescriptor_t d) {
  return given_descriptor(d, "executionPlan", CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
}

const Descriptor& given_pack(cudnnBackendDescriptor_t d) {
  return given_descriptor(d, "variantPack", CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
}

// What a call runs, checked as far as the interface tells: it does not say how large the workspace is.
class Execution {
 public:
  Execution(cudnnContext& handle, const Descriptor& plan, const Descriptor& pack)
      : handle_(handle),
        plan_(plan_for(handle, plan, pack)),
        bindings_(bindings(plan_->source(), made<MadePack>(pack).ids, made<MadePack>(pack).pointers)),
        workspace_(made<MadePlan>(plan).knobs.own_workspace ? nullptr : made<MadePack>(pack).workspace) {
    log_graph(plan_->source());
    // Programs pass none to engine numbers that need none of NVIDIA's: on the host the library has memory of its own.
    demand(workspace_ || handle.device.kind == tsr::DeviceKind::cpu || plan_->workspace_bytes() == 0,
           CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "VARIANT_PACK_WORKSPACE is a null pointer, the plan needs ",
           plan_->workspace_bytes(), " bytes");
    demand(plan_->workspace_bytes() == 0 || reinterpret_cast<uintptr_t>(workspace_) % kAlignment == 0,
           CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "VARIANT_PACK_WORKSPACE is not aligned to ", kAlignment,
           " bytes");
  }
  void operator()(void* stream) const {
    void* workspace = plan_->workspace_bytes() == 0 ? nullptr : workspace_;
    if (!workspace && plan_->workspace_bytes() > 0) workspace = handle_.scratch(plan_->workspace_bytes());
    plan_->execute(bindings_, workspace, plan_->workspace_bytes(), stream);
  }
  Later later() const {
    Later l(plan_, workspace_);
    for (const Binding& b : bindings_) l.bind(b);
    return l;
  }

 private:
  static constexpr uintptr_t kAlignment = 16;
  cudnnContext& handle_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Binding> bindings_;
  void* workspace_;
};

}  // namespace
}  // namespace tsr::capi

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
                                                             cudnnBackendDescriptor_t executionPlan,
                                                             cudnnBackendDescriptor_t variantPack,
                                                             size_t* workspaceSizeInBytes) {
  return answer("cudnnGetExecutionPlanWorkspaceSize", [&] {
    const Descriptor& plan = given_plan(executionPlan);
    std::shared_ptr<const tsr::Plan> planned = plan_for(given(handle, "handle"), plan, given_pack(variantPack));
    given(workspaceSizeInBytes, "workspaceSizeInBytes") =
        static_cast<size_t>(workspace_of(*planned, made<MadePlan>(plan).knobs));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                              cudnnBackendDescriptor_t variantPack) {
  return answer("cudnnBackendExecute", [&] {
    cudnnContext& h = given(handle, "handle");
    Execution run(h, given_plan(executionPlan), given_pack(variantPack));
    // Some front ends try plans in a stream that records, with memory that is too small for them: work on the host
    // that cannot be recorded must be left undone.
    if (!tsr::is_gpu(h.device) && is_recording(h.stream))
      record(h.stream, run.later());
    else
      run(h.stream);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendPopulateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                                        cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  return answer("cudnnBackendPopulateCudaGraph", [&] {
    cudnnContext& h = given(handle, "handle");
    check_graph(graph, h.device);
    Execution run(h, given_plan(executionPlan), given_pack(variantPack));
    tsr::is_gpu(h.device) ? fill_graph(graph, run) : fill_host_graph(graph, run.later());
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendUpdateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                                      cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  return answer("cudnnBackendUpdateCudaGraph", [&] {
    cudnnContext& h = given(handle, "handle");
    check_graph(graph, h.device);
    Execution run(h, given_plan(executionPlan), given_pack(variantPack));
    tsr::is_gpu(h.device) ? refill_graph(graph, run) : refill_host_graph(graph, run.later());
  });
}
