// SPDX-License-Identifier: Apache-2.0
#include "harness/runner.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "graph/ragged.hpp"
#include "graph/text.hpp"
#include "harness/compare.hpp"
#include "harness/device_buffers.hpp"
#include "harness/replay.hpp"
#include "planner/decomposition.hpp"
#include "planner/overlap.hpp"
#include "runtime/devices.hpp"

namespace tsr {

std::vector<Binding> bind(const Graph& g, GraphBuffers& buffers) {
  std::vector<Binding> bindings;
  auto table = buffers.table();
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    if (table[static_cast<size_t>(t)]) bindings.push_back({g.tensor(t).uid, table[static_cast<size_t>(t)]});
  return bindings;
}

namespace {

// Every bit of its memory belongs to an element: nothing of an input shows through.
bool is_dense(const Tensor& t) { return t.span() == t.numel() && t.bytes() * 8 == t.span() * info(t.dtype).bits; }

}  // namespace

Overlays find_overlays(const Graph& g, uint64_t seed) {
  Overlays found;
  std::set<TensorId> taken;
  for (TensorId out : g.outputs()) {
    std::vector<TensorId> fit;
    const Tensor& y = g.tensor(out);
    if (!is_dense(y)) continue;
    for (TensorId in : g.inputs()) {
      const Tensor& x = g.tensor(in);
      if (!taken.contains(in) && !x.by_value && x.ragged == kNone && x.alignment >= y.alignment &&
          overlap(x, &found, y, &found) == Overlap::same)
        fit.push_back(in);
    }
    if (fit.empty()) continue;
    found.emplace_back(out, fit[seed % fit.size()]);
    taken.insert(found.back().second);
  }
  return found;
}

namespace {

bool same_outputs(const Graph& g, const GraphBuffers& a, const GraphBuffers& b) {
  for (TensorId t : g.outputs())
    if (std::memcmp(a.buffer(t).data(), b.buffer(t).data(), a.buffer(t).size()) != 0) return false;
  return true;
}

// Memory of a plan on its device: everything is poisoned, uploaded, run and brought back by run().
class Stage {
 public:
  explicit Stage(const Plan& plan, const DataSpec& data, Overlays overlays = {})
      : plan_(plan),
        buffers_(plan.source(), data),
        workspace_(plan.workspace_bytes(), 256, 1),  // of no alignment: there is nothing to spare then
        device_(plan.source(), buffers_, plan.device()),
        overlays_(std::move(overlays)) {
    if (plan.device().memory) device_workspace_.emplace(*plan.device().memory, workspace_);
  }
  const GraphBuffers& buffers() const { return buffers_; }

  // Empty, or what was written that must not be. `call` is given the launches and may capture and replay them.
  template <class Call>
  std::string run(const Call& call) {
    workspace_.poison();
    buffers_.poison_outputs();
    device_.upload();
    if (device_workspace_) device_workspace_->upload();
    call([&](void* stream) {
      plan_.execute(bindings(), device_workspace_ ? device_workspace_->data() : workspace_.data(), workspace_.size(),
                    stream);
    });
    device_.download();
    for (auto [out, in] : overlays_)
      std::memcpy(buffers_.buffer(out).data(), buffers_.buffer(in).data(), buffers_.buffer(out).size());
    if (device_workspace_) device_workspace_->download();
    if (!workspace_.intact() || (device_workspace_ && !device_workspace_->intact()))
      return "the workspace was written outside its bounds";
    if (std::string names = device_.damage(); !names.empty()) return "memory around " + names + " was overwritten";
    return "";
  }

  std::string run() {
    return run([](const auto& launches) { launches(nullptr); });
  }
  // On a stream of its own, replayed from a CUDA graph.
  std::string run_captured() {
    CudaStream stream(plan_.device());
    return run([&](const auto& launches) {
      CapturedGraph graph(stream, [&] { launches(stream.get()); });
      graph.launch();
      graph.launch();
      stream.synchronize();
    });
  }
  std::string run_on_stream() {
    CudaStream stream(plan_.device());
    return run([&](const auto& launches) {
      launches(stream.get());
      stream.synchronize();
    });
  }

 private:
  std::vector<Binding> bindings() const {
    std::vector<Binding> list = device_.bindings();
    auto of = [&](TensorId t) {
      int64_t uid = plan_.source().tensor(t).uid;
      return std::find_if(list.begin(), list.end(), [&](const Binding& b) { return b.uid == uid; });
    };
    for (auto [out, in] : overlays_) of(out)->data = of(in)->data;
    return list;
  }

  const Plan& plan_;
  GraphBuffers buffers_;
  GuardedBuffer workspace_;
  DeviceBuffers device_;
  Overlays overlays_;
  std::optional<DeviceCopy> device_workspace_;
};

// A GPU's plan must give the same under capture, and from two threads at once on streams of their own.
std::string check_streams(const Plan& plan, const DataSpec& data, const GraphBuffers& expected) {
  Stage replayed(plan, data), one(plan, data), two(plan, data);
  if (std::string damage = replayed.run_captured(); !damage.empty()) return "under capture " + damage;
  if (!same_outputs(plan.source(), expected, replayed.buffers())) return "a replayed CUDA graph gave other bits";
  std::string damages[2];
  std::thread other([&] {
    try {
      damages[1] = two.run_on_stream();
    } catch (const std::exception& e) {
      damages[1] = e.what();
    }
  });
  try {
    damages[0] = one.run_on_stream();
  } catch (const std::exception& e) {
    damages[0] = e.what();
  }
  other.join();
  for (const std::string& d : damages)
    if (!d.empty()) return "on two streams at once: " + d;
  for (const Stage* s : {&one, &two})
    if (!same_outputs(plan.source(), expected, s->buffers())) return "two streams at once gave other bits";
  return "";
}

// Outputs in the memory of inputs: the same bits.
std::string check_overlays(const Plan& plan, const DataSpec& data, const GraphBuffers& expected) {
  Overlays overlays = find_overlays(plan.source(), data.seed);
  if (overlays.empty()) return "";
  std::string pairs;
  for (auto [out, in] : overlays)
    pairs += cat(pairs.empty() ? "" : ", ", plan.source().tensor(out).name, " on ", plan.source().tensor(in).name);
  Stage stage(plan, data, overlays);
  if (std::string damage = stage.run(); !damage.empty()) return cat("in place (", pairs, "): ", damage);
  if (!same_outputs(plan.source(), expected, stage.buffers())) return cat("in place (", pairs, "): other bits");
  return "";
}

// The text form must survive a round trip exactly.
std::string check_text(const Graph& g) {
  std::string text = print_graph(g);
  for (bool one_line : {false, true}) {
    Graph again = parse_graph(print_graph(g, {.one_line = one_line}));
    if (print_graph(again) != text)
      return "the text form does not round-trip:\n" + text + "became\n" + print_graph(again);
  }
  return "";
}

// Decompositions that are meant for an operation of the graph.
std::vector<const DecompositionRule*> rules_for(const Graph& g, const Device& d) {
  std::vector<const DecompositionRule*> rules;
  for (const DecompositionRule& rule : all_decompositions()) {
    bool cpu = d.kind == DeviceKind::cpu;
    if (rule.where == (cpu ? DecompositionRule::gpu : DecompositionRule::cpu)) continue;
    bool found = false;
    for (NodeId n = 0; n < g.node_count() && !found; ++n)
      found = contains(rule.ops, g.node(n).op) && (!rule.meant || rule.meant(g, g.node(n)));
    if (found) rules.push_back(&rule);
  }
  return rules;
}

// Other candidates of an engine than its choice, at most so many, drawn by the seed: whatever steps of the plan have
// them.
std::vector<std::string> other_ways(const std::shared_ptr<const Graph>& g, const Device& d, const PlanOptions& o,
                                    const Engine& e, int64_t count, uint64_t seed) {
  if (count <= 0) return {};
  Query query(g, d, o.recognise);
  std::vector<std::string> ways;
  auto plan = make_plan(query, o);
  for (const PlannedStep& step : plan->steps()) {
    if (step.engine != &e || step.inside >= 0) continue;
    for (const Config& c : query.asked(step.region.nodes).answer(e).configs)
      if (std::string way = to_string(c); way != to_string(step.config)) ways.push_back(std::move(way));
  }
  std::sort(ways.begin(), ways.end());
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
  for (size_t i = 0; i < ways.size() && i < static_cast<size_t>(count); ++i) {
    auto left = static_cast<double>(ways.size() - i);
    std::swap(ways[i], ways[i + static_cast<size_t>(random_uniform(seed, 0, i) * left)]);
  }
  ways.resize(std::min(ways.size(), static_cast<size_t>(count)));
  return ways;
}

bool has_special(const DataSpec& data) {
  return data.all == "special" ||
         std::any_of(data.by_name.begin(), data.by_name.end(), [](const auto& i) { return i.second == "special"; });
}

}  // namespace

std::string check_plan(const std::shared_ptr<const Graph>& g, const Device& device, const PlanOptions& options,
                       const Oracle& oracle, const DataSpec& data, bool* ran, const IsMeant& is_meant) {
  auto plan = make_plan(g, device, options);
  if (is_meant && !(*ran = is_meant(*plan))) return "";
  Stage stage(*plan, data);
  if (std::string damage = stage.run(); !damage.empty()) return damage;
  const GraphBuffers& buffers = stage.buffers();
  if (std::string difference = compare(*g, oracle, buffers); !difference.empty()) return difference;
  for (TensorId t : g->inputs())
    if (std::memcmp(buffers.buffer(t).data(), oracle.wide.buffer(t).data(), buffers.buffer(t).size()) != 0)
      return "input '" + g->tensor(t).name + "' was changed";
  if (plan->deterministic()) {
    Stage again(*plan, data);
    again.run();
    if (!same_outputs(*g, buffers, again.buffers()))
      return "a second run gave other bits, though every engine of the plan is deterministic";
    if (std::string why = check_overlays(*plan, data, buffers); !why.empty()) return why;
    if (is_gpu(device) && options.engines.empty() && options.stages.empty()) return check_streams(*plan, data, buffers);
  }
  return "";
}

void run_case(const Case& c, const RunnerOptions& o, Tally& tally) {
  auto fail_case = [&](const std::string& how, const std::string& why) {
    ++tally.failed;
    if (o.on_failure) o.on_failure(cat(c.file, ":", c.line, ": ", how, ": ", why, "\n  graph:\n", c.text));
  };
  std::shared_ptr<const Graph> g;
  try {
    g = std::make_shared<Graph>(parse_graph(c.text));
    if (!c.error.empty()) return fail_case("parse", "expected to be refused with '" + c.error + "'");
  } catch (const Error& e) {
    if (c.error.empty()) return fail_case("parse", e.what());
    bool as_expected = std::string_view(e.what()).find(c.error) != std::string_view::npos;
    if (!as_expected) return fail_case("parse", cat("refused with '", e.what(), "', expected '", c.error, "'"));
    ++tally.passed;
    return;
  }
  try {
    if (std::string why = check_text(*g); !why.empty()) return fail_case("text", why);
    DataSpec data = c.data;
    Oracle oracle(*g, data);
    auto attempt = [&](const std::string& name, const PlanOptions& options, const IsMeant& is_meant) {
      bool ran = true;
      std::string why;
      try {
        why = check_plan(g, o.device, options, oracle, data, &ran, is_meant);
      } catch (const Error& e) {
        // On a GPU the last resort does not take attention over packed sequences: some graphs need several engines.
        if (options.engines.empty() || e.status() != Status::not_supported) throw;
        ++tally.skipped;
        ++tally.skip_reasons[name + " alone: neither it nor the last resort takes some operation of the graph"];
        return false;
      }
      if (!ran) return false;
      ++tally.by_engine[name];
      for (NodeId n = 0; n < g->node_count(); ++n) ++tally.by_op[std::string(g->node(n).op->name)];
      if (why.empty())
        ++tally.passed;
      else
        fail_case(options.config.empty() ? name : cat(name, " (", options.config, ")"), why);
      return true;
    };
    for (const Engine* e : all_engines()) {
      std::string name(e->info().name);
      if (!o.engine.empty() && o.engine != name) continue;
      if (e->info().device != o.device.kind) continue;
      std::vector<std::string> engines = {name};
      // Packed sequences come and go through copies, which the last resort of a GPU does not make.
      if (o.device.kind == DeviceKind::cuda && has_ragged(*g)) engines.emplace_back("move_cuda");
      PlanOptions options{.engines = engines, .tuned = false};
      auto takes_part = [e](const Plan& p) {
        return std::any_of(p.steps().begin(), p.steps().end(), [&](const PlannedStep& s) { return s.engine == e; });
      };
      if (!attempt(name, options, takes_part)) continue;
      for (const std::string& way : other_ways(g, o.device, options, *e, o.ways - 1, data.seed)) {
        options.config = way;
        attempt(name, options, takes_part);
      }
    }
    if (!o.engine.empty()) return;
    attempt("plan", {.tuned = false}, nullptr);
    for (const DecompositionRule* rule : rules_for(*g, o.device)) {
      std::string name = cat("stages of ", rule->name);
      if (rule->by_name && has_special(data)) {
        ++tally.skipped;
        ++tally.skip_reasons[name + ": what is not finite spreads further than the definition says"];
        continue;
      }
      attempt(name, {.stages = std::string(rule->name), .tuned = false}, [rule](const Plan& p) {
        return std::any_of(p.stages().begin(), p.stages().end(),
                           [&](const PlannedStages& s) { return s.rule == rule; });
      });
    }
  } catch (const std::exception& e) {
    fail_case("run", e.what());
  }
}

}  // namespace tsr
