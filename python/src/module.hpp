// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module, one file each.
#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

nanobind::object add_tensor(nanobind::module_& m);  // returns the class
void add_graph(nanobind::module_& m);
void add_plan(nanobind::module_& m);
void add_jax(nanobind::module_& m);

}  // namespace tessera::python
