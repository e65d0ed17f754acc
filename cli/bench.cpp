// SPDX-License-Identifier: Apache-2.0
// `tessera bench`: plans against the same graph unfused, a copy of as many bytes, oneDNN called directly and PyTorch,
// interleaved so that drifting clocks hurt all alike; then the costs of the library itself.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/thread_pool.hpp"
#include "bench_cuda.hpp"
#include "command.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "harness/cases.hpp"
#include "harness/measure.hpp"
#include "harness/provenance.hpp"
#include "harness/runnable.hpp"
#include "peers.hpp"
#include "planner/cost.hpp"
#include "planner/explain.hpp"

namespace tsr::cli {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string filter, json, python = "python3", device = "cpu";
  std::vector<std::string> peers;
  double seconds = 1;
  bool candidates = false;
};

// Reads and writes `bytes` in all, on all threads.
class Copy {
 public:
  explicit Copy(double bytes) : from_(static_cast<size_t>(bytes / 2) + 1), to_(from_.size()) {}
  void operator()() {
    parallel_for(static_cast<int64_t>(from_.size()), 1 << 20, thread_count(), [this](int64_t first, int64_t last, int) {
      std::memcpy(to_.data() + first, from_.data() + first, static_cast<size_t>(last - first));
    });
  }

 private:
  std::vector<char> from_, to_;
};

struct Row {
  std::string suite, text, op, dtype, engine;
  Stats plan;
  std::vector<std::pair<std::string, double>> peers;                    // seconds
  std::string compared;                                                 // the peer that `ratio` is about
  double bytes = 0, limit = 0, planning = 0, lookup = 0, overhead = 0;  // overhead 0: below the noise
  size_t workspace = 0;

  std::optional<double> ratio() const {  // above 1: the plan is faster than the peer
    for (const auto& [name, seconds] : peers)
      if (name == compared) return seconds / plan.median;
    return std::nullopt;
  }
};

std::string joined(const std::vector<std::string>& parts) {
  std::string s;
  for (const std::string& p : parts) s += (s.empty() ? "" : "+") + p;
  return s;
}

// Seconds that the machine needs at least for the whole graph, every input read and every output written once.
double graph_limit(const Graph& g, const Device& d) {
  GraphIndex index(g);
  return region_limits(make_region(g, index, index.live_nodes()), d).seconds();
}

void describe_graph(const Graph& g, Row& r) {
  r.text = print_graph(g, {.one_line = true});
  std::vector<std::string> ops;
  for (NodeId n = 0; n < g.node_count(); ++n) ops.push_back(spelling(g.node(n)));
  r.op = joined(ops);
  if (!g.inputs().empty()) r.dtype = name(g.tensor(g.inputs()[0]).dtype);
}

void describe_plan(const Plan& plan, Row& r) {
  std::vector<std::string> engines;
  for (const PlannedStep& s : plan.steps()) {
    std::string e(s.engine->info().name);
    if (std::find(engines.begin(), engines.end(), e) == engines.end()) engines.push_back(e);
  }
  r.engine = joined(engines);
  r.bytes = plan.bytes_moved();
  r.workspace = plan.workspace_bytes();
  r.limit = graph_limit(plan.graph(), plan.device());
}

Row measure(const Case& c, double seconds, TorchPeer& torch) {
  Row r;
  r.suite = std::filesystem::path(c.file).stem().string();
  r.compared = c.peer.empty() ? "unfused" : c.peer;
  auto g = std::make_shared<const Graph>(parse_graph(c.text));
  describe_graph(*g, r);
  GraphBuffers buffers(*g, c.data);
  Device d = cpu_device();
  Runnable fused(make_plan(g, d), buffers);
  describe_plan(fused.plan(), r);
  // One operation alone has no other way to run.
  std::optional<Runnable> unfused;
  if (g->node_count() > 1) unfused.emplace(make_plan(g, d, {.fuse = false, .recognise = false}), buffers);
  Copy copy(r.bytes);
  Work onednn = onednn_peer(fused.plan().graph());
  std::vector<std::string> names = {"plan", "steps", "copy"};
  std::vector<Work> works = {[&] { fused(); }, [&] { fused.steps_alone(); }, [&] { copy(); }};
  if (unfused) names.push_back("unfused"), works.emplace_back([&] { (*unfused)(); });
  if (onednn) names.push_back("onednn"), works.push_back(onednn);
  std::vector<Stats> all = interleave(works, seconds);
  r.plan = all[0];
  for (size_t i = 2; i < all.size(); ++i) r.peers.emplace_back(names[i], all[i].median);
  if (auto t = torch.measure(fused.plan().graph(), seconds / 2)) r.peers.emplace_back("torch", *t);
  double added = all[0].median - all[1].median;
  if (added > all[0].p90 - all[0].p10) r.overhead = added;
  (void)cached_plan(g, d);
  auto costs = interleave({[&] { (void)make_plan(g, d); }, [&] { (void)cached_plan(g, d); }}, 0.02);
  r.planning = costs[0].median, r.lookup = costs[1].median;
  return r;
}

Json row_json(const Row& r, const std::string& cpu, const std::string& revision) {
  Json peers = Json::object();
  for (const auto& [name, seconds] : r.peers) peers[name] = seconds * 1e3;
  return {{"suite", r.suite},
          {"case", r.text},
          {"op", r.op},
          {"dtype", r.dtype},
          {"engine", r.engine},
          {"ms", r.plan.median * 1e3},
          {"p10", r.plan.p10 * 1e3},
          {"p90", r.plan.p90 * 1e3},
          {"peers", peers},
          {"peer", r.compared},
          {"ratio", r.ratio() ? Json(*r.ratio()) : Json()},
          {"limit_fraction", r.limit / r.plan.median},
          {"bytes", r.bytes},
          {"gbps", r.bytes / r.plan.median * 1e-9},
          {"workspace_bytes", r.workspace},
          {"plan_ms", r.planning * 1e3},
          {"lookup_ms", r.lookup * 1e3},
          {"overhead_ms", r.overhead * 1e3},
          {"threads", thread_count()},
          {"cpu", cpu},
          {"commit", revision}};
}

void print_row(const Row& r) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f%% of the machine's limit", 100 * r.limit / r.plan.median);
  std::cout << paint(Colour::bold, r.suite + ": " + r.text) << "\n  plan     " << human_seconds(r.plan.median) << " ("
            << human_seconds(r.plan.p10) << " .. " << human_seconds(r.plan.p90) << "), " << r.engine << ", " << text
            << ", workspace " << human_bytes(static_cast<double>(r.workspace)) << "\n";
  for (const auto& [name, seconds] : r.peers) {
    std::snprintf(text, sizeof text, "  %-8s %s, %.3g times the plan", name.c_str(), human_seconds(seconds).c_str(),
                  seconds / r.plan.median);
    std::cout << text << (name == r.compared ? "  <-" : "") << "\n";
  }
  std::cout << "  planning " << human_seconds(r.planning) << ", cached look-up " << human_seconds(r.lookup)
            << ", execute adds " << (r.overhead > 0 ? human_seconds(r.overhead) : "less than the noise") << std::endl;
}

// A chain of pointwise operations, built without the text form.
std::shared_ptr<const Graph> chain(int nodes, int64_t elements) {
  auto g = std::make_shared<Graph>();
  Tensor x;
  x.name = "x";
  x.dims = Dims{elements};
  x.stored = x.dtype_given = x.dims_given = true;
  TensorId last = g->add_tensor(x);
  auto relu = find_spelling("relu");
  for (int i = 0; i < nodes; ++i) {
    Node n;
    n.op = relu->op;
    n.attrs = relu->options;
    n.in = {last};
    last = g->node(g->add_node(n)).out[0];
  }
  g->mark_output(last);
  g->finalize();
  return g;
}

struct Figure {
  std::string name;
  double seconds;
};

std::vector<Figure> figures(double seconds) {
  Device d = cpu_device();
  auto large = chain(1000, 16), tiny = chain(1, 1);
  (void)cached_plan(large, d);
  GraphBuffers buffers(*tiny, {});
  Runnable run(make_plan(tiny, d), buffers);
  // Apart from each other: planning sweeps the caches that the short calls live in.
  double planning = interleave({[&] { (void)make_plan(large, d); }}, seconds / 3)[0].median;
  double lookup = interleave({[&] { (void)cached_plan(large, d); }}, seconds / 3)[0].median;
  auto all = interleave({[&] { run(); }, [&] { run.steps_alone(); }}, seconds / 3);
  return {{"plan a graph of 1000 operations", planning},
          {"look up a cached plan", lookup},
          {"execute a graph of one element", all[0].median},
          {"of which the library's overhead", std::max(0.0, all[0].median - all[1].median)}};
}

int run(const Arguments& a) {
  if (a.device != "cpu") return bench_cuda({a.files, a.device, a.filter, a.json, a.peers, a.seconds, a.candidates});
  require(a.seconds > 0, "--seconds ", a.seconds, " must be positive");
  require(!a.candidates, "--candidates is for GPUs; `tessera tune` measures them on the CPU");
  require(a.peers.empty(), "--peer is for GPUs; oneDNN and PyTorch are measured where they are found");
  JsonLines lines(a.json);
  std::string cpu = cpu_model(), revision = commit();
  int refused = 0, measured = 0;
  TorchPeer torch(a.python);
  std::cout << "PyTorch "
            << (torch.version().empty() ? cat("is not there for '", a.python, "': no such peer") : torch.version())
            << "\n";
  for (const std::string& file : case_files(a.files, "bench/suites"))
    for (const Case& c : read_case_argument(file)) {
      if (!is_wanted(c, a.filter)) continue;
      std::optional<Row> r;
      try {
        r = measure(c, a.seconds, torch);
      } catch (const Error& e) {
        ++refused;
        std::cerr << "error: " << c.file << ":" << c.line << ": " << e.what() << "\n";
        continue;
      }
      ++measured;
      print_row(*r);
      lines.add(row_json(*r, cpu, revision));
    }
  require_cases(static_cast<size_t>(measured + refused), a.filter);
  for (const Figure& f : figures(std::min(a.seconds, 1.0))) {
    std::cout << f.name << ": " << human_seconds(f.seconds) << "\n";
    Json j = {{"suite", "library"},
              {"case", f.name},
              {"op", "none"},
              {"dtype", "f32"},
              {"engine", "none"},
              {"ms", f.seconds * 1e3},
              {"peers", Json::object()},
              {"ratio", nullptr},
              {"limit_fraction", nullptr},
              {"cpu", cpu},
              {"commit", revision}};
    lines.add(j);
  }
  return refused ? kFailed : kOk;
}

}  // namespace

void add_bench(Command& app) {
  auto a = std::make_shared<Arguments>();
  Command c = app.add_command("bench", "Measure graphs beside the unfused graph, a copy, oneDNN and PyTorch");
  c.add_option("FILES", a->files, "case files, or graphs; default: bench/suites/*.txt");
  c.add_option("--filter", a->filter, "only cases whose graph or file contains this text");
  c.add_option("--device", a->device, "cpu, cuda or cuda:NUMBER").show_default();
  c.add_option("--peer", a->peers, "on a GPU: also measure cudnn=PATH, a libcudnn.so.9, or cublaslt=PATH").one_value();
  c.add_flag("--candidates", a->candidates, "on a GPU: also measure every other way to run a graph as one step");
  c.add_option("--json", a->json, "also write one JSON object for each case, a line each, to this file");
  c.add_option("--python", a->python, "Python whose PyTorch is measured too, if it has one").show_default();
  c.add_option("--seconds", a->seconds, "time for each case").show_default();
  c.footer(
      "Examples: tessera bench 'x = input f32[1024,1024]; y = softmax x; output y' --seconds 2\n"
      "          tessera bench bench/suites/cpu.txt --filter matmul --json results.jsonl");
  c.runs([a] { return run(*a); });
}

}  // namespace tsr::cli
