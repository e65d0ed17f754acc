// SPDX-License-Identifier: Apache-2.0
#include "bench_cuda.hpp"
#include "harness/provenance.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/hash.hpp"
#include "command.hpp"
#include "cudnn/from_graph.hpp"
#include "cudnn/plan.hpp"
#include "graph/op.hpp"
#include "graph/ops/tf32.hpp"
#include "graph/text.hpp"
#include "harness/cases.hpp"
#include "harness/replay.hpp"
#include "planner/explain.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"
#include "runtime/jit/sources.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cli {
namespace {

struct Row {
  std::string suite, text, op, dtype, engine, config;
  Stats time;
  double bytes = 0, flops = 0, limit = 0;             // limit: seconds
  std::vector<std::pair<std::string, double>> peers;  // seconds
  std::string peer_reason = "not asked for";
  double plan_cold = 0, plan_disk = 0, plan_cached = 0, host = 0;
  size_t workspace = 0, peer_workspace = 0;
  int clock_mhz = 0;
};

int sm_clock_mhz() {
  int mhz = 0;
  if (std::FILE* p = popen("nvidia-smi --query-gpu=clocks.sm --format=csv,noheader,nounits 2>/dev/null", "r")) {
    if (std::fscanf(p, "%d", &mhz) != 1) mhz = 0;
    pclose(p);
  }
  return mhz;
}

double timed(const std::function<void()>& work) {
  double start = now();
  work();
  return now() - start;
}

void describe(const Plan& plan, Row& r) {
  for (const PlannedStep& s : plan.steps()) {
    r.engine += (r.engine.empty() ? "" : "+") + std::string(s.engine->info().name);
    r.config += (r.config.empty() ? "" : "; ") + to_string(s.config);
  }
  for (const Region* region : plan.regions()) r.limit += region_limits(*region, plan.device()).seconds();
  r.bytes = plan.bytes_moved();
  r.flops = plan.flops();
  r.workspace = plan.workspace_bytes();
}

// Seconds of the host for one execution, while the device keeps up.
double host_seconds(const Plan& plan, const BufferSets& sets, void* workspace, const CudaStream& stream) {
  constexpr int kCalls = 50;
  std::vector<double> samples;
  for (int round = 0; round < 11; ++round) {
    stream.synchronize();
    samples.push_back(timed([&] {
                        for (int i = 0; i < kCalls; ++i)
                          plan.execute(sets[i % sets.count()], workspace, plan.workspace_bytes(), stream.get());
                      }) /
                      kCalls);
  }
  stream.synchronize();
  return stats_of(std::move(samples)).median;
}

// cuDNN's best plan for a graph, ready to be captured; or why there is none.
class CudnnPeer {
 public:
  CudnnPeer(cudnn::Handle& handle, const Graph& g, const Device& d, const BufferSets& sets, const CudaStream& stream)
      : stream_(stream) {
    cudnn::Description described = cudnn::from_graph(g, handle.library().version());
    reason = described.peer_reason;
    if (!reason.empty()) return;
    try {
      for (const cudnn::Tensor& t : described.graph.tensors)
        if (!t.value.empty() && !t.by_value) {
          constants_.push_back(device_memory(d, t.value.size()));
          d.memory->copy_in(constants_.back().get(), t.value.data(), t.value.size());
          known_.push_back({t.uid, constants_.back().get()});
        }
      cudnn::PlanOptions options;
      options.candidates = 4;
      if (keeps_f32(g))
        options.without = {cudnn::NumericalNote::tensor_core, cudnn::NumericalNote::down_convert_inputs};
      options.time = [&](const cudnn::Plan& p) { return seconds(p, d, sets); };
      plan_.emplace(cudnn::make_plan(handle, described.graph, options));
      bind(*plan_, d, sets);
    } catch (const cudnn::Error& e) {
      plan_.reset();
      reason = e.what();
    }
  }
  std::string reason;
  size_t workspace_bytes() const { return plan_ ? static_cast<size_t>(plan_->workspace_bytes()) : 0; }
  void run(int i) { plan_->execute(packs_[static_cast<size_t>(i)], stream_.get()); }

 private:
  static bool keeps_f32(const Graph& g) {
    for (NodeId n = 0; n < g.node_count(); ++n)
      if (allows_tf32(g.node(n))) return false;
    for (TensorId t : g.inputs())
      if (g.tensor(t).dtype != DType::f32) return false;
    return true;
  }
  void bind(const cudnn::Plan& p, const Device& d, const BufferSets& sets) {
    workspace_ = device_memory(d, static_cast<size_t>(p.workspace_bytes()) + 256);
    packs_.clear();
    for (int i = 0; i < sets.count(); ++i) {
      std::vector<cudnn::Binding> pointers = known_;
      for (const Binding& b : sets[i]) pointers.push_back({b.uid, b.data});
      packs_.push_back(p.bind(pointers, workspace_.get()));
    }
  }
  double seconds(const cudnn::Plan& p, const Device& d, const BufferSets& sets) {
    bind(p, d, sets);
    p.execute(packs_[0], stream_.get());
    stream_.synchronize();
    CapturedGraph captured(stream_, [&] {
      for (int i = 0; i < sets.count(); ++i) p.execute(packs_[static_cast<size_t>(i)], stream_.get());
    });
    return replay_in_turn({&captured}, {1}, 0.02)[0].median;
  }
  const CudaStream& stream_;
  std::vector<std::shared_ptr<void>> constants_;
  std::vector<cudnn::Binding> known_;
  std::shared_ptr<void> workspace_;
  std::vector<cudnn::Pack> packs_;
  std::optional<cudnn::Plan> plan_;
};

class Bench {
 public:
  explicit Bench(const CudaBench& b) : b_(b), device_(find_device(b.device)) {
    for (const std::string& p : b.peers) {
      require(p.rfind("cudnn=", 0) == 0, "--peer ", p, " must read cudnn=PATH");
      cuda::ensure_context(device_.index);
      library_.emplace(p.substr(6));
      handle_.emplace(*library_);
      std::cout << "cuDNN " << library_->version() << " from " << library_->path() << "\n";
    }
    require(is_gpu(device_), "--device ", b.device, " is no GPU of this machine");
  }

  Row measure(const Case& c) {
    Row r;
    r.suite = std::filesystem::path(c.file).stem().string();
    auto g = std::make_shared<const Graph>(parse_graph(c.text));
    r.text = print_graph(*g, {.one_line = true});
    for (NodeId n = 0; n < g->node_count(); ++n) r.op += (n ? "+" : "") + spelling(g->node(n));
    if (!g->inputs().empty()) r.dtype = name(g->tensor(g->inputs()[0]).dtype);
    std::shared_ptr<const Plan> plan;
    r.plan_cold = timed([&] { plan = make_plan(g, device_); });
    forget_kernels();
    r.plan_disk = timed([&] { plan = make_plan(g, device_); });
    (void)cached_plan(g, device_);
    r.plan_cached = interleave({[&] { (void)cached_plan(g, device_); }}, 0.01)[0].median;
    describe(*plan, r);
    CudaStream stream(device_);
    BufferSets sets(*g, device_, c.data, 4 * device_.cache_bytes);
    auto workspace = device_memory(device_, plan->workspace_bytes());
    auto run = [&](int i) { plan->execute(sets[i], workspace.get(), plan->workspace_bytes(), stream.get()); };
    run(0);
    stream.synchronize();
    CapturedGraph ours(stream, [&] {
      for (int i = 0; i < sets.count(); ++i) run(i);
    });
    // A copy of as many bytes, read and written, through as many buffers.
    auto half = static_cast<size_t>(r.bytes / 2) / 16 * 16 + 16;
    auto from = device_memory(device_, half * 2), to = device_memory(device_, half * 2);
    CapturedGraph copy(stream, [&] {
      for (int i = 0; i < sets.count(); ++i) copy_half(from.get(), to.get(), half, i % 2 * half, stream);
    });
    std::vector<const CapturedGraph*> graphs = {&ours, &copy};
    std::vector<int> parts(3, sets.count());
    std::optional<CudnnPeer> peer;
    std::optional<CapturedGraph> theirs;
    if (handle_) {
      peer.emplace(*handle_, *g, device_, sets, stream);
      r.peer_reason = peer->reason;
      r.peer_workspace = peer->workspace_bytes();
      if (peer->reason.empty()) {
        theirs.emplace(stream, [&] {
          for (int i = 0; i < sets.count(); ++i) peer->run(i);
        });
        graphs.push_back(&*theirs);
      }
    }
    std::vector<Stats> all = replay_in_turn(graphs, parts, b_.seconds);
    r.clock_mhz = sm_clock_mhz();
    r.time = all[0];
    r.peers.emplace_back("copy", all[1].median);
    if (theirs) r.peers.emplace_back("cudnn", all[2].median);
    r.host = host_seconds(*plan, sets, workspace.get(), stream);
    return r;
  }

  Json to_json(const Row& r) const {
    Json peers = Json::object();
    Json ratio, reason = r.peer_reason;
    for (const auto& [name, seconds] : r.peers) {
      peers[name] = seconds * 1e3;
      if (name == "cudnn") ratio = seconds / r.time.median, reason = nullptr;
    }
    return {{"suite", r.suite},
            {"case", r.text},
            {"op", r.op},
            {"dtype", r.dtype},
            {"engine", r.engine},
            {"config", r.config},
            {"ms", r.time.median * 1e3},
            {"p10_ms", r.time.p10 * 1e3},
            {"p90_ms", r.time.p90 * 1e3},
            {"gb_s", r.bytes / r.time.median * 1e-9},
            {"tflop_s", r.flops / r.time.median * 1e-12},
            {"limit_fraction", r.limit / r.time.median},
            {"peers", peers},
            {"ratio", ratio},
            {"peer_reason", reason},
            {"plan_cold_ms", r.plan_cold * 1e3},
            {"plan_disk_ms", r.plan_disk * 1e3},
            {"plan_cached_us", r.plan_cached * 1e6},
            {"host_us", r.host * 1e6},
            {"workspace_bytes", r.workspace},
            {"peer_workspace_bytes", r.peer_workspace},
            {"gpu", device_.name},
            {"driver", cuda::driver().version},
            {"sm_clock_mhz", r.clock_mhz},
            {"commit", commit()},
            {"kernels_hash", hex(jit::all_sources_hash())}};
  }

  void print(const Row& r) const {
    char text[160];
    std::snprintf(text, sizeof text,
                  "  %9.4f ms %7.0f GB/s %6.1f TFLOP/s %4.0f%% of the limit, host %.2f us, cold %.0f ms",
                  r.time.median * 1e3, r.bytes / r.time.median * 1e-9, r.flops / r.time.median * 1e-12,
                  100 * r.limit / r.time.median, r.host * 1e6, r.plan_cold * 1e3);
    std::cout << paint(Colour::bold, r.suite + ": " + r.text) << "\n" << text << ", " << r.engine;
    for (const auto& [name, seconds] : r.peers) {
      std::snprintf(text, sizeof text, ", %s %.3f", name.c_str(), seconds / r.time.median);
      std::cout << text;
    }
    if (!r.peer_reason.empty()) std::cout << ", no cudnn: " << r.peer_reason.substr(0, 100);
    std::cout << std::endl;
  }

 private:
  void copy_half(void* from, void* to, size_t bytes, size_t offset, const CudaStream& stream) const {
    auto at = [&](void* p) { return reinterpret_cast<cuda::Pointer>(static_cast<std::byte*>(p) + offset); };
    cuda::check(cuda::driver().MemcpyDtoDAsync(at(to), at(from), bytes, static_cast<cuda::Stream>(stream.get())),
                "cuMemcpyDtoDAsync");
  }

  const CudaBench& b_;
  Device device_;
  std::optional<cudnn::Library> library_;
  std::optional<cudnn::Handle> handle_;
};

}  // namespace

int bench_cuda(const CudaBench& b) {
  require(b.seconds > 0, "--seconds ", b.seconds, " must be positive");
  Bench bench(b);
  std::ofstream out;
  if (!b.json.empty()) {
    out.open(b.json);
    require(out.good(), "cannot write '", b.json, "'");
  }
  int refused = 0, measured = 0;
  for (const std::string& file : case_files(b.files, "bench/suites/cuda"))
    for (const Case& c : read_case_argument(file)) {
      if (c.text.find(b.filter) == std::string::npos && c.file.find(b.filter) == std::string::npos) continue;
      try {
        Row r = bench.measure(c);
        bench.print(r);
        ++measured;
        if (out.is_open()) out << bench.to_json(r).dump() << std::endl;
      } catch (const Error& e) {
        ++refused;
        std::cerr << "error: " << c.file << ":" << c.line << ": " << e.what() << "\n";
      }
    }
  require(measured + refused > 0, "no case matches the filter '", b.filter, "'");
  return refused ? kFailed : kOk;
}

}  // namespace tsr::cli
