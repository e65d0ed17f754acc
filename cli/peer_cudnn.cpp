// SPDX-License-Identifier: Apache-2.0
#include "cudnn/from_graph.hpp"
#include "cudnn/plan.hpp"
#include "gpu_peer.hpp"
#include "graph/ops/rounding.hpp"

namespace tsr::cli {
namespace {

bool keeps_f32(const Graph& g) {
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (allows_tf32(g.node(n))) return false;
  for (TensorId t : g.inputs())
    if (g.tensor(t).dtype != DType::f32) return false;
  return true;
}

class CudnnPeer : public GpuPeer {
 public:
  CudnnPeer(cudnn::Handle& handle, const Graph& g, const cudnn::Graph& described, const Device& d,
            const BufferSets& sets, const CudaStream& stream)
      : stream_(stream) {
    for (const cudnn::Tensor& t : described.tensors)
      if (!t.value.empty() && !t.by_value) {
        constants_.push_back(device_memory(d, t.value.size()));
        d.memory->copy_in(constants_.back().get(), t.value.data(), t.value.size());
        known_.push_back({t.uid, constants_.back().get()});
      }
    cudnn::PlanOptions options;
    options.candidates = 4;
    if (keeps_f32(g)) options.without = {cudnn::NumericalNote::tensor_core, cudnn::NumericalNote::down_convert_inputs};
    options.time = [&](const cudnn::Plan& p) {
      bind(p, d, sets);
      return replayed_seconds(sets, stream_, [&](int i) { execute(p, i); });
    };
    plan_.emplace(cudnn::make_plan(handle, described, options));
    bind(*plan_, d, sets);
  }
  void run(int i) override { execute(*plan_, i); }
  size_t workspace_bytes() const override { return static_cast<size_t>(plan_->workspace_bytes()); }

 private:
  void execute(const cudnn::Plan& p, int i) { p.execute(packs_[static_cast<size_t>(i)], stream_.get()); }
  void bind(const cudnn::Plan& p, const Device& d, const BufferSets& sets) {
    workspace_ = device_memory(d, static_cast<size_t>(p.workspace_bytes()) + 256);
    packs_.clear();
    for (int i = 0; i < sets.count(); ++i) {
      std::vector<cudnn::Binding> pointers = known_;
      for (const Binding& b : sets[i]) pointers.push_back({b.uid, b.data});
      packs_.push_back(p.bind(pointers, workspace_.get()));
    }
  }
  const CudaStream& stream_;
  std::vector<std::shared_ptr<void>> constants_;
  std::vector<cudnn::Binding> known_;
  std::shared_ptr<void> workspace_;
  std::vector<cudnn::Pack> packs_;
  std::optional<cudnn::Plan> plan_;
};

class Cudnn : public GpuPeerLibrary {
 public:
  explicit Cudnn(const std::string& path) : library_(path), handle_(library_) {}
  std::string about() const override { return cat("cuDNN ", library_.version(), " from ", library_.path()); }
  std::unique_ptr<GpuPeer> prepare(const Graph& g, const Device& d, const BufferSets& sets, const CudaStream& stream,
                                   std::string& reason) override {
    cudnn::Description described = cudnn::from_graph(g, library_.version());
    reason = described.peer_reason;
    if (!reason.empty()) return nullptr;
    return std::make_unique<CudnnPeer>(handle_, g, described.graph, d, sets, stream);
  }

 private:
  cudnn::Library library_;
  cudnn::Handle handle_;
};

}  // namespace

std::unique_ptr<GpuPeerLibrary> open_cudnn(const std::string& path) { return std::make_unique<Cudnn>(path); }

}  // namespace tsr::cli
