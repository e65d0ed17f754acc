// SPDX-License-Identifier: Apache-2.0
#include "engines/view/view.hpp"

#include "graph/passes/views.hpp"

namespace tsr {
namespace {

class ViewStep : public Step {
 public:
  explicit ViewStep(TensorId source) : source_(source) {}
  int kernels() const override { return 0; }
  TensorId view_of() const override { return source_; }
  void run(const StepArgs&) const override {}

 private:
  TensorId source_;
};

class ViewEngine : public Engine {
 public:
  ViewEngine(std::string_view name, int id, DeviceKind device)
      : info_{name, id, device, true, "transposes and reshapes whose result is the same memory"} {}
  const EngineInfo& info() const override { return info_; }
  Matched match(const Region& r, const Device&) const override {
    if (r.nodes.size() != 1) return Reason::no("a view is one operation");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (!is_view(g, n))
      return Reason::no(spelling(n), " is no view of memory that lies ready, or its result is the caller's");
    const Tensor& x = g.tensor(n.in[0]);
    if (info_.device == DeviceKind::cuda && x.on_host())
      return Reason::no("input ", describe(x), " lies in host memory");
    return one_way(0.0, [source = n.in[0]] { return std::make_unique<ViewStep>(source); });
  }

 private:
  EngineInfo info_;
};

}  // namespace

const Engine& view_engine(DeviceKind device) {
  static const ViewEngine cpu("view", 11, DeviceKind::cpu), cuda("view_cuda", 101, DeviceKind::cuda);
  return device == DeviceKind::cpu ? cpu : cuda;
}

}  // namespace tsr
