// SPDX-License-Identifier: Apache-2.0
// Matrix products as such. A batch axis along which one operand repeats belongs to the other one's rows or columns.
// Products of complex numbers are products of real ones of twice the size (complex.hpp).
#include <algorithm>

#include "engines/cpu/gemm/complex.hpp"
#include "engines/cpu/gemm/problem.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cpu {
namespace {

using namespace slots::matmul;

bool has_limits(const Anchored& a) { return a.has(kM) || a.has(kN) || a.has(kK); }

// Rows of the product are columns of b where the result is stored that way round, or where it has few columns.
bool turned(const Anchored& a) {
  int r = a.out().rank();
  if (a.reduces(r - 1)) return false;
  if (a.reduces(r - 2)) return true;
  const Tensor& y = a.lead();
  // Few columns waste most of a register block; as rows they waste nothing.
  constexpr int64_t kFew = 16;
  int64_t m = y.dims[r - 2], n = y.dims[r - 1];
  if (std::min(m, n) < kFew) return n < m;
  return y.strides[r - 2] < y.strides[r - 1];
}

Frame matmul_frame(const Anchored& a) {
  const Tensor &x = a.in(kA), &w = a.in(kB);
  int r = a.out().rank();
  Frame f;
  std::vector<int> of_a, of_b;
  for (int i = 0; i < r - 2; ++i) {
    bool fold = !has_limits(a) && !a.epilogue.has_reduction && x.dims[i] != w.dims[i];
    (fold && w.dims[i] == 1 ? of_a : fold && x.dims[i] == 1 ? of_b : f.batch).push_back(i);
  }
  of_a.push_back(r - 2);
  of_b.push_back(r - 1);
  f.rows = turned(a) ? of_b : of_a;
  f.columns = turned(a) ? of_a : of_b;
  return f;
}

template <class T>
std::unique_ptr<Operand<T>> operand(const Anchored& a, const Frame& f, size_t slot, bool is_left) {
  const Tensor& x = a.in(slot);
  const Dims& y = a.out().dims;
  int r = x.rank(), neighbour = slot == kA ? r - 2 : r - 1, inner = slot == kA ? r - 1 : r - 2;
  Dims batch, share, strides;
  int64_t parts = is_complex(x.dtype) && is_left ? 2 : 1;  // that elements count as
  for (int i : f.batch) {
    batch.push_back(y[i]);
    share.push_back(x.dims[i] == 0 ? 1 : y[i] / x.dims[i]);
    strides.push_back(parts * x.strides[i]);
  }
  bool rows = std::find(f.rows.begin(), f.rows.end(), neighbour) != f.rows.end();
  Axes neighbours;
  for (int i : rows ? f.rows : f.columns) neighbours.add(x.dims[i], parts * x.strides[i]);
  TensorId id = a.node().in[slot];
  Axes deep(x.dims[inner], parts * x.strides[inner]);
  DType type = x.dtype;
  if constexpr (sizeof(T) >= 4)
    if (is_complex(type)) {
      if (!is_left) return std::make_unique<ComplexOperand<T>>(id, batch, share, strides, neighbours, x.strides[inner]);
      deep.add(2, 1);
      type = sizeof(T) == 4 ? DType::f32 : DType::f64;
    }
  return std::make_unique<StridedOperand<T>>(id, type, batch, share, strides, neighbours, deep);
}

Limit limit(const Anchored& a, size_t slot) {
  if (!a.has(slot)) return {};
  const Tensor& x = a.in(slot);
  Limit l{a.node().in[slot], x.dtype, 0};
  for (int i = 0; i < x.rank(); ++i)
    if (x.dims[i] != 1) l.stride = x.strides[i];
  return l;
}

}  // namespace

Reason check_matmul(const Anchored& a) {
  if (Reason why = check_types(a, kA, kB); !why) return why;
  return check_frame(a, matmul_frame(a));
}

Reason check_complex_matmul(const Anchored& a) {
  if (a.region.nodes.size() > 1) return Reason::no("work behind a product of complex numbers");
  for (const Tensor* t : {&a.in(kA), &a.in(kB), &a.out()}) {
    if (t->dtype != a.node().compute)
      return Reason::no(describe(*t), " has another type than ", a.node().compute, ", in which it is computed");
    if (t->ragged != kNone) return Reason::no(describe(*t), " is ragged");
  }
  if (has_limits(a)) return Reason::no("sizes of a product of complex numbers that are told at execution");
  Axes columns = place(a.out(), matmul_frame(a)).columns.merged();
  if (columns.sizes.size() > 1 || (columns.sizes[0] > 1 && columns.strides[0] != 1))
    return Reason::no("neither rows nor columns of ", describe(a.out()), " lie side by side");
  return Reason::yes();
}

Packing matmul_packing(const Anchored& a) {
  int64_t depth = a.in(kA).dims.back();
  if (a.node().compute == DType::f64 || a.node().compute == DType::c128) return Packing::f64;
  if (a.node().compute == DType::c64) return Packing::f32;
  // A limit may end within a word.
  if (Packing p = narrow_packing(a, kA, kB, depth); p != Packing::f32 && !a.has(kK)) return p;
  return needs_wide(a, kA, kB, depth) ? Packing::f64 : Packing::f32;
}

template <class T>
Problem<T> matmul_problem(const Anchored& a) {
  Problem<T> p;
  p.frame = matmul_frame(a);
  const Dims& y = a.out().dims;
  auto count = [&](const std::vector<int>& axes) {
    int64_t n = 1;
    for (int i : axes) n *= y[i];
    return n;
  };
  p.shape = {count(p.frame.batch), count(p.frame.rows), count(p.frame.columns), a.in(kA).dims.back()};
  Tensor result = a.out();
  if (is_complex(result.dtype)) {
    p.shape.columns *= 2, p.shape.depth *= 2;
    for (int i = 0; i < result.rank(); ++i) result.strides[i] *= 2;
  }
  p.place = place(result, p.frame);
  if (is_complex(result.dtype)) p.place.columns.add(2, 1);
  p.left = operand<T>(a, p.frame, turned(a) ? kB : kA, true);
  p.right = operand<T>(a, p.frame, turned(a) ? kA : kB, false);
  p.limits = {limit(a, turned(a) ? kN : kM), limit(a, turned(a) ? kM : kN), limit(a, kK),
              y.size() > 2 ? std::max<int64_t>(1, p.shape.batches / std::max<int64_t>(1, y[0])) : 1,
              attrs<tessera::MatmulOptions>(a.node()).padding_value};
  return p;
}

template Problem<float> matmul_problem(const Anchored&);
template Problem<double> matmul_problem(const Anchored&);
template Problem<Bf16> matmul_problem(const Anchored&);
template Problem<Byte> matmul_problem(const Anchored&);

}  // namespace tsr::cpu
