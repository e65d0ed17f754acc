// SPDX-License-Identifier: Apache-2.0
// `tessera bench`: plans against the same graph unfused and against a copy of as many bytes, interleaved so that
// drifting clocks hurt all alike; then the costs of the library itself.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/thread_pool.hpp"
#include "command.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "harness/cases.hpp"
#include "harness/measure.hpp"
#include "planner/explain.hpp"

namespace tsr::cli {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string filter, json;
  double seconds = 1;
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
  Stats plan, unfused, copy;
  double bytes = 0, planning = 0, lookup = 0, overhead = 0;  // overhead 0: below the noise
};

std::string joined(const std::vector<std::string>& parts) {
  std::string s;
  for (const std::string& p : parts) s += (s.empty() ? "" : "+") + p;
  return s;
}

Row measure(const Case& c, double seconds) {
  Row r;
  r.suite = std::filesystem::path(c.file).stem().string();
  auto g = std::make_shared<const Graph>(parse_graph(c.text));
  r.text = print_graph(*g, {.one_line = true});
  std::vector<std::string> ops, engines;
  for (NodeId n = 0; n < g->node_count(); ++n) ops.push_back(spelling(g->node(n)));
  r.op = joined(ops);
  if (!g->inputs().empty()) r.dtype = name(g->tensor(g->inputs()[0]).dtype);
  GraphBuffers buffers(*g, c.data);
  Runnable fused(make_plan(g, cpu_device()), buffers);
  Runnable unfused(make_plan(g, cpu_device(), {.fuse = false, .recognise = false}), buffers);
  for (const PlannedStep& s : fused.plan().steps()) {
    std::string e(s.engine->info().name);
    if (std::find(engines.begin(), engines.end(), e) == engines.end()) engines.push_back(e);
  }
  r.engine = joined(engines);
  r.bytes = fused.plan().bytes_moved();
  Copy copy(r.bytes);
  auto all = interleave({[&] { fused(); }, [&] { unfused(); }, [&] { copy(); }, [&] { fused.steps_alone(); }}, seconds);
  r.plan = all[0], r.unfused = all[1], r.copy = all[2];
  double added = all[0].median - all[3].median;
  if (added > all[0].p90 - all[0].p10) r.overhead = added;
  Device d = cpu_device();
  (void)cached_plan(g, d);
  auto costs = interleave({[&] { (void)make_plan(g, d); }, [&] { (void)cached_plan(g, d); }}, 0.02);
  r.planning = costs[0].median, r.lookup = costs[1].median;
  return r;
}

std::string commit() {
  std::string text;
  if (std::FILE* p = popen("git -C '" TESSERA_SOURCE_DIR "' rev-parse --short HEAD 2>/dev/null", "r")) {
    char buffer[64];
    if (std::fgets(buffer, sizeof buffer, p)) text = buffer;
    pclose(p);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

Json row_json(const Row& r, const std::string& cpu, const std::string& revision) {
  return {{"suite", r.suite},
          {"case", r.text},
          {"op", r.op},
          {"dtype", r.dtype},
          {"engine", r.engine},
          {"ms", r.plan.median * 1e3},
          {"p10", r.plan.p10 * 1e3},
          {"p90", r.plan.p90 * 1e3},
          {"peers", {{"unfused", r.unfused.median * 1e3}, {"copy", r.copy.median * 1e3}}},
          {"ratio", r.unfused.median / r.plan.median},  // above 1: the plan is faster than the unfused one
          {"bytes", r.bytes},
          {"gbps", r.bytes / r.plan.median * 1e-9},
          {"plan_ms", r.planning * 1e3},
          {"lookup_ms", r.lookup * 1e3},
          {"overhead_ms", r.overhead * 1e3},
          {"threads", thread_count()},
          {"cpu", cpu},
          {"commit", revision}};
}

void print_row(const Row& r) {
  auto spread = [](const Stats& s) {
    return cat(human_seconds(s.median), " (", human_seconds(s.p10), " .. ", human_seconds(s.p90), ")");
  };
  auto times = [&](const Stats& s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", s.median / r.plan.median);
    return std::string(text);
  };
  std::cout << paint(Colour::bold, r.suite + ": " + r.text) << "\n  plan     " << spread(r.plan) << ", "
            << human_bytes(r.bytes) << ", " << human_bytes(r.bytes / r.plan.median) << "/s, " << r.engine
            << "\n  unfused  " << spread(r.unfused) << ", " << times(r.unfused) << " times the plan\n  copy     "
            << spread(r.copy) << ", " << times(r.copy) << " times the plan\n  planning " << human_seconds(r.planning)
            << ", cached look-up " << human_seconds(r.lookup) << ", execute adds "
            << (r.overhead > 0 ? human_seconds(r.overhead) : "less than the noise") << "\n";
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
  require(a.seconds > 0, "--seconds ", a.seconds, " must be positive");
  std::ofstream out;
  if (!a.json.empty()) {
    out.open(a.json);
    require(out.good(), "cannot write '", a.json, "'");
  }
  std::string cpu = cpu_model(), revision = commit();
  int refused = 0, measured = 0;
  for (const std::string& file : case_files(a.files, "bench/suites"))
    for (const Case& c : read_cases(file)) {
      if (c.text.find(a.filter) == std::string::npos && c.file.find(a.filter) == std::string::npos) continue;
      try {
        Row r = measure(c, a.seconds);
        print_row(r);
        ++measured;
        if (out.is_open()) out << row_json(r, cpu, revision).dump() << std::endl;
      } catch (const Error& e) {
        ++refused;
        std::cerr << "error: " << c.file << ":" << c.line << ": " << e.what() << "\n";
      }
    }
  require(measured + refused > 0, "no case matches the filter '", a.filter, "'");
  for (const Figure& f : figures(std::min(a.seconds, 1.0))) {
    std::cout << f.name << ": " << human_seconds(f.seconds) << "\n";
    Json j = {
        {"suite", "library"},    {"case", f.name},          {"op", "none"},     {"dtype", "f32"}, {"engine", "none"},
        {"ms", f.seconds * 1e3}, {"peers", Json::object()}, {"ratio", nullptr}, {"cpu", cpu},     {"commit", revision}};
    if (out.is_open()) out << j.dump() << std::endl;
  }
  return refused ? kFailed : kOk;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto a = std::make_shared<Arguments>();
  CLI::App* c = app.add_subcommand("bench", "Measure graphs: fused, unfused, and a copy of as many bytes");
  c->add_option("FILES", a->files, "case files; default: bench/suites/*.txt");
  c->add_option("--filter", a->filter, "only cases whose graph or file contains this text");
  c->add_option("--json", a->json, "also write one JSON object for each case, a line each, to this file");
  c->add_option("--seconds", a->seconds, "time for each case")->capture_default_str();
  c->callback([a, &action] { action = [a] { return run(*a); }; });
}

}  // namespace tsr::cli
