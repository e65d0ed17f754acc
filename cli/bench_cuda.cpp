// SPDX-License-Identifier: Apache-2.0
#include "bench_cuda.hpp"
#include "harness/provenance.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/hash.hpp"
#include "command.hpp"
#include "gpu_peer.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "harness/candidates.hpp"
#include "harness/cases.hpp"
#include "harness/replay.hpp"
#include "opened/opened.hpp"
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
  std::map<std::string, std::string> refused;         // why a peer has no time
  double plan_cold = 0, plan_disk = 0, plan_cached = 0, host = 0;
  size_t workspace = 0;
  std::map<std::string, size_t> peer_workspace;
  std::vector<std::pair<std::string, double>> candidates;  // seconds; the planner's choice first
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

class Bench {
 public:
  explicit Bench(const CudaBench& b) : b_(b), device_(find_device(b.device)) {
    for (const std::string& p : b.peers) {
      size_t split = p.find('=');
      std::string name = p.substr(0, split);
      require(split != std::string::npos && (name == "cudnn" || name == "cublaslt"), "--peer ", p,
              " must read cudnn=PATH or cublaslt=PATH");
      cuda::ensure_context(device_.index);
      auto library = (name == "cudnn" ? open_cudnn : open_cublaslt)(p.substr(split + 1));
      std::cout << library->about() << "\n";
      libraries_.emplace_back(name, std::move(library));
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
    std::vector<std::string> names = {"ours", "copy"};
    std::vector<const CapturedGraph*> graphs = {&ours, &copy};
    std::vector<std::unique_ptr<GpuPeer>> peers;
    std::vector<std::unique_ptr<CapturedGraph>> theirs;
    for (auto& [name, library] : libraries_) {
      std::unique_ptr<GpuPeer> peer = prepare(*library, *g, sets, stream, r.refused[name]);
      if (!peer) continue;
      r.refused.erase(name);
      r.peer_workspace[name] = peer->workspace_bytes();
      theirs.push_back(std::make_unique<CapturedGraph>(stream, [&] {
        for (int i = 0; i < sets.count(); ++i) peer->run(i);
      }));
      names.push_back(name);
      graphs.push_back(theirs.back().get());
      peers.push_back(std::move(peer));
    }
    std::vector<Stats> all = replay_in_turn(graphs, std::vector<int>(graphs.size(), sets.count()), b_.seconds);
    r.clock_mhz = sm_clock_mhz();
    r.time = all[0];
    for (size_t i = 1; i < all.size(); ++i) r.peers.emplace_back(names[i], all[i].median);
    r.host = host_seconds(*plan, sets, workspace.get(), stream);
    if (b_.candidates && plan->steps().size() == 1) measure_candidates(g, *plan, ours, sets, stream, r);
    return r;
  }

  Json to_json(const Row& r) const {
    Json peers = Json::object();
    Json ratio;
    for (const auto& [name, seconds] : r.peers) {
      peers[name] = seconds * 1e3;
      if (name == "cudnn") ratio = seconds / r.time.median;
    }
    Json candidates = Json::object();
    for (const auto& [name, seconds] : r.candidates) candidates[name] = seconds * 1e3;
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
            {"refused", r.refused},
            {"candidates", candidates},
            {"loss", r.candidates.empty() ? Json() : Json(loss(r))},
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
    if (!r.candidates.empty()) {
      std::snprintf(text, sizeof text, ", %.1f%% behind the best of %zu", 100 * loss(r), r.candidates.size());
      std::cout << text;
    }
    for (const auto& [name, reason] : r.refused) std::cout << ", no " << name << ": " << reason.substr(0, 100);
    std::cout << std::endl;
  }

  // How much longer the planner's choice takes than the best candidate.
  static double loss(const Row& r) {
    double best = r.candidates[0].second;
    for (const auto& [name, seconds] : r.candidates) best = std::min(best, seconds);
    return r.candidates[0].second / best - 1;
  }

 private:
  void measure_candidates(const std::shared_ptr<const Graph>& g, const Plan& plan, const CapturedGraph& ours,
                          const BufferSets& sets, const CudaStream& stream, Row& r) const {
    Query query(g, device_);
    const PlannedStep& chosen = plan.steps()[0];
    std::vector<std::string> names = {Candidate{chosen.engine, chosen.config}.label()};
    std::vector<const CapturedGraph*> graphs = {&ours};
    std::vector<std::unique_ptr<CapturedGraph>> others;
    std::vector<std::shared_ptr<void>> workspaces;
    for (const Candidate& c : candidates(query)) {
      if (c.label() == names[0]) continue;
      auto other = plan_as_one(query, *c.engine, c.config);
      workspaces.push_back(device_memory(device_, other->workspace_bytes()));
      auto run = [&](int i) {
        other->execute(sets[i], workspaces.back().get(), other->workspace_bytes(), stream.get());
      };
      run(0);
      stream.synchronize();
      others.push_back(std::make_unique<CapturedGraph>(stream, [&] {
        for (int i = 0; i < sets.count(); ++i) run(i);
      }));
      names.push_back(c.label());
      graphs.push_back(others.back().get());
    }
    std::vector<Stats> all = replay_in_turn(graphs, std::vector<int>(graphs.size(), sets.count()), b_.seconds);
    for (size_t i = 0; i < all.size(); ++i) r.candidates.emplace_back(names[i], all[i].median);
  }
  void copy_half(void* from, void* to, size_t bytes, size_t offset, const CudaStream& stream) const {
    auto at = [&](void* p) { return reinterpret_cast<cuda::Pointer>(static_cast<std::byte*>(p) + offset); };
    cuda::check(cuda::driver().MemcpyDtoDAsync(at(to), at(from), bytes, static_cast<cuda::Stream>(stream.get())),
                "cuMemcpyDtoDAsync");
  }

  std::unique_ptr<GpuPeer> prepare(GpuPeerLibrary& library, const Graph& g, const BufferSets& sets,
                                   const CudaStream& stream, std::string& reason) const {
    try {
      return library.prepare(g, device_, sets, stream, reason);
    } catch (const opened::Error& e) {  // the library's own answer
      reason = e.what();
      return nullptr;
    }
  }

  const CudaBench& b_;
  Device device_;
  std::vector<std::pair<std::string, std::unique_ptr<GpuPeerLibrary>>> libraries_;
};

}  // namespace

int bench_cuda(const CudaBench& b) {
  require(b.seconds > 0, "--seconds ", b.seconds, " must be positive");
  Bench bench(b);
  JsonLines lines(b.json);
  int refused = 0, measured = 0;
  for (const std::string& file : case_files(b.files, "bench/suites/cuda"))
    for (const Case& c : read_case_argument(file)) {
      if (!is_wanted(c, b.filter)) continue;
      std::optional<Row> r;
      try {
        r = bench.measure(c);
      } catch (const Error& e) {
        ++refused;
        std::cerr << "error: " << c.file << ":" << c.line << ": " << e.what() << "\n";
        continue;
      }
      ++measured;
      bench.print(*r);
      lines.add(bench.to_json(*r));
    }
  require_cases(static_cast<size_t>(measured + refused), b.filter);
  return refused ? kFailed : kOk;
}

}  // namespace tsr::cli
