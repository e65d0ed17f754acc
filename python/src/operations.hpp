// SPDX-License-Identifier: Apache-2.0
// Every operation of the registry as a function of the module and, where its first input is a tensor, as a method of
// Tensor. Names, inputs, options, defaults and documentation are the registry's; nothing is listed here.
#pragma once

#include <nanobind/nanobind.h>

#include "tessera/ops.hpp"

namespace tessera::python {

namespace nb = nanobind;

// The outputs of an operation that has several: a Tensor, the first of them, and all by name or in order.
struct Outputs : Tensor {
  explicit Outputs(std::vector<std::pair<std::string, Tensor>> all)
      : Tensor(all.front().second), list(std::move(all)) {}
  std::vector<std::pair<std::string, Tensor>> list;
};

void add_operations(nb::module_& m, nb::handle tensor_class);

// A tensor as it is, a number as a constant like `neighbour`.
Tensor to_tensor(nb::handle value, const Tensor& neighbour);

}  // namespace tessera::python
