// SPDX-License-Identifier: Apache-2.0
// Plan and Bound for Python: arrays in, arrays out.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "api/state.hpp"
#include "arrays.hpp"
#include "formats.hpp"
#include "graph/text.hpp"
#include "harness/tune.hpp"
#include "module.hpp"
#include "planner/explain.hpp"
#include "runner.hpp"

namespace tessera::python {
namespace {

using tsr::fail;
using tsr::require;

class PlanObject {
 public:
  struct Place {
    const tsr::Tensor* tensor;
    bool produced;
  };

  explicit PlanObject(std::shared_ptr<const tsr::Plan> plan, std::string device)
      : runner_(std::make_unique<Runner>(std::move(plan))), device_(std::move(device)) {
    const tsr::Graph& g = runner_->plan().source();
    for (tsr::TensorId t : g.inputs()) places_.push_back({&g.tensor(t), false});
    inputs_ = places_.size();
    for (tsr::TensorId t : g.outputs()) places_.push_back({&g.tensor(t), true});
    makers_.resize(places_.size() - inputs_);
  }

  const tsr::Plan& plan() const { return runner_->plan(); }
  const std::string& device() const { return device_; }
  const std::vector<Place>& places() const { return places_; }
  size_t inputs() const { return inputs_; }

  size_t find(std::string_view name) const {
    for (size_t i = 0; i < places_.size(); ++i)
      if (places_[i].tensor->name == name) return i;
    std::vector<std::string> names;
    for (const Place& p : places_) names.push_back(p.tensor->name);
    std::string near = tsr::nearest(name, names);
    fail(Status::bad_parameter, "the plan has no input or output '", name, "', but ", tsr::any_of_text(names),
         near.empty() ? "" : "; did you mean '" + near + "'?");
  }

  // A new array for an output, by the library of the first input. The GIL is held.
  nb::object allocate_output(size_t i, std::span<const nb::object> objects) const {
    nb::object& maker = makers_[i - inputs_];
    if (!maker.is_valid()) {
      const tsr::Tensor& t = *places_[i].tensor;
      nb::list types;
      for (size_t k = 0; k < inputs_; ++k) types.append(tsr::name(places_[k].tensor->dtype));
      maker = nb::module_::import_("tessera._outputs")
                  .attr("Output")(t.name, tsr::name(t.dtype), t.dims.to_vector(), t.strides.to_vector(), t.span(),
                                  t.bytes(), types);
    }
    nb::list inputs;
    for (size_t k = 0; k < inputs_; ++k) inputs.append(objects[k]);
    return maker(*inputs);
  }

  // Launches; the GIL is not held.
  void execute(std::span<const tsr::Binding> bindings, void* stream) const { runner_->execute(bindings, stream); }

 private:
  std::unique_ptr<Runner> runner_;
  std::string device_;
  std::vector<Place> places_;  // inputs, then outputs
  size_t inputs_ = 0;
  mutable std::vector<nb::object> makers_;  // of arrays for outputs, when the first was asked for
};

// The value of a scalar, where the plan reads it.
struct alignas(16) Value {
  std::byte bytes[16];
};

Value to_value(nb::handle number, const tsr::Tensor& t) {
  Value v{};
  int64_t whole = 0;
  double real = 0;
  if (tsr::is_integer(t.dtype) && nb::try_cast(number, whole)) {
    tsr::store(t.dtype, v.bytes, 0, whole);
    require(tsr::load<int64_t>(t.dtype, v.bytes, 0) == whole, "scalar ", tsr::describe(t), " was given ", whole,
            ", which is no number of its type");
  } else if (!tsr::is_integer(t.dtype) && nb::try_cast(number, real))
    tsr::store(t.dtype, v.bytes, 0, real);
  else
    fail(Status::bad_parameter, "scalar ", tsr::describe(t), " was given ", nb::cast<std::string>(nb::repr(number)),
         "; it takes a ", tsr::is_integer(t.dtype) ? "whole number" : "number");
  return v;
}

// Arrays for all inputs and outputs of a plan, checked: what one execution takes.
class Arguments {
 public:
  Arguments(const PlanObject& plan, std::vector<nb::object> objects, Stream stream)
      : objects_(std::move(objects)), stream_(stream) {
    const std::vector<PlanObject::Place>& places = plan.places();
    tsr::require_present(plan.plan().device());
    arrays_.reserve(places.size());
    values_.resize(places.size());
    for (size_t i = 0; i < plan.inputs(); ++i) {
      if (!objects_[i].is_valid())
        fail(Status::bad_parameter, "input ", tsr::describe(*places[i].tensor), " was not given");
      bind(i, places[i], plan.plan().device());
    }
    for (size_t i = plan.inputs(); i < places.size(); ++i) {
      if (!objects_[i].is_valid()) objects_[i] = plan.allocate_output(i, objects_);
      bind(i, places[i], plan.plan().device());
    }
  }

  std::span<const tsr::Binding> bindings() const { return bindings_; }
  void* stream() const { return stream_.handle; }
  const std::vector<nb::object>& objects() const { return objects_; }

 private:
  void bind(size_t i, const PlanObject::Place& p, const tsr::Device& device) {
    nb::handle object = objects_[i];
    if (p.tensor->by_value && (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()))) {
      values_[i] = to_value(object, *p.tensor);
      bindings_.push_back({p.tensor->uid, values_[i].bytes});
      return;
    }
    try {
      arrays_.emplace_back(object, stream_);
    } catch (const Error& e) {
      fail(e.status(), p.produced ? "output " : "input ", tsr::describe(*p.tensor), ": ", e.what());
    } catch (nb::python_error& e) {  // the library refuses to lend its memory
      fail(Status::bad_parameter, p.produced ? "output " : "input ", tsr::describe(*p.tensor), ": ", e.what());
    } catch (const std::bad_cast&) {
      fail(Status::bad_parameter, p.produced ? "output " : "input ", tsr::describe(*p.tensor),
           " was given an object that describes its memory with values of wrong types");
    }
    check(arrays_.back(), *p.tensor, p.produced, device);
    bindings_.push_back({p.tensor->uid, arrays_.back().data});
  }

  std::vector<nb::object> objects_;
  std::vector<Array> arrays_;
  std::vector<Value> values_;
  std::vector<tsr::Binding> bindings_;
  Stream stream_;
};

std::vector<nb::object> by_place(const PlanObject& p, nb::args args, nb::dict named) {
  std::vector<nb::object> objects(p.places().size());
  require(args.size() <= p.inputs(), "the plan has ", p.inputs(), " inputs, ", args.size(),
          " arrays were given by position; outputs are given by name");
  for (size_t i = 0; i < args.size(); ++i) objects[i] = args[i];
  for (auto [key, value] : named) {
    auto name = nb::cast<std::string>(key);
    size_t i = p.find(name);
    require(!objects[i].is_valid(), "'", name, "' was given twice");
    objects[i] = nb::borrow(value);
  }
  return objects;
}

// One array, or several in the order of the plan's outputs.
nb::object results_of(const PlanObject& p, const Arguments& a) {
  if (p.places().size() - p.inputs() == 1) return a.objects().back();
  nb::list all;
  for (size_t i = p.inputs(); i < p.places().size(); ++i) all.append(a.objects()[i]);
  return nb::tuple(all);
}

void execute(const PlanObject& p, const Arguments& a, void* stream) {
  nb::gil_scoped_release unlocked;
  p.execute(a.bindings(), stream);
}

nb::object call_plan(const PlanObject& p, nb::args args, nb::kwargs named) {
  Arguments a(p, by_place(p, args, named), {});
  execute(p, a, a.stream());
  return results_of(p, a);
}

Stream given_stream(const std::optional<uintptr_t>& handle) {
  return handle ? Stream{true, reinterpret_cast<void*>(*handle)} : Stream{};
}

nb::dict run_plan(const PlanObject& p, nb::dict arrays, const std::optional<uintptr_t>& stream) {
  Arguments a(p, by_place(p, nb::borrow<nb::args>(nb::make_tuple()), arrays), given_stream(stream));
  execute(p, a, a.stream());
  nb::dict results;
  for (size_t i = p.inputs(); i < p.places().size(); ++i)
    results[nb::str(p.places()[i].tensor->name.c_str())] = a.objects()[i];
  return results;
}

// Arrays that were checked once; it keeps the plan and the arrays.
struct Bound {
  std::shared_ptr<PlanObject> plan;
  std::unique_ptr<Arguments> arguments;
};

std::vector<std::string> names_of(const PlanObject& p, bool produced) {
  std::vector<std::string> names;
  for (const PlanObject::Place& place : p.places())
    if (place.produced == produced) names.push_back(place.tensor->name);
  return names;
}

// The graph as it is now: it may grow while the plan is made, without the GIL.
std::shared_ptr<const tsr::Graph> snapshot(const Graph& g) {
  GraphState::of(g).graph.finalize();
  return std::make_shared<const tsr::Graph>(GraphState::of(g).graph);
}

std::shared_ptr<PlanObject> make_plan(const Graph& g, const std::string& device, std::optional<size_t> workspace_limit,
                                      bool deterministic, bool fuse, std::vector<std::string> engines,
                                      std::vector<std::string> without, std::string stages) {
  tsr::PlanOptions options;
  if (workspace_limit) options.workspace_limit = *workspace_limit;
  options.deterministic = deterministic;
  options.fuse = fuse;
  options.engines = std::move(engines);
  options.without = std::move(without);
  options.stages = std::move(stages);
  std::shared_ptr<const tsr::Graph> graph = snapshot(g);
  nb::gil_scoped_release unlocked;
  return std::make_shared<PlanObject>(tsr::cached_plan(graph, tsr::find_device(device), options), device);
}

std::string tune(const Graph& g, const std::string& device, double seconds, const std::string& out) {
  std::shared_ptr<const tsr::Graph> graph = snapshot(g);
  nb::gil_scoped_release unlocked;
  std::string report;
  tsr::TuneRequest request;
  request.seconds = seconds;
  request.path = out;
  tsr::tune(graph, tsr::find_device(device), request,
            [&](tsr::TuneLine, const std::string& line) { report += line + "\n"; });
  return report;
}

template <class List>
nb::tuple to_tuple(const List& list) {
  nb::list out;
  for (int64_t i : list) out.append(i);
  return nb::tuple(out);
}

// Inputs, then outputs: name, type, sizes, strides, and whether it is an output.
nb::list places_of(const PlanObject& p) {
  nb::list all;
  for (const PlanObject::Place& place : p.places()) {
    const tsr::Tensor& t = *place.tensor;
    all.append(nb::make_tuple(t.name, tsr::name(t.dtype), to_tuple(t.dims), to_tuple(t.strides), place.produced));
  }
  return all;
}

// What fuse() tells arguments apart by: type, sizes, strides, alignment and device of an array, None for anything else.
nb::object describe_array(nb::handle object) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return nb::none();
  Stream any{true, nullptr};
  std::optional<Array> a;
  try {
    a.emplace(object, any);
  } catch (const Error&) {
    return nb::none();
  }
  if (!a->element.type) return nb::none();
  auto address = reinterpret_cast<uintptr_t>(a->data);
  int64_t alignment = address % 16 == 0 ? 16 : std::max(1, a->element.bits / 8);
  return nb::make_tuple(tsr::name(*a->element.type), to_tuple(a->dims), to_tuple(a->strides), alignment,
                        a->on_host ? std::string("cpu") : tsr::cat("cuda:", a->gpu));
}

}  // namespace

void add_plan(nb::module_& m) {
  m.def("_describe", &describe_array, nb::arg("array"));
  nb::class_<PlanObject> plan(m, "Plan", "A graph made ready to run on a device. Any number of threads may call it.");
  plan.def("__call__", &call_plan, nb::sig("def __call__(self, *inputs: object, **named: object) -> typing.Any"),
           "Runs with these arrays: inputs by position or by name, outputs by name or, where none are given, allocated "
           "by "
           "the library of the first input. Returns the output, or a tuple of all.")
      .def("run", &run_plan, nb::arg("arrays"), nb::arg("stream") = nb::none(),
           nb::sig("def run(self, arrays: dict[str, object], stream: int | None = None) -> dict[str, typing.Any]"),
           "Runs with arrays by name, on a GPU in this stream (a CUstream as a number); returns the outputs by name.")
      .def(
          "bind",
          [](std::shared_ptr<PlanObject> p, nb::args args, nb::kwargs named) {
            auto a = std::make_unique<Arguments>(*p, by_place(*p, args, named), Stream{});
            return Bound{std::move(p), std::move(a)};
          },
          nb::sig("def bind(self, *inputs: object, **named: object) -> Bound"),
          "Checks arrays once and keeps them, for calls that cost little more than those of C++.")
      .def(
          "explain",
          [](nb::handle self) {
            const auto& p = *nb::inst_ptr<PlanObject>(self);
            std::string text = tsr::to_text(tsr::explain(p.plan()));
            return nb::module_::import_("tessera._explanation").attr("Explanation")(text, self);
          },
          nb::sig("def explain(self) -> str"),
          "What the plan does and why: a text that is drawn where it is shown in a notebook.")
      .def(
          "page",
          [](const PlanObject& p) {
            return tsr::cli::to_html(tsr::explain(p.plan()), tsr::print_graph(p.plan().source()));
          },
          "The explanation as a web page that needs nothing else.")
      .def("_repr_html_", [](nb::handle self) { return self.attr("explain")().attr("_repr_html_")(); })
      .def(
          "save", [](const PlanObject& p) { return p.plan().save(); }, "The plan as text, for Plan.load.")
      .def_static(
          "load",
          [](std::string_view saved, const std::string& device) {
            nb::gil_scoped_release unlocked;
            return std::make_shared<PlanObject>(tsr::load_plan(saved, tsr::find_device(device)), device);
          },
          nb::arg("saved"), nb::arg("device") = "cpu")
      .def_prop_ro("device", &PlanObject::device)
      .def_prop_ro("workspace_bytes", [](const PlanObject& p) { return p.plan().workspace_bytes(); })
      .def_prop_ro("steps", [](const PlanObject& p) { return p.plan().steps().size(); })
      .def_prop_ro("_places", &places_of)
      .def_prop_ro(
          "inputs", [](const PlanObject& p) { return names_of(p, false); }, "The names of the inputs.")
      .def_prop_ro(
          "outputs", [](const PlanObject& p) { return names_of(p, true); }, "The names of the outputs.")
      .def("__repr__", [](const PlanObject& p) {
        return tsr::cat("<Plan of ", p.plan().steps().size(), " steps on ", p.device(), ">");
      });
  nb::class_<Bound>(m, "Bound", "A plan with its arrays.")
      .def(
          "__call__",
          [](const Bound& b, const std::optional<uintptr_t>& stream) {
            execute(*b.plan, *b.arguments, stream ? given_stream(stream).handle : b.arguments->stream());
          },
          nb::arg("stream") = nb::none(), nb::sig("def __call__(self, stream: int | None = None) -> None"),
          "Runs; on a GPU it launches, into the stream that was current when the arrays were bound.")
      .def(
          "_seconds",
          [](const Bound& b, int calls) {
            nb::gil_scoped_release unlocked;
            auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < calls; ++i) b.plan->execute(b.arguments->bindings(), b.arguments->stream());
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
          },
          nb::arg("calls"), "Seconds of one call from C++, for comparison.")
      .def_prop_ro(
          "outputs", [](const Bound& b) { return results_of(*b.plan, *b.arguments); },
          nb::sig("def outputs(self) -> typing.Any"), "The output, or a tuple of all.");
  nb::handle graph = m.attr("Graph");
  nb::cpp_function_def(
      &make_plan, nb::scope(graph), nb::name("plan"), nb::is_method(), nb::arg("device") = "cpu", nb::kw_only(),
      nb::arg("workspace_limit") = nb::none(), nb::arg("deterministic") = false, nb::arg("fuse") = true,
      nb::arg("engines") = std::vector<std::string>(), nb::arg("without") = std::vector<std::string>(),
      nb::arg("stages") = "",
      nb::sig("def plan(self, device: str = 'cpu', *, workspace_limit: int | None = None, deterministic: bool = False, "
              "fuse: bool = True, engines: collections.abc.Sequence[str] = (), "
              "without: collections.abc.Sequence[str] = (), stages: str = '') -> Plan"),
      "The plan of this graph for a device: \"cpu\", \"cuda\", \"cuda:1\" or, to explain alone, a GPU such as "
      "\"h200\".");
  nb::cpp_function_def(
      &tune, nb::scope(graph), nb::name("tune"), nb::is_method(), nb::arg("device") = "cpu", nb::arg("seconds") = 1.0,
      nb::arg("out") = "",
      "Measures every way to run the steps of this graph and keeps the fastest in the tuning file, which plans made "
      "from then on follow, or in the file `out`. Returns a report.");
}

}  // namespace tessera::python
