// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/passes.hpp"

#include <algorithm>

namespace tsr::cuda {
namespace {

using M = tessera::PointwiseMode;

size_t at(int i) { return static_cast<size_t>(i); }

}  // namespace

bool is_costly(const Instr& c, bool narrow) {
  if (c.kind == Instr::random) return true;
  if (c.kind != Instr::apply || (narrow && c.lane == Lane::f32 && c.options.mode == M::exp)) return false;
  static constexpr M kCheap[] = {M::add,        M::sub,         M::mul,         M::add_square, M::min,    M::max,
                                 M::neg,        M::abs,         M::identity,    M::select,     M::cmp_eq, M::cmp_neq,
                                 M::cmp_gt,     M::cmp_ge,      M::cmp_lt,      M::cmp_le,     M::relu,   M::relu_bwd,
                                 M::logical_or, M::logical_and, M::logical_not, M::ceil,       M::floor};
  return std::find(std::begin(kCheap), std::end(kCheap), c.options.mode) == std::end(kCheap);
}

bool is_number(const Expr& e, const Layout& l, int i) {
  const Instr& c = e.code[at(i)];
  return c.kind == Instr::constant || (c.kind == Instr::load && l.operand_of[at(i)] < 0);
}

int unrounded(const Expr& e, int v, DType type) {
  const Instr& c = e.code[at(v)];
  return c.kind == Instr::round && c.type == type ? c.a : v;
}

Passes::Passes(const Expr& e, const Graph& g, const Layout& l, bool keep)
    : known(e.code.size(), -1),
      first(e.code.size(), -1),
      kept(e.code.size(), false),
      pass(e.code.size(), 0),
      passed(e.code.size(), false) {
  narrow = std::none_of(e.code.begin(), e.code.end(), [&](const Instr& c) {
    return (c.kind == Instr::store || c.kind == Instr::across) && info(g.tensor(c.tensor).dtype).bits > 16;
  });
  find_stages(e);
  find_needs(e, g);
  if (keep) find_kept(e, l);
  find_passes(e, l);
}

void Passes::find_stages(const Expr& e) {
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instr& c = e.code[i];
    for (int k : {c.a, c.b, c.c})
      if (k >= 0) known[i] = std::max(known[i], known[at(k)]);
    if (reduces_row(c)) ++known[i], stages = std::max(stages, known[i] + 1);
  }
}

void Passes::find_needs(const Expr& e, const Graph& g) {
  needs.assign(at(stages + 1), std::vector<bool>(e.code.size(), false));
  for (size_t i = e.code.size(); i-- > 0;) {
    const Instr& c = e.code[i];
    if (reduces_row(c)) needs[at(known[i])][at(c.a)] = true;
    if (c.kind == Instr::across) needs[at(stages)][at(c.a)] = true;
    if (c.kind == Instr::store && !c.row) needs[at(stages)][at(unrounded(e, c.a, g.tensor(c.tensor).dtype))] = true;
    for (auto& need : needs)
      if (need[i] && !c.row)
        for (int k : {c.a, c.b, c.c})
          if (k >= 0) need[at(k)] = true;
  }
  for (int s = stages; s >= 0; --s)
    for (size_t i = 0; i < e.code.size(); ++i)
      if (needs[at(s)][i]) first[i] = s;
}

void Passes::find_kept(const Expr& e, const Layout& l) {
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instr& c = e.code[i];
    auto uses = std::count_if(needs.begin(), needs.end(), [&](const std::vector<bool>& need) { return need[i]; });
    kept[i] = uses > 1 && !c.row && !(l.block && c.block) && is_costly(c, narrow);
  }
}

void Passes::find_passes(const Expr& e, const Layout& l) {
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instr& c = e.code[i];
    for (int k : {c.a, c.b, c.c})
      if (k >= 0) pass[i] = std::max(pass[i], pass[at(k)]);
    for (int k : {c.a, c.b, c.c}) {
      if (k < 0 || pass[at(k)] == pass[i] || is_number(e, l, k)) continue;
      const Instr& from = e.code[at(k)];
      passed[at(k)] = !from.row && !from.block;
    }
    if (c.kind == Instr::reduce && c.block) passes = std::max(passes, ++pass[i]);
  }
}

}  // namespace tsr::cuda
