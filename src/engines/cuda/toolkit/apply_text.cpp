// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/apply_text.hpp"

#include <cmath>

#include "graph/pointwise_modes.hpp"

namespace tsr::cuda {

const char* lane_name(Lane l) { return l == Lane::f32 ? "float" : l == Lane::f64 ? "double" : "i64"; }

std::string apply_text(const std::vector<Instr>& code, const Instr& c, const std::function<std::string(int)>& value,
                       const std::function<std::string(Lane, double)>& literal) {
  using M = tessera::PointwiseMode;
  const tessera::PointwiseOptions& o = c.options;
  auto scaled = [&](int i, double alpha) {
    Lane lane = code[static_cast<size_t>(i)].lane;
    return alpha == 1 ? value(i) : cat("op_mul(", value(i), ", ", literal(lane, alpha), ")");
  };
  // Division by a known number is a multiplication, a unit in the last place apart. Not that of a largest number, which
  // may be rounded up to a power of two.
  const Instr& a = code[static_cast<size_t>(c.a)];
  bool bound = a.kind == Instr::reduce && a.reduction == tessera::ReduceMode::max;
  if (o.mode == M::div && c.lane == Lane::f32 && o.alpha2 == 1 && !bound) {
    const Instr& b = code[static_cast<size_t>(c.b)];
    if (b.kind == Instr::constant && std::isnormal(static_cast<float>(1 / b.value)))
      return cat("op_mul(", scaled(c.a, o.alpha1), ", ", literal(c.lane, 1 / b.value), ")");
  }
  std::string text = cat("op_", tsr::info(o.mode).name, "(", scaled(c.a, o.alpha1));
  if (c.b >= 0) text += ", " + scaled(c.b, o.alpha2);
  if (c.c >= 0) text += ", " + value(c.c);
  auto add = [&](double v) { text += ", " + literal(c.lane, v); };
  switch (o.mode) {
    case M::relu:
    case M::relu_bwd:
      if (c.lane == Lane::i64 || (o.lower == 0 && std::isinf(o.upper) && o.slope == 0)) break;
      add(o.lower), add(o.upper), add(o.slope);
      break;
    case M::elu:
    case M::elu_bwd:
      add(o.alpha);
      break;
    case M::softplus:
    case M::softplus_bwd:
    case M::swish:
    case M::swish_bwd:
      add(o.beta);
      break;
    default:
      break;
  }
  return text + ")";
}

}  // namespace tsr::cuda
