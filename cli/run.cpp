// SPDX-License-Identifier: Apache-2.0
// `tessera run`: executes a graph on given or random data and sums up the outputs.
#include <cmath>
#include <complex>
#include <iostream>
#include <nlohmann/json.hpp>

#include "arrays.hpp"
#include "command.hpp"
#include "graph/text.hpp"
#include "harness/compare.hpp"
#include "harness/device_buffers.hpp"
#include "harness/measure.hpp"
#include "planner/explain.hpp"
#include "runtime/devices.hpp"

namespace tsr::cli {
namespace {

struct Arguments {
  PlanArguments plan;
  std::vector<std::string> in, out, data;  // NAME=VALUE
  uint64_t seed = 0;
  bool check = false, json = false;
};

struct Named {
  TensorId tensor;
  std::string value;
};

// Splits NAME=VALUE arguments and finds the tensors among `candidates`, each at most once.
std::vector<Named> resolve(const std::vector<std::string>& arguments, const Graph& g,
                           const std::vector<TensorId>& candidates, const char* what) {
  std::vector<std::string> names;
  for (TensorId t : candidates) names.push_back(g.tensor(t).name);
  std::vector<Named> out;
  for (const std::string& a : arguments) {
    size_t eq = a.find('=');
    require(eq != std::string::npos && eq > 0 && eq + 1 < a.size(), "'", a, "' must read NAME=VALUE");
    std::string name = a.substr(0, eq);
    TensorId t = g.find(name);
    bool found = t != kNone && std::find(candidates.begin(), candidates.end(), t) != candidates.end();
    require(found, "the graph has no ", what, " named '", name, "'; ", what,
            "s: ", names.empty() ? "none" : any_of_text(names));
    for (const Named& other : out) require(other.tensor != t, what, " '", name, "' is given twice");
    out.push_back({t, a.substr(eq + 1)});
  }
  return out;
}

// Offsets of ragged tensors decide how much memory those take, so their values must be known before any is allocated:
// from the file, or sequences of full length.
void settle_offsets(const Graph& g, const std::vector<Named>& files, DataSpec& spec) {
  for (TensorId id = 0; id < g.tensor_count(); ++id) {
    const Tensor& t = g.tensor(id);
    if (t.ragged == kNone || g.producer(t.ragged) != kNone) continue;
    const Tensor& o = g.tensor(t.ragged);
    std::string values;
    auto append = [&](int64_t v) { values += (values.empty() ? "values:" : ",") + std::to_string(v); };
    for (const Named& f : files) {
      if (f.tensor != t.ragged) continue;
      std::vector<std::byte> memory(static_cast<size_t>(o.bytes()));
      read_array(f.value, o, memory.data());
      for (int64_t i = 0; i < o.numel(); ++i) append(load<int64_t>(o.dtype, memory.data(), i));
    }
    if (values.empty() && !spec.by_name.count(o.name))
      for (int64_t i = 0; i < o.numel(); ++i) append(i * t.strides[0] / t.ragged_multiplier);
    if (!values.empty()) spec.by_name[o.name] = values;
  }
}

struct Summary {
  std::vector<int64_t> first;  // offsets of the elements to show
  double min = INFINITY, max = -INFINITY, mean = 0;
  int64_t nans = 0, count = 0;
};

std::string element(const Tensor& t, const void* data, int64_t offset) {
  if (is_complex(t.dtype)) {
    auto v = load<std::complex<double>>(t.dtype, data, offset);
    return cat(print_number(v.real()), std::signbit(v.imag()) ? "-" : "+", print_number(std::fabs(v.imag())), "i");
  }
  if (!is_real(t.dtype)) return std::to_string(load<int64_t>(t.dtype, data, offset));
  double v = load<double>(t.dtype, data, offset);
  return print_number(t.dtype == DType::f64 ? v : std::stod(cat(v)));  // six digits are enough to read
}

// Statistics over the logical elements; over the memory of a ragged tensor. Complex numbers count by magnitude.
Summary summarise(const Tensor& t, const void* data, int64_t elements) {
  Summary s;
  constexpr size_t kShown = 6;
  double sum = 0;
  auto visit = [&](int64_t offset) {
    double v = is_complex(t.dtype) ? std::abs(load<std::complex<double>>(t.dtype, data, offset))
                                   : load<double>(t.dtype, data, offset);
    if (s.first.size() < kShown) s.first.push_back(offset);
    ++s.count;
    if (std::isnan(v)) {
      ++s.nans;
      return;
    }
    s.min = std::min(s.min, v);
    s.max = std::max(s.max, v);
    sum += v;
  };
  if (t.ragged != kNone) {
    for (int64_t i = 0; i < elements; ++i) visit(i);
  } else {
    Dims index = Dims::filled(t.rank(), 0);
    for (int64_t i = 0, n = t.numel(); i < n; ++i, next_index(index, t.dims)) visit(t.offset(index));
  }
  s.mean = sum / static_cast<double>(s.count - s.nans);
  if (s.count == s.nans) s.min = s.max = s.mean = NAN;
  return s;
}

std::string short_number(double v) { return cat(v); }

// A number, or two for a complex one.
Json element_json(const Tensor& t, const void* data, int64_t offset) {
  if (is_complex(t.dtype)) {
    auto v = load<std::complex<double>>(t.dtype, data, offset);
    return Json::array({number(v.real()), number(v.imag())});
  }
  if (!is_real(t.dtype)) return load<int64_t>(t.dtype, data, offset);
  return number(load<double>(t.dtype, data, offset));
}

Json summary_json(const Tensor& t, const Summary& s, const void* data) {
  Json first = Json::array();
  for (int64_t offset : s.first) first.push_back(element_json(t, data, offset));
  return {{"name", t.name}, {"type", name(t.dtype)}, {"sizes", t.dims.to_vector()}, {"strides", t.strides.to_vector()},
          {"first", first}, {"min", number(s.min)},  {"max", number(s.max)},        {"mean", number(s.mean)},
          {"nans", s.nans}};
}

std::string summary_text(const Tensor& t, const Summary& s, const void* data) {
  std::string line = paint(Colour::bold, t.name) + " " + print_type(t) + ":";
  for (int64_t offset : s.first) line += " " + element(t, data, offset);
  if (s.count > static_cast<int64_t>(s.first.size())) line += " ...";
  if (s.count == 0) return line + " empty";
  return cat(line, "\n  min ", short_number(s.min), ", max ", short_number(s.max), ", mean ", short_number(s.mean),
             ", NaN ", s.nans);
}

int run(const Arguments& a) {
  std::shared_ptr<const Graph> g = read_graph(a.plan.graph);
  Device device = a.plan.pick_device();
  std::vector<Named> in = resolve(a.in, *g, g->inputs(), "input"), out = resolve(a.out, *g, g->outputs(), "output");
  DataSpec spec;
  spec.seed = a.seed;
  for (const Named& d : resolve(a.data, *g, g->inputs(), "input")) {
    check_data_kind(d.value);
    for (const Named& f : in)
      require(f.tensor != d.tensor, "input '", g->tensor(d.tensor).name, "' is given by --in and by --data");
    spec.by_name[g->tensor(d.tensor).name] = d.value;
  }
  settle_offsets(*g, in, spec);

  double start = now();
  auto plan = make_plan(g, device, a.plan.options());
  double planned = now() - start;
  GraphBuffers buffers(*g, spec);
  for (const Named& f : in) read_array(f.value, g->tensor(f.tensor), buffers.buffer(f.tensor).data());
  require_present(device);
  DeviceBuffers there(*g, buffers, device);
  auto workspace = device_memory(device, plan->workspace_bytes());
  there.upload();
  start = now();
  plan->execute(there.bindings(), workspace.get(), plan->workspace_bytes());
  synchronize(device);
  double ran = now() - start;
  there.download();
  for (const Named& f : out) write_array(f.value, g->tensor(f.tensor), buffers.buffer(f.tensor).data());
  std::string difference = a.check ? compare(*g, Oracle(*g, buffers), buffers) : "";

  if (a.json) {
    Json j = {{"outputs", Json::array()}, {"steps", Json::array()}, {"plan_ms", planned * 1e3}, {"run_ms", ran * 1e3}};
    for (TensorId t : g->outputs()) {
      const void* data = buffers.buffer(t).data();
      j["outputs"].push_back(summary_json(g->tensor(t), summarise(g->tensor(t), data, buffers.elements(t)), data));
    }
    for (const PlannedStep& s : plan->steps())
      j["steps"].push_back(
          {{"engine", s.engine->info().name}, {"operations", s.region.nodes.size()}, {"config", to_string(s.config)}});
    if (a.check) j["check"] = difference.empty() ? "ok" : difference;
    print_json(j);
  } else {
    for (TensorId t : g->outputs()) {
      const void* data = buffers.buffer(t).data();
      std::cout << summary_text(g->tensor(t), summarise(g->tensor(t), data, buffers.elements(t)), data) << "\n";
    }
    std::cout << plan->steps().size() << (plan->steps().size() == 1 ? " step:" : " steps:");
    for (const PlannedStep& s : plan->steps())
      std::cout << " " << s.engine->info().name << "(" << s.region.nodes.size() << ")";
    std::cout << "; planned in " << human_seconds(planned) << ", ran in " << human_seconds(ran) << "\n";
    if (a.check && difference.empty())
      std::cout << paint(Colour::green, "check: all outputs agree with the oracle") << "\n";
    if (!difference.empty()) std::cout << paint(Colour::red, "check failed: ") << difference << "\n";
  }
  return difference.empty() ? kOk : kFailed;
}

}  // namespace

void add_run(Command& app) {
  auto a = std::make_shared<Arguments>();
  Command c = app.add_command("run", "Run a graph on given or random inputs");
  a->plan.add_to(c);
  c.add_option("--in", a->in, "NAME=FILE.npy: read an input (repeatable)").one_value();
  c.add_option("--out", a->out, "NAME=FILE.npy: write an output (repeatable)").one_value();
  c.add_option(
       "--data", a->data,
       "NAME=KIND: random data of an input: normal, positive, integers, extreme, special, zeros, ones, below:N, "
       "places:N, range:LO,HI or values:A,B,... (repeatable)")
      .one_value();
  c.add_option("--seed", a->seed, "seed of random inputs").show_default();
  c.add_flag("--check", a->check, "compare the outputs with the oracle; exit code 1 when they differ");
  c.add_flag("--json", a->json, "print the result as JSON");
  c.footer(
      "Examples: tessera run 'x = input f32[4,64]; y = gelu (rms_norm x axes=1); output y' --check\n"
      "          echo 'x = input f32[2,3]; y = relu x; output y' | tessera run - --in x=x.npy --out y=y.npy");
  c.runs([a] { return run(*a); });
}

}  // namespace tsr::cli
