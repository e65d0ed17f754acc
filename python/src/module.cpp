// SPDX-License-Identifier: Apache-2.0
// The extension module tessera._tessera: the C++ API for Python. What is not performance or registry is in Python,
// beside it.
#include "module.hpp"

#include <nanobind/stl/string.h>

#include "base/cache_folder.hpp"
#include "operations.hpp"
#include "tessera/plan.hpp"

namespace tessera::python {
namespace {

const char* status_name(Status s) {
  switch (s) {
    case Status::ok:
      return "ok";
    case Status::bad_parameter:
      return "bad_parameter";
    case Status::not_supported:
      return "not_supported";
    case Status::corrupt_data:
      return "corrupt_data";
    case Status::out_of_memory:
      return "out_of_memory";
    case Status::execution_failed:
      return "execution_failed";
    case Status::internal_error:
      return "internal_error";
  }
  return "unknown";
}

// tessera.Error with the same text, and the status as a word.
void add_errors(nb::module_& m) {
  nb::object base = nb::borrow(PyExc_RuntimeError);
  static nb::handle error = PyErr_NewExceptionWithDoc(
      "tessera.Error",
      "Every failure. The text names the tensor, what was given and what is allowed; `status` says of "
      "what kind it is.",
      base.ptr(), nullptr);
  if (!error.ptr()) throw nb::python_error();
  m.attr("Error") = error;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      nb::object value = error(e.what());
      value.attr("status") = status_name(e.status());
      PyErr_SetObject(error.ptr(), value.ptr());
    }
  });
}

}  // namespace
}  // namespace tessera::python

NB_MODULE(_tessera, m) {
  using namespace tessera::python;
  nb::set_leak_warnings(false);  // modules of other libraries may outlive this one at the end of a program
  add_errors(m);
  nb::object tensor = add_tensor(m);
  add_graph(m);
  add_operations(m, tensor);
  add_plan(m);
  add_jax(m);
  m.def("thread_count", &tessera::thread_count, "Threads that the CPU engines use together, the caller's included.");
  m.def("set_thread_count", &tessera::set_thread_count, nb::arg("n"));
  m.def(
      "_cache_folder", [](const std::string& name) { return tsr::cache_folder(name); }, nb::arg("name"));
  m.attr("__version__") = TESSERA_VERSION;
}
