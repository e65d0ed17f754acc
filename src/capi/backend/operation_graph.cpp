// SPDX-License-Identifier: Apache-2.0
// OPERATIONGRAPH: operations become the one graph that is planned.
#include <algorithm>

#include "capi/backend/planning.hpp"
#include "graph/passes/recognise.hpp"

namespace tsr::capi {
namespace {

using Mode = cudnnBackendOperationGraphMode_t;

// What cannot be computed is refused when someone asks for an engine: programs take that for an answer, and a failure
// here for a mistake of theirs.
void translate_all(const Descriptor& d, MadeGraph& to) {
  GraphBuilder operations;
  try {
    for (const auto& op : d.parts(CUDNN_ATTR_OPERATIONGRAPH_OPS)) translate(*op, operations);
    if (operations.is_body()) {
      to.why = "a virtual tensor is read that no operation writes: it is the sub-graph of another operation";
      return;
    }
    to.peers = operations.split_statistics();
    to.graph = std::make_shared<const Graph>(operations.finish());
  } catch (const Failure& f) {
    if (CUDNN_STATUS_CATEGORY(f.status) != CUDNN_STATUS_NOT_SUPPORTED) throw;
    to.why = f.text;
  } catch (const Error& e) {
    if (e.status() != Status::not_supported) throw;
    to.why = e.what();
  }
}

bool is_known(Mode m) {
  switch (m) {
    case CUDNN_OPERATIONGRAPH_MODE_AUTO:
    case CUDNN_OPERATIONGRAPH_MODE_CONV_FORWARD:
    case CUDNN_OPERATIONGRAPH_MODE_CONV_BWD_DATA:
    case CUDNN_OPERATIONGRAPH_MODE_CONV_BWD_FILTER:
    case CUDNN_OPERATIONGRAPH_MODE_NORM_FWD_INFER:
    case CUDNN_OPERATIONGRAPH_MODE_NORM_FWD_TRAIN:
    case CUDNN_OPERATIONGRAPH_MODE_NORM_BWD:
    case CUDNN_OPERATIONGRAPH_MODE_GENERIC_CONV_FUSION:
    case CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_FWD:
    case CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_BWD:
    case CUDNN_OPERATIONGRAPH_MODE_BLAS_MATMUL:
    case CUDNN_OPERATIONGRAPH_MODE_GENERIC_MATMUL_FUSION:
    case CUDNN_OPERATIONGRAPH_MODE_GENERIC_POINTWISE_FUSION:
    case CUDNN_OPERATIONGRAPH_MODE_SDPA_FWD:
    case CUDNN_OPERATIONGRAPH_MODE_SDPA_BWD:
    case CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_FWD:
    case CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_BWD:
      return true;
  }
  return false;
}

// The kind of graph that one operation makes, and what it is called with others around it.
struct Kind {
  cudnnBackendDescriptorType_t type;
  Mode alone, among;
};
constexpr Kind kKinds[] = {
    // the first that occurs decides
    {CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_FWD,
     CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_FWD},
    {CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_BWD,
     CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_BWD},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_CONV_FORWARD,
     CUDNN_OPERATIONGRAPH_MODE_GENERIC_CONV_FUSION},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_CONV_BWD_DATA,
     CUDNN_OPERATIONGRAPH_MODE_GENERIC_CONV_FUSION},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_CONV_BWD_FILTER,
     CUDNN_OPERATIONGRAPH_MODE_GENERIC_CONV_FUSION},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_BLAS_MATMUL,
     CUDNN_OPERATIONGRAPH_MODE_GENERIC_MATMUL_FUSION},
    {CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_BLAS_MATMUL,
     CUDNN_OPERATIONGRAPH_MODE_GENERIC_MATMUL_FUSION},
    {CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_BWD_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_BLAS_MATMUL,
     CUDNN_OPERATIONGRAPH_MODE_GENERIC_MATMUL_FUSION},
    {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_NORM_BWD,
     CUDNN_OPERATIONGRAPH_MODE_NORM_BWD},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_FWD,
     CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_FWD},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_BWD,
     CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_BWD},
};

// Attention that is spelled out is known by what the planner makes of it.
Mode mode_of_products(const MadeGraph& g) {
  if (g.graph) {
    std::shared_ptr<const Graph> recognised = recognise(g.graph);
    for (NodeId n = 0; n < recognised->node_count(); ++n) {
      if (recognised->node(n).op == &ops::sdpa_fwd) return CUDNN_OPERATIONGRAPH_MODE_SDPA_FWD;
      if (recognised->node(n).op == &ops::sdpa_bwd) return CUDNN_OPERATIONGRAPH_MODE_SDPA_BWD;
    }
  }
  return CUDNN_OPERATIONGRAPH_MODE_GENERIC_MATMUL_FUSION;
}

Mode detect_mode(const Descriptor& d) {
  auto ops = d.parts(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (const Kind& k : kKinds)
    for (const auto& op : ops) {
      if (op->type() != k.type) continue;
      Mode m = ops.size() == 1 ? k.alone : k.among;
      return m == CUDNN_OPERATIONGRAPH_MODE_GENERIC_MATMUL_FUSION ? mode_of_products(made<MadeGraph>(d)) : m;
    }
  for (const auto& op : ops)
    if (op->type() == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR)
      return op->one(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE) == CUDNN_NORM_FWD_TRAINING
                 ? CUDNN_OPERATIONGRAPH_MODE_NORM_FWD_TRAIN
                 : CUDNN_OPERATIONGRAPH_MODE_NORM_FWD_INFER;
  return CUDNN_OPERATIONGRAPH_MODE_GENERIC_POINTWISE_FUSION;
}

}  // namespace

bool set_graph(Descriptor&, cudnnBackendAttributeName_t name, const void* elements) {
  if (name == CUDNN_ATTR_OPERATIONGRAPH_MODE) {
    int mode = *static_cast<const int*>(elements);
    demand(is_known(static_cast<Mode>(mode)), CUDNN_STATUS_BAD_PARAM, "operation graph mode ", mode, " does not exist");
  }
  return false;
}

void finalize_graph(Descriptor& d) {
  demand(!d.parts(CUDNN_ATTR_OPERATIONGRAPH_OPS).empty(), CUDNN_STATUS_BAD_PARAM, "the graph has no operations");
  auto g = std::make_shared<MadeGraph>();
  if (d.has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE))
    g->device = given(d.one<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, nullptr), "OPERATIONGRAPH_HANDLE").device;
  translate_all(d, *g);
  if (g->graph) log_graph(*g->graph);
  make(d, g);
}

bool get_graph(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
               void* elements) {
  if (name == CUDNN_ATTR_OPERATIONGRAPH_MODE) {
    hand_out(std::vector<Mode>{detect_mode(d)}, requested, count, elements);
    return true;
  }
  if (name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT) {
    plannable(d);
    hand_out(std::vector<int64_t>{engine_count()}, requested, count, elements);
    return true;
  }
  return false;
}

const MadeGraph& plannable(const Descriptor& graph) {
  const auto& g = made<MadeGraph>(graph);
  demand(g.graph != nullptr, CUDNN_STATUS_NOT_SUPPORTED, "the graph cannot be planned: ", g.why);
  return g;
}

Device device_for(const Descriptor& d, cudnnBackendAttributeName_t device_prop, const MadeGraph& g) {
  if (const Descriptor* prop = d.part(device_prop)) return made<Device>(*prop);
  return g.device ? *g.device : default_device();
}

}  // namespace tsr::capi
