// SPDX-License-Identifier: Apache-2.0
// The C calls that run plans.
#include <algorithm>

#include "capi/backend/cuda_graph.hpp"
#include "capi/backend/planning.hpp"
#include "capi/host_graph.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {
namespace {

// The plan for the sizes of a variant pack, and what it may rely on. Programs ask for the workspace when they have the
// plan, or for the sizes of a variant pack, and may execute the plan with other sizes later.
struct Sized {
  std::shared_ptr<const Plan> plan;
  size_t told;  // bytes of workspace that the program brings, whichever of the two it asked for
};
Sized plan_for(const cudnnContext& handle, const Descriptor& plan, const Descriptor& pack) {
  std::shared_ptr<const Plan> p = plan_on(made<MadePlan>(plan), handle.device);
  auto told = static_cast<size_t>(workspace_of(*made<MadePlan>(plan).plan, made<MadePlan>(plan).knobs));
  std::vector<ShapeOverride> changed = overrides(pack, p->source());
  if (changed.empty()) return {p, told};
  demand(!made<MadePlan>(plan).peers, CUDNN_STATUS_NOT_SUPPORTED,
         "VARIANT_PACK_OVERRIDE_SHAPES: norms with statistics of peers keep their sizes, which all peers share");
  cuda::RelaxedCapture allowed;
  std::shared_ptr<const Plan> sized = p->with_shapes(changed);
  return {sized, std::min(told, static_cast<size_t>(workspace_of(*sized, made<MadePlan>(plan).knobs)))};
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
  Execution(const cudnnContext& handle, const Descriptor& plan, const Descriptor& pack)
      : sized_(plan_for(handle, plan, pack)),
        bindings_(bindings(sized_.plan->source(), made<MadePack>(pack).ids, made<MadePack>(pack).pointers)),
        workspace_(made<MadePack>(pack).workspace),
        peers_(made<MadePlan>(plan).peers),
        pack_(made<MadePack>(pack)) {
    log_graph(sized_.plan->source());
    size_t needed = sized_.plan->workspace_bytes();
    // Programs pass none to engine numbers that need none of NVIDIA's: on the host the plan has memory of its own.
    demand(workspace_ || needed == 0 || sized_.told == 0 || handle.device.kind == DeviceKind::cpu,
           CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "VARIANT_PACK_WORKSPACE is a null pointer, the plan needs ", needed,
           " bytes");
  }
  void operator()(void* stream) const {
    if (!peers_) return run(bindings_, stream);
    run_with_peers(*peers_, sized_.plan->device(), pack_.ids, pack_.pointers, stream,
                   [&](std::span<const Binding> statistics) {
                     std::vector<Binding> all = bindings_;
                     all.insert(all.end(), statistics.begin(), statistics.end());
                     run(all, stream);
                   });
  }
  Later later() const {
    demand(!peers_, CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API, kNotRecorded);
    // Null where the program's is too small: it brings its own then.
    Later l(sized_.plan, sized_.plan->workspace_bytes() <= sized_.told ? workspace_ : nullptr);
    for (const Binding& b : bindings_) l.bind(b);
    return l;
  }

 private:
  void run(std::span<const Binding> bindings, void* stream) const {
    if (sized_.plan->device().kind == DeviceKind::cpu) {
      check_memory(sized_.plan->source(), bindings);
      if (workspace_) check_workspace(workspace_, sized_.told);
    }
    sized_.plan->execute_within(bindings, workspace_, workspace_ ? sized_.told : 0, stream);
  }

  Sized sized_;
  std::vector<Binding> bindings_;
  void* workspace_;
  std::shared_ptr<const PeerStatistics> peers_;
  const MadePack& pack_;
};

}  // namespace
}  // namespace tsr::capi

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
                                                             cudnnBackendDescriptor_t executionPlan,
                                                             cudnnBackendDescriptor_t variantPack,
                                                             size_t* workspaceSizeInBytes) {
  auto entry =
      TESSERA_CALL(cudnnGetExecutionPlanWorkspaceSize, handle, executionPlan, variantPack, workspaceSizeInBytes);
  return answer(entry, [&] {
    const Descriptor& plan = given_plan(executionPlan);
    std::shared_ptr<const tsr::Plan> sized = plan_for(given(handle, "handle"), plan, given_pack(variantPack)).plan;
    given(workspaceSizeInBytes, "workspaceSizeInBytes") =
        static_cast<size_t>(workspace_of(*sized, made<MadePlan>(plan).knobs));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                              cudnnBackendDescriptor_t variantPack) {
  return answer(TESSERA_CALL(cudnnBackendExecute, handle, executionPlan, variantPack), [&] {
    const cudnnContext& h = given(handle, "handle");
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
  return answer(TESSERA_CALL(cudnnBackendPopulateCudaGraph, handle, executionPlan, variantPack, graph), [&] {
    const cudnnContext& h = given(handle, "handle");
    check_graph(graph, h.device);
    Execution run(h, given_plan(executionPlan), given_pack(variantPack));
    tsr::is_gpu(h.device) ? fill_graph(graph, run) : fill_host_graph(graph, run.later());
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendUpdateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                                      cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  return answer(TESSERA_CALL(cudnnBackendUpdateCudaGraph, handle, executionPlan, variantPack, graph), [&] {
    const cudnnContext& h = given(handle, "handle");
    check_graph(graph, h.device);
    Execution run(h, given_plan(executionPlan), given_pack(variantPack));
    tsr::is_gpu(h.device) ? refill_graph(graph, run) : refill_host_graph(graph, run.later());
  });
}
