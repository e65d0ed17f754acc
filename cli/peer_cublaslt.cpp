// SPDX-License-Identifier: Apache-2.0
#include "cublaslt/plan.hpp"
#include "gpu_peer.hpp"

namespace tsr::cli {
namespace {

class CublasLtPeer : public GpuPeer {
 public:
  CublasLtPeer(cublaslt::Handle& handle, const cublaslt::Product& product, const Device& d, const BufferSets& sets,
               const CudaStream& stream)
      : stream_(stream), workspace_(device_memory(d, cublaslt::Plan::kWorkspaceBytes)) {
    for (int i = 0; i < sets.count(); ++i) {
      auto& pointers = pointers_.emplace_back();
      for (const Binding& b : sets[i]) pointers.push_back({b.uid, b.data});
    }
    plan_.emplace(handle, product, [&](const cublaslt::Plan& p) {
      return replayed_seconds(sets, stream_, [&](int i) { execute(p, i); });
    });
  }
  void run(int i) override { execute(*plan_, i); }
  size_t workspace_bytes() const override { return plan_->workspace_bytes(); }

 private:
  void execute(const cublaslt::Plan& p, int i) {
    p.run(pointers_[static_cast<size_t>(i)], workspace_.get(), stream_.get());
  }
  const CudaStream& stream_;
  std::shared_ptr<void> workspace_;
  std::vector<std::vector<cublaslt::Binding>> pointers_;
  std::optional<cublaslt::Plan> plan_;
};

class CublasLt : public GpuPeerLibrary {
 public:
  explicit CublasLt(const std::string& path) : library_(path), handle_(library_) {}
  std::string about() const override { return cat("cuBLASLt ", library_.version(), " from ", library_.path()); }
  std::unique_ptr<GpuPeer> prepare(const Graph& g, const Device& d, const BufferSets& sets, const CudaStream& stream,
                                   std::string& reason) override {
    cublaslt::Description described = cublaslt::from_graph(g);
    reason = described.reason;
    if (!reason.empty()) return nullptr;
    return std::make_unique<CublasLtPeer>(handle_, described.product, d, sets, stream);
  }

 private:
  cublaslt::Library library_;
  cublaslt::Handle handle_;
};

}  // namespace

std::unique_ptr<GpuPeerLibrary> open_cublaslt(const std::string& path) { return std::make_unique<CublasLt>(path); }

}  // namespace tsr::cli
