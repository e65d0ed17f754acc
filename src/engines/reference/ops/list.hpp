// SPDX-License-Identifier: Apache-2.0
// The definition of every operation: one function in a file of this folder.
#pragma once

#include "engines/reference/context.hpp"

namespace tsr::ref {

#define OPERATION(name) \
  template <class R>    \
  void name(const Context<R>&);
#include "graph/ops/list.inc"
#undef OPERATION

struct Definition {
  std::string_view op;
  void (*wide)(const Context<double>&);
  void (*narrow)(const Context<float>&);
};

const Definition* find_definition(std::string_view op);

}  // namespace tsr::ref

// Ends a definition file: both instances of its function.
#define TESSERA_REFERENCE(function)                       \
  template void function<double>(const Context<double>&); \
  template void function<float>(const Context<float>&)
