// SPDX-License-Identifier: Apache-2.0
#include "harness/tune.hpp"

#include <cmath>
#include <filesystem>
#include <future>

#include "base/cache_folder.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "harness/candidates.hpp"
#include "harness/compare.hpp"
#include "harness/replay.hpp"
#include "harness/runnable.hpp"
#include "planner/explain.hpp"
#include "planner/tuning.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

// Beyond this many operations the oracle, which is written to be read, would take minutes: there the candidates must
// agree with each other.
constexpr double kOracleFlops = 2e9;

// A candidate with memory of its own.
struct Attempt : Candidate {
  std::unique_ptr<GraphBuffers> buffers;
  std::unique_ptr<Runnable> run;
  std::string wrong;  // why it is left out
};

// How two results differ by more than rounding in another order may change, or empty.
std::string disagreement(const Graph& g, const GraphBuffers& a, const GraphBuffers& b) {
  for (TensorId t : g.outputs()) {
    const Tensor& x = g.tensor(t);
    if (!is_real(x.dtype)) continue;
    double largest = 0, terms = 1, difference = 0;
    for (NodeId n = 0; n < g.node_count(); ++n)
      if (g.node(n).op->terms) terms = std::max(terms, g.node(n).op->terms(g, g.node(n)));
    for (int64_t i = 0; i < x.span(); ++i) {  // gaps between strides hold the same poison in both
      auto va = load<double>(x.dtype, a.buffer(t).data(), i), vb = load<double>(x.dtype, b.buffer(t).data(), i);
      if (std::isnan(va) != std::isnan(vb)) return cat("'", x.name, "' is NaN in one of two engines");
      largest = std::max(largest, std::abs(va));
      difference = std::max(difference, std::abs(va - vb));
    }
    double allowed = (64 * std::sqrt(terms) * 0x1p-24 + 2 * epsilon(x.dtype)) * largest;
    if (!(difference <= allowed))
      return cat("'", x.name, "' differs by ", difference, " from the first candidate, rounding allows ", allowed);
  }
  return "";
}

void check_values(const std::shared_ptr<const Graph>& g, std::vector<Attempt>& list, double flops) {
  std::unique_ptr<Oracle> oracle;
  if (flops <= kOracleFlops) oracle = std::make_unique<Oracle>(*g, *list[0].buffers);
  for (Attempt& c : list) {
    (*c.run)();
    c.run->download();
    c.wrong = oracle ? compare(*g, *oracle, *c.buffers) : disagreement(*g, *list[0].buffers, *c.buffers);
  }
}

// The fastest candidate, or nullptr when there is nothing to choose from.
Attempt* tune_step(const PlannedStep& step, const Device& d, const PlanOptions& o, double seconds,
                   std::vector<Attempt>& list, const TuneReport& say) {
  auto g = std::make_shared<const Graph>(region_graph(step.region));
  DataSpec data;
  // Large recurrent networks of large weights are chaotic: no two roundings agree.
  if (region_flops(step.region) > kOracleFlops) data.all = "range:-0.1,0.1";
  Query query(g, d, false);
  for (Candidate& c : candidates(query, o)) list.push_back({std::move(c), nullptr, nullptr, ""});
  // Kernels are compiled side by side.
  std::vector<std::future<std::shared_ptr<const Plan>>> plans;
  for (Attempt& c : list)
    plans.push_back(std::async(std::launch::async, [&] { return plan_as_one(query, *c.engine, c.config); }));
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].buffers =
        i == 0 ? std::make_unique<GraphBuffers>(*g, data) : std::make_unique<GraphBuffers>(*list[0].buffers);
    list[i].run = std::make_unique<Runnable>(plans[i].get(), *list[i].buffers);
  }
  check_values(g, list, region_flops(step.region));
  std::vector<StreamWork> works;
  for (Attempt& c : list)
    if (c.wrong.empty()) works.emplace_back([&c](void* stream) { (*c.run)(stream); });
  std::vector<Stats> times = time_in_turn(d, works, seconds);
  Attempt* best = nullptr;
  size_t next = 0;
  for (Attempt& c : list) {
    if (!c.wrong.empty()) {
      say(TuneLine::wrong, cat("  wrong values, left out: ", c.label(), ": ", c.wrong));
      continue;
    }
    double modelled = c.config.seconds;
    c.config.seconds = times[next++].median;
    say(TuneLine::plain,
        cat("  ", c.label(), ": ", human_seconds(c.config.seconds), " (modelled ", human_seconds(modelled), ")"));
    if (!best || c.config.seconds < best->config.seconds) best = &c;
  }
  return best;
}

Tuning existing(const std::string& path) {
  std::error_code unknown;
  std::filesystem::file_status there = std::filesystem::status(path, unknown);
  require(!std::filesystem::exists(there) || std::filesystem::is_regular_file(there), "'", path, "' is no file");
  auto text = read_file(path);
  if (!text) return {};
  try {
    return Tuning::parse(*text);
  } catch (const Error& e) {
    fail(Status::bad_parameter, "'", path, "' exists and cannot be added to: ", e.what(),
         "; remove it, or name another file");
  }
}

}  // namespace

void tune(const std::shared_ptr<const Graph>& g, const Device& d, const TuneRequest& r, const TuneReport& say) {
  require(r.seconds > 0, "--seconds ", r.seconds, " must be positive");
  std::string path = r.path.empty() ? tuning_path() : r.path;
  require(!path.empty(), "there is no cache folder for the tuning file; name a file");
  Tuning tuning = existing(path);
  require_present(d);
  require(d.kind == DeviceKind::cpu || is_gpu(d), "device ", d.name,
          ": the time of emulated kernels says nothing about a GPU; tune on cpu or cuda");
  require(write_file_atomically(path, tuning.save()), "cannot write '", path, "'");  // before the time is spent
  std::string machine = tuning_machine(d);
  auto plan = make_plan(g, d, r.options);
  int changed = 0;
  for (size_t i = 0; i < plan->steps().size(); ++i) {
    const PlannedStep& step = plan->steps()[i];
    say(TuneLine::title, cat("step ", i + 1, " of ", plan->steps().size(), ": ",
                             print_node(*step.region.graph, step.region.graph->node(step.region.nodes.front())),
                             step.region.nodes.size() > 1 ? cat(" and ", step.region.nodes.size() - 1, " more") : ""));
    std::vector<Attempt> list;
    const Attempt* best = tune_step(step, d, r.options, r.seconds, list, say);
    if (!best) continue;
    changed += best->engine != step.engine || to_string(best->config) != to_string(step.config);
    tuning.set(machine, tuning_key(step.region), {std::string(best->engine->info().name), best->config});
  }
  require(write_file_atomically(path, tuning.save()), "cannot write '", path, "'");
  reload_tuning();
  say(TuneLine::plain,
      cat(changed, " of ", plan->steps().size(), " choices changed; wrote ", path, " (", tuning.size(machine),
          " records of ", d.kind == DeviceKind::cpu ? "this machine" : d.name, ", ", tuning.size(), " in all)"));
}

}  // namespace tsr
