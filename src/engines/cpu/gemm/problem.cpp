// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/problem.hpp"

#include <algorithm>

namespace tsr::cpu {

std::vector<int> Frame::order() const {
  std::vector<int> all = batch;
  all.insert(all.end(), rows.begin(), rows.end());
  all.insert(all.end(), columns.begin(), columns.end());
  return all;
}

Placement place(const Tensor& y, const Frame& f, int split, int64_t groups) {
  Dims count = y.dims;
  int64_t step = 1;
  std::vector<int> order = f.order();
  for (size_t k = order.size(); k-- > 0;) {
    count[order[k]] = step;
    step *= y.dims[order[k]];
  }
  auto size = [&](int i) { return i == split ? y.dims[i] / groups : y.dims[i]; };
  Placement p;
  for (int i : f.batch) p.batch.add(size(i), y.strides[i]), p.batch_count.add(size(i), count[i]);
  if (groups > 1) {
    p.batch.add(groups, size(split) * y.strides[split]);
    p.batch_count.add(groups, size(split) * count[split]);
  }
  for (int i : f.rows) p.rows.add(size(i), y.strides[i]), p.row_count.add(size(i), count[i]);
  for (int i : f.columns) p.columns.add(size(i), y.strides[i]);
  return p;
}

int64_t Limit::value(void* const* tensors, int64_t index, int64_t full) const {
  if (tensor == kNone) return full;
  return std::clamp<int64_t>(load<int64_t>(type, tensors[tensor], index * stride), 0, full);
}

const Tensor& Anchored::lead() const {
  for (size_t i = region.outputs.size(); i-- > 0;)
    if (graph().tensor(region.outputs[i]).dims == out().dims) return graph().tensor(region.outputs[i]);
  return out();
}

Reason check_types(const Anchored& a, size_t left, size_t right) {
  DType compute = a.node().compute;
  if (!is_real(compute) && !is_integer(compute)) return Reason::no(spelling(a.node()), " computes in ", compute);
  for (size_t slot : {left, right}) {
    const Tensor& x = a.in(slot);
    if (is_complex(x.dtype)) return Reason::no("input ", describe(x), " is complex");
    if (info(x.dtype).vector > 1) return Reason::no("input ", describe(x), " is vectorised");
    if (x.reordering != Reordering::none) return Reason::no("input ", describe(x), " is reordered");
    if (x.ragged != kNone) return Reason::no("input ", describe(x), " is ragged");
    if (is_integer(compute) && (!is_integer(x.dtype) || info(x.dtype).bits > 8))
      return Reason::no("input ", describe(x), ": products in ", compute, " are exact for i8 and u8 only");
  }
  return Reason::yes();
}

bool needs_wide(const Anchored& a, size_t left, size_t right, int64_t depth) {
  if (a.node().compute == DType::f64) return true;
  if (!is_integer(a.node().compute)) return false;
  // Sums of products of bytes are exact in f32 up to 2^24.
  bool is_signed = a.in(left).dtype == DType::i8 && a.in(right).dtype == DType::i8;
  return depth > (is_signed ? 1024 : 256);
}

Packing narrow_packing(const Anchored& a, size_t left, size_t right, int64_t depth) {
  DType x = a.in(left).dtype, y = a.in(right).dtype;
  auto largest = [](DType t) { return t == DType::i8 ? 128 : t == DType::u8 ? 255 : 0; };
  if (largest(x) && largest(y) && has_byte_products() && depth <= INT32_MAX / (largest(x) * largest(y)))
    return Packing::bytes;
  auto is_bf16 = [](DType t) { return t == DType::bf16 || is_minifloat(t); };
  return is_bf16(x) && is_bf16(y) && has_bf16_products() ? Packing::bf16 : Packing::f32;
}

Reason check_frame(const Anchored& a, const Frame& f) {
  if (!a.epilogue.has_reduction) return Reason::yes();
  for (int i = 0; i < a.out().rank(); ++i) {
    bool column = std::find(f.columns.begin(), f.columns.end(), i) != f.columns.end();
    if (a.out().dims[i] != 1 && a.reduces(i) != column)
      return Reason::no("rows of the product are not the rows of what follows ", describe(a.out()));
  }
  return Reason::yes();
}

}  // namespace tsr::cpu
