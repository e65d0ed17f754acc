// SPDX-License-Identifier: Apache-2.0
// Slice: every stride-th element between start and limit of each dimension.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::SliceOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<SliceOptions>(&options);
  v("start", o.start, "first index in each dimension; left out: 0");
  v("limit", o.limit, "index behind the last one; left out: the size");
  v("stride", o.stride, "steps between them; left out: 1");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<SliceOptions>();
  const Tensor& x = ctx.in(0);
  auto value = [&](const Ints& v, std::string_view name, int i, int64_t fallback) {
    if (v.empty()) return fallback;
    ctx.check(static_cast<int>(v.size()) == x.rank(), name, " ", Dims(v), " must hold one value for each of the ",
              x.rank(), " dimensions of ", ctx.describe(0));
    return v[static_cast<size_t>(i)];
  };
  Dims dims = x.dims;
  for (int i = 0; i < x.rank(); ++i) {
    int64_t start = value(o.start, "start", i, 0), limit = value(o.limit, "limit", i, x.dims[i]),
            stride = value(o.stride, "stride", i, 1);
    ctx.check(start >= 0 && start <= limit && limit <= x.dims[i], "start ", start, " and limit ", limit,
              " of dimension ", i, " must satisfy 0 <= start <= limit <= ", x.dims[i]);
    ctx.check(stride > 0, "stride ", stride, " of dimension ", i, " must be positive");
    dims[i] = (limit - start) / stride + ((limit - start) % stride != 0);
  }
  ctx.output(0, dims, x.dtype, &x);
}

// Puts what was cut away of one dimension back, as zeros. d has x's sizes in the dimensions before `axis`, the slice's
// from there on.
class Uncut {
 public:
  Uncut(Gradient& g, TensorId d, int axis) : g_(g), d_(d), axis_(axis), rest_(g.options<SliceOptions>()) {
    Dims x = g.dims(0);
    auto rank = static_cast<size_t>(x.size());
    if (rest_.start.empty()) rest_.start = Ints(rank, 0);
    if (rest_.limit.empty()) rest_.limit = x.to_vector();
    if (rest_.stride.empty()) rest_.stride = Ints(rank, 1);
    for (int i = 0; i < axis; ++i) set(i, 0, x[i]);
    start_ = rest_.start[at()];
    stride_ = rest_.stride[at()];
    size_ = x[axis];
  }

  TensorId run() {
    int64_t from = start_, to = rest_.limit[at()];
    if (stride_ > 1) {
      // Whole strides, as far as they lie in x.
      int64_t whole = g_.tensor(d_).dims[axis_] * stride_;
      spread();
      to = std::min(size_, from + whole);
      if (to < from + whole) cut(to - from);
    }
    std::vector<TensorId> parts;
    if (from > 0) parts.push_back(zeros(0, from));
    parts.push_back(d_);
    if (to < size_) parts.push_back(zeros(to, size_));
    return parts.size() == 1 ? d_ : g_.make(ops::concat, parts, tessera::ConcatOptions{.axis = axis_});
  }

 private:
  size_t at() const { return static_cast<size_t>(axis_); }
  void set(int i, int64_t start, int64_t limit) {
    auto k = static_cast<size_t>(i);
    rest_.start[k] = start;
    rest_.limit[k] = limit;
    rest_.stride[k] = 1;
  }

  // Zeros in the place of these elements of x; the index of a slice has its sizes and none of its values.
  TensorId zeros(int64_t from, int64_t to) {
    set(axis_, from, to);
    return g_.convert(g_.filled(0, g_.make(ops::slice, {g_.in(0)}, rest_)), g_.tensor(d_).dtype);
  }

  // Each element followed by stride - 1 zeros: [.., m, ..] -> [.., m, 1, ..] -> [.., m, stride, ..] -> [.., m stride,
  // ..]
  void spread() {
    Dims before = g_.tensor(d_).dims, apart, after = before;
    for (int i = 0; i < before.size(); ++i) {
      apart.push_back(before[i]);
      if (i == axis_) apart.push_back(1);
    }
    after[axis_] *= stride_;
    TensorId zero = g_.reshape(g_.convert(g_.filled(0, d_), g_.tensor(d_).dtype), apart);
    std::vector<TensorId> parts(static_cast<size_t>(stride_), zero);
    parts[0] = g_.reshape(d_, apart);
    d_ = g_.reshape(g_.make(ops::concat, parts, tessera::ConcatOptions{.axis = axis_ + 1}), after);
  }

  void cut(int64_t size) {
    SliceOptions o{.start = {}, .limit = g_.tensor(d_).dims.to_vector(), .stride = {}};
    o.limit[at()] = size;
    d_ = g_.make(ops::slice, {d_}, o);
  }

  Gradient& g_;
  TensorId d_;
  int axis_;
  SliceOptions rest_;  // the slice that is still to be undone
  int64_t start_, stride_, size_;
};

void backward(Gradient& g) {
  TensorId d = g.d();
  if (g.tensor(d).numel() == 0) return g.add(0, g.filled(0, g.in(0)));
  for (int axis = 0; axis < g.dims(0).size(); ++axis) d = Uncut(g, d, axis).run();
  g.add(0, d);
}

}  // namespace

const OpSpec ops::slice = {
    .name = "slice",
    .family = Family::movement,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = SliceOptions{},
    .fields = fields,
    .infer = infer,
    .formula = "y[i_0, i_1, ..] = x[start_0 + stride_0 i_0, start_1 + stride_1 i_1, ..]",
    .shapes =
        "x of any sizes -> y with size ceil((limit - start) / stride) in each dimension; start defaults to 0, limit to "
        "the size, "
        "stride to 1; any type",
    .example = "x = input f32[2,5,4]\ny = slice x start=0,1,0 limit=2,5,4 stride=1,2,1\noutput y",
    .gradient = backward,
};

}  // namespace tsr
