// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/fused/group_reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.hpp"
#include "engines/cpu/vector/kernels.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

using tessera::PointwiseMode;
using tessera::ReduceMode;

// Sums of a piece of a line, of any lane.
union Sums {
  double real[kBlock];
  int64_t integer[kBlock];
};

class GroupReduceStep : public Step {
 public:
  GroupReduceStep(const Graph& g, const Node& n, int threads)
      : x_(g.tensor(n.in[0])),
        y_(g.tensor(n.out[0])),
        x_id_(n.in[0]),
        offsets_id_(n.in[1]),
        y_id_(n.out[0]),
        offsets_type_(g.tensor(n.in[1]).dtype),
        mode_(attrs<tessera::ReduceOptions>(n).mode),
        lane_(is_integer(n.compute)     ? Lane::i64
              : n.compute == DType::f64 ? Lane::f64
                                        : Lane::f32),
        threads_(threads) {
    for (int d = 2; d + 1 < x_.rank(); ++d) outer_.push_back(x_.dims[d]);
    length_ = x_.rank() > 2 ? x_.dims[x_.rank() - 1] : 1;
  }

  void run(const StepArgs& a) const override {
    int64_t pieces = (length_ + kBlock - 1) / kBlock, lines = volume(outer_);
    parallel_for(y_.dims[0] * lines * pieces, 1, threads_, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i)
        reduce(a.tensors, i / pieces / lines, i / pieces % lines, i % pieces * kBlock);
    });
  }

 private:
  // Rows of a group: from its offset on, up to the first row of any group behind it.
  void find_rows(void* const* t, int64_t group, int64_t& first, int64_t& last) const {
    auto offset = [&](int64_t g) { return load<int64_t>(offsets_type_, t[offsets_id_], g); };
    first = std::max<int64_t>(offset(group), 0);
    last = x_.dims[1];
    for (int64_t g = group + 1; g < y_.dims[0]; ++g) last = std::min(last, offset(g));
    last = std::max(first, last);
  }

  void reduce(void* const* t, int64_t group, int64_t line, int64_t start) const {
    int64_t from = 0, to = group * y_.strides[0], n = std::min(kBlock, length_ - start), first, last;
    for (int i = outer_.size() - 1; i >= 0; line /= outer_[i--]) {
      from += line % outer_[i] * x_.strides[i + 2];
      to += line % outer_[i] * y_.strides[i + 2];
    }
    int64_t x_stride = x_.rank() > 2 ? x_.strides[x_.rank() - 1] : 1,
            y_stride = x_.rank() > 2 ? y_.strides[x_.rank() - 1] : 1;
    find_rows(t, group, first, last);
    Sums sums;
    begin(sums, n);
    alignas(64) double row[kBlock];
    for (int64_t r = first; r < last; ++r) {
      cpu::kernels().load(x_.dtype, lane_, t[x_id_], from + r * x_.strides[1] + start * x_stride, x_stride, row, n);
      prepare(row, n);
      cpu::kernels().accumulate(lane_, combination(), row, n, &sums);
    }
    for (int64_t i = 0; i < n && mode_ == ReduceMode::avg; ++i) sums.real[i] /= static_cast<double>(last - first);
    for (int64_t i = 0; i < n && mode_ == ReduceMode::norm2; ++i) sums.real[i] = std::sqrt(sums.real[i]);
    cpu::kernels().store(y_.dtype, lane_ == Lane::i64 ? Lane::i64 : Lane::f64, &sums, t[y_id_], to + start * y_stride,
                         y_stride, n);
  }

  ReduceMode combination() const {
    if (mode_ == ReduceMode::amax) return ReduceMode::max;
    return mode_ == ReduceMode::mul || mode_ == ReduceMode::min || mode_ == ReduceMode::max ? mode_ : ReduceMode::add;
  }

  // What a group without rows gives.
  void begin(Sums& s, int64_t n) const {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    using Int = std::numeric_limits<int64_t>;
    bool least = mode_ == ReduceMode::max, most = mode_ == ReduceMode::min;
    if (lane_ == Lane::i64)
      std::fill_n(s.integer, n, least ? Int::min() : most ? Int::max() : mode_ == ReduceMode::mul ? 1 : 0);
    else
      std::fill_n(s.real, n, least ? -kInf : most ? kInf : mode_ == ReduceMode::mul ? 1 : 0);
  }

  void prepare(double* row, int64_t n) const {
    tessera::PointwiseOptions o;
    o.mode = mode_ == ReduceMode::norm2 ? PointwiseMode::mul : PointwiseMode::abs;
    if (mode_ == ReduceMode::norm2 || mode_ == ReduceMode::norm1 || mode_ == ReduceMode::amax)
      cpu::kernels().apply(lane_,
                           {&o, row, mode_ == ReduceMode::norm2 ? row : nullptr, nullptr, false, false, false, row, n});
  }

  Tensor x_, y_;
  TensorId x_id_, offsets_id_, y_id_;
  DType offsets_type_;
  ReduceMode mode_;
  Lane lane_;
  int threads_;
  Dims outer_;      // sizes behind the rows, but the last
  int64_t length_;  // of the last
};

}  // namespace

bool reduces_groups(const Region& r) {
  const Node& n = r.graph->node(r.nodes[0]);
  return r.nodes.size() == 1 && n.op == &ops::reduce && n.in.size() > 1 && n.in[1] != kNone;
}

Reason check_group_reduce(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[0]), &offsets = g.tensor(n.in[1]), &y = g.tensor(n.out[0]);
  ReduceMode mode = attrs<tessera::ReduceOptions>(n).mode;
  for (const Tensor* t : {&x, &y}) {
    if (t->ragged != kNone) return Reason::no("tensor ", describe(*t), " is ragged");
    if (is_complex(t->dtype)) return Reason::no("tensor ", describe(*t), " is complex");
    if (info(t->dtype).vector > 1 || info(t->dtype).bits < 8)
      return Reason::no("tensor ", describe(*t), " keeps several elements together");
  }
  if (!(offsets.strides == packed_strides(offsets.dims)))
    return Reason::no("tensor ", describe(offsets), " of offsets has gaps");
  for (int d = 2; d < x.rank(); ++d)
    if (x.dims[d] != y.dims[d]) return Reason::no(spelling(n), " reduces groups of rows, and dimension ", d);
  bool real = mode == ReduceMode::avg || mode == ReduceMode::norm2;
  if (mode == ReduceMode::mul_no_zeros || (real && is_integer(n.compute)))
    return Reason::no(spelling(n), " of groups of rows in ", n.compute);
  return Reason::yes();
}

std::unique_ptr<Step> make_group_reduce(const Graph& g, const Node& n, int threads) {
  return std::make_unique<GroupReduceStep>(g, n, threads);
}

}  // namespace tsr::cpu
