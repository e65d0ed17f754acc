// SPDX-License-Identifier: Apache-2.0
// Graph and Tensor for Python.
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "api/state.hpp"
#include "arrays.hpp"
#include "module.hpp"
#include "operations.hpp"

namespace tessera::python {
namespace {

using tsr::require;

nb::tuple to_tuple(const Ints& list) {
  nb::list out;
  for (int64_t i : list) out.append(i);
  return nb::tuple(out);
}

std::string repr(const Tensor& t) {
  return tsr::cat("<Tensor ", tsr::to_text(GraphState::of(t)->graph.tensor(GraphState::id(t))), ">");
}

// `Tensor op value` and `value op Tensor`: the operation is called by its name, as in the text form.
template <class Class>
void add_operator(Class& c, const std::string& name, const std::string& operation, bool reversed) {
  auto apply = [operation, reversed](const Tensor& self, nb::handle other) -> nb::object {
    double number = 0;
    if (!nb::isinstance<Tensor>(other) && !nb::try_cast(other, number)) return nb::borrow(Py_NotImplemented);
    Tensor value = to_tensor(other, self);
    return nb::cast(Tensor(reversed ? call(operation, {value, self}) : call(operation, {self, value})));
  };
  std::string signature = tsr::cat("def ", name, "(self, other: Tensor | float) -> Tensor");
  c.def(name.c_str(), apply, nb::is_operator(), nb::sig(signature.c_str()));
}

Tensor graph_constant(Graph& g, nb::handle value, std::optional<Ints> dims, nb::handle dtype) {
  DType type = dtype_of(dtype);
  double number = 0;
  if (!dims && nb::try_cast(value, number)) return g.constant(number, type);
  std::vector<double> values;
  require(nb::try_cast(value, values), "a constant takes a number, or a flat list of numbers in row-major order");
  return g.constant(values, dims.value_or(Ints{static_cast<int64_t>(values.size())}), type);
}

Tensor graph_output(Graph& g, const Tensor& t, std::string_view name, nb::handle dtype) {
  return dtype.is_none() ? g.output(t, name) : g.output(t, name, dtype_of(dtype));
}

}  // namespace

nb::object add_tensor(nb::module_& m) {
  nb::class_<Tensor> c(m, "Tensor", "A tensor of a graph: an input, or the result of an operation. It has no values.");
  c.def_prop_ro("name", &Tensor::name)
      .def_prop_ro("dtype", [](const Tensor& t) { return tsr::name(t.dtype()); })
      .def_prop_ro(
          "dims", [](const Tensor& t) { return to_tuple(t.dims()); }, nb::sig("def dims(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "strides", [](const Tensor& t) { return to_tuple(t.strides()); },
          nb::sig("def strides(self) -> tuple[int, ...]"))
      .def_prop_ro("uid", &Tensor::uid)
      .def(
          "astype", [](const Tensor& t, nb::handle type) { return t.as(dtype_of(type)); }, nb::arg("dtype"),
          nb::sig("def astype(self, dtype: object) -> Tensor"), "Gives a result its type; returns the same tensor.")
      .def("layout", &Tensor::layout, nb::arg("name"),
           "Gives a result its order in memory, such as \"nhwc\"; returns the same tensor.")
      .def("ragged", &Tensor::ragged, nb::arg("offsets"), nb::arg("multiplier") = 1,
           "Packed sequences: offsets of each batch's first element, in units of `multiplier` elements.")
      .def("__neg__", [](const Tensor& t) { return -t; })
      .def("__abs__", [](const Tensor& t) { return abs(t); })
      .def("__repr__", &repr);
  const std::pair<const char*, const char*> operators[] = {{"add", "add"},     {"sub", "sub"}, {"mul", "mul"},
                                                           {"truediv", "div"}, {"pow", "pow"}, {"matmul", "matmul"}};
  for (const auto& [name, operation] : operators) {
    add_operator(c, tsr::cat("__", name, "__"), operation, false);
    add_operator(c, tsr::cat("__r", name, "__"), operation, true);
  }
  for (const char* name : {"lt", "le", "gt", "ge"})
    add_operator(c, tsr::cat("__", name, "__"), tsr::cat("cmp_", name), false);
  nb::class_<Outputs, Tensor>(m, "Outputs",
                              "The outputs of an operation that has several. It is its first output; all are found by "
                              "name, and in order when it is unpacked.")
      .def("__getitem__",
           [](const Outputs& o, std::string_view name) {
             std::vector<std::string> names;
             for (const auto& [n, t] : o.list) {
               if (n == name) return t;
               names.push_back(n);
             }
             tsr::fail(Status::bad_parameter, "there is no output '", name, "' here, but ", tsr::any_of_text(names),
                       "; optional outputs are named in wanted");
           })
      .def(
          "__iter__",
          [](const Outputs& o) {
            nb::list all;
            for (const auto& [name, t] : o.list) all.append(nb::cast(t));
            return nb::iter(all);
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"))
      .def("__len__", [](const Outputs& o) { return o.list.size(); });
  return c;
}

void add_graph(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", "A computation: inputs, operations on them, and the results that are stored.")
      .def(nb::init<>())
      .def_static("parse", &Graph::parse, nb::arg("text"), "Reads the text form.")
      .def_static("load", &Graph::load, nb::arg("saved"), "Reads what save() wrote.")
      .def("save", &Graph::save, "The text form with a version and a checksum.")
      .def("text", &Graph::text, "The text form.")
      .def("__str__", &Graph::text)
      .def("__repr__", [](const Graph& g) { return "<Graph\n" + g.text() + ">"; })
      .def(
          "input",
          [](Graph& g, std::string_view name, nb::handle type, const Ints& dims, const std::string& layout,
             const Ints& strides, int64_t alignment, int64_t uid, bool frozen) {
            return g.input(name, dtype_of(type), dims, {layout, strides, alignment, uid, frozen});
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("dims"), nb::kw_only(), nb::arg("layout") = "",
          nb::arg("strides") = Ints(), nb::arg("alignment") = 16, nb::arg("uid") = 0, nb::arg("frozen") = false,
          nb::sig("def input(self, name: str, dtype: object, dims: collections.abc.Sequence[int], *, layout: str = '', "
                  "strides: collections.abc.Sequence[int] = (), alignment: int = 16, uid: int = 0, "
                  "frozen: bool = False) -> Tensor"),
          "A tensor whose memory is given at execution. `layout` (\"nhwc\", \"bshd\", ...) or `strides` say its order "
          "in memory, `frozen` promises that its contents stay the same for all executions of a plan.")
      .def(
          "scalar", [](Graph& g, std::string_view name, nb::handle type) { return g.scalar(name, dtype_of(type)); },
          nb::arg("name"), nb::arg("dtype"), nb::sig("def scalar(self, name: str, dtype: object) -> Tensor"),
          "One value that is given at execution.")
      .def("constant", &graph_constant, nb::arg("value"), nb::arg("dims") = nb::none(), nb::arg("dtype") = "f32",
           nb::sig("def constant(self, value: float | collections.abc.Sequence[float], "
                   "dims: collections.abc.Sequence[int] | None = None, dtype: object = 'f32') -> Tensor"),
           "A value that is part of the graph; of `dims`, in row-major order.")
      .def("output", &graph_output, nb::arg("tensor"), nb::arg("name") = "", nb::arg("dtype") = nb::none(),
           nb::sig("def output(self, tensor: Tensor, name: str = '', dtype: object = None) -> Tensor"),
           "Marks a result as stored in the caller's memory, under this name and of this type if they are given.")
      .def("__getitem__", &Graph::operator[], nb::arg("name"))
      .def_prop_ro("inputs", &Graph::inputs)
      .def_prop_ro("outputs", &Graph::outputs);
  m.def(
      "gradient",
      [](const Tensor& loss, const std::vector<Tensor>& inputs, std::optional<Tensor> seed) {
        return gradient(loss, inputs, seed.value_or(Tensor()));
      },
      nb::arg("loss"), nb::arg("inputs"), nb::arg("seed") = nb::none(),
      "Adds the operations that compute the derivatives of `loss` to its graph and returns one tensor of them for each "
      "input. The loss has one element, or `seed` has its sizes (a vector-Jacobian product).");
  m.def(
      "sum", [](const Tensor& x, const Ints& axes) { return sum(x, axes); }, nb::arg("x"), nb::arg("axes") = Ints(),
      "The sum over these axes, or over all.");
  m.def(
      "mean", [](const Tensor& x, const Ints& axes) { return mean(x, axes); }, nb::arg("x"), nb::arg("axes") = Ints(),
      "The mean over these axes, or over all.");
}

}  // namespace tessera::python
