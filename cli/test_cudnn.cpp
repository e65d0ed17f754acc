// SPDX-License-Identifier: Apache-2.0
#include "test_cudnn.hpp"

#include <cstdlib>
#include <cstring>

#include "cudnn/from_graph.hpp"
#include "graph/text.hpp"
#include "harness/compare.hpp"
#include "harness/device_buffers.hpp"
#include "runtime/devices.hpp"

namespace tsr::cli {
namespace {

const std::string& chosen(const std::string& path, const Device& d) {
  // Read by the library when its first handle is made; a GPU keeps its number.
  std::string name = is_gpu(d) ? cat("cuda:", d.index) : d.target == "emulated" ? "emulated" : "cpu";
  setenv("TESSERA_DEVICE", name.c_str(), 1);
  return path;
}

// One case as the library computes it.
class Attempt {
 public:
  Attempt(const Graph& g, const DataSpec& data, const cudnn::Graph& described, const Device& d)
      : g_(g), oracle_(g, data), host_(g, data), on_device_(g, host_, d), device_(d) {
    for (const cudnn::Tensor& t : described.tensors) {
      if (t.value.empty() || t.by_value) continue;
      constants_.push_back(device_memory(d, t.value.size()));
      if (d.memory)
        d.memory->copy_in(constants_.back().get(), t.value.data(), t.value.size());
      else
        std::memcpy(constants_.back().get(), t.value.data(), t.value.size());
      pointers_.push_back({t.uid, constants_.back().get()});
    }
    for (const Binding& b : on_device_.bindings()) pointers_.push_back({b.uid, b.data});
  }

  // Empty when the plan's results are right.
  std::string check(const cudnn::Plan& p) {
    std::shared_ptr<void> workspace = device_memory(device_, static_cast<size_t>(p.workspace_bytes()) + 256);
    host_.poison_outputs();
    on_device_.upload();
    p.execute(p.bind(pointers_, workspace.get()), nullptr);
    synchronize(device_);
    on_device_.download();
    if (std::string names = on_device_.damage(); !names.empty()) return "memory around " + names + " was overwritten";
    return compare(g_, oracle_, host_);
  }

 private:
  const Graph& g_;
  Oracle oracle_;
  GraphBuffers host_;
  DeviceBuffers on_device_;
  const Device& device_;
  std::vector<std::shared_ptr<void>> constants_;
  std::vector<cudnn::Binding> pointers_;
};

}  // namespace

CudnnRunner::CudnnRunner(const std::string& path, const RunnerOptions& o)
    : options_(o), library_(chosen(path, o.device)), handle_(library_) {}

void CudnnRunner::run(const Case& c, Tally& tally) {
  if (!c.error.empty()) return;  // no graph
  auto fail_case = [&](const std::string& why) {
    ++tally.failed;
    options_.on_failure(cat(c.file, ":", c.line, ": ", why, "\n  graph:\n", c.text));
  };
  try {
    Graph g = parse_graph(c.text);
    cudnn::Description described = cudnn::from_graph(g, library_.version());
    if (!described.peer_reason.empty()) {
      ++tally.skipped;
      ++tally.skip_reasons[described.peer_reason];
      return;
    }
    Attempt attempt(g, c.data, described.graph, options_.device);
    cudnn::PlanOptions all;
    all.time = [&](const cudnn::Plan& p) {
      ++tally.by_engine[cat("engine ", p.engine())];
      if (std::string why = attempt.check(p); why.empty())
        ++tally.passed;
      else if (!described.caveat.empty() && why.find("got nan") != std::string::npos)
        ++tally.skipped, ++tally.skip_reasons[described.caveat];
      else
        fail_case(cat("engine ", p.engine(), ": ", why));
      return 0.0;
    };
    cudnn::make_plan(handle_, described.graph, all);
  } catch (const std::exception& e) {
    fail_case(e.what());
  }
}

}  // namespace tsr::cli
