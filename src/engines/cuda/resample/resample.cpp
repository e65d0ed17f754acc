// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/resample/resample.hpp"

#include <algorithm>

#include "engines/cuda/resample/args.cuh"
#include "engines/cuda/resample/pool.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/resample.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {
namespace {

using tessera::PaddingMode;
using tessera::ResampleMode;
using tessera::ResampleOptions;

constexpr int kThreads = 128, kTileRows = 4, kPlanes = 4;

using namespace slots::resample_bwd;

dev::Line make_line(int64_t scale, int64_t shift, int64_t unit) {
  int64_t base = shift < 0 ? ceil_div(-shift, unit) : 0;
  return {shift + base * unit, base, dev::make_divisor(scale), dev::make_divisor(unit)};
}

// What resample_position and the windows of its modes say, as lines.
dev::ResampleAxis make_axis(const ResampleOptions& o, int d, int64_t x, int64_t y) {
  auto k = static_cast<size_t>(d);
  Ratio stride = o.stride[k], pad = o.pad[k], window = o.window[k];
  int64_t scale = stride.num * pad.den, shift = -pad.num * stride.den, unit = stride.den * pad.den;
  dev::ResampleAxis a{x, y, {}, {}, window_extent(o, d)};
  if (o.mode == ResampleMode::nearest) {
    a.first = make_line(2 * scale, 2 * shift + unit, 2 * unit);
    a.end = make_line(2 * scale, 2 * shift + 3 * unit, 2 * unit);
  } else if (o.mode == ResampleMode::bilinear) {
    a.first = make_line(scale, shift, unit);
    a.end = make_line(scale, shift + 2 * unit, unit);
  } else {
    a.first = make_line(scale, shift + unit - 1, unit);
    int64_t both = unit * window.den;
    a.end = make_line(scale * window.den, shift * window.den + window.num * unit + both - 1, both);
  }
  return a;
}

bool fits_31_bits(const dev::ResampleAxis& a) {
  auto most = static_cast<double>(std::max(a.x, a.y) + 2);
  for (const dev::Line* l : {&a.first, &a.end}) {
    double y = most * static_cast<double>(l->scale.value) + static_cast<double>(l->shift);
    double x = (most + static_cast<double>(l->base)) * static_cast<double>(l->unit.value);
    if (y >= 0x1p31 || x + static_cast<double>(l->scale.value) >= 0x1p31) return false;
  }
  return true;
}

// Strides with three spatial dimensions.
dev::Operand spread(const Tensor& t) {
  dev::Operand o{};
  o.strides[0] = t.strides[0], o.strides[1] = t.strides[1];
  for (int i = 2; i < t.rank(); ++i) o.strides[i + 5 - t.rank()] = t.strides[i];
  return o;
}

// One of the operation's large tensors.
struct Side {
  TensorId id;
  Dims dims;  // n, c and three spatial ones
};

Side side(const Graph& g, TensorId id) {
  const Tensor& t = g.tensor(id);
  Side s{id, Dims::filled(5, 1)};
  s.dims[0] = t.dims[0], s.dims[1] = t.dims[1];
  for (int i = 2; i < t.rank(); ++i) s.dims[i + 5 - t.rank()] = t.dims[i];
  return s;
}

bool channels_last(const Tensor& t) { return t.dims[1] > 1 && t.strides[1] < t.strides[t.rank() - 1]; }

// Whether all tensors allow v channels to move in one access.
bool moves_together(const Graph& g, const std::vector<TensorId>& tensors, int64_t v) {
  return std::all_of(tensors.begin(), tensors.end(), [&](TensorId id) {
    if (id == kNone) return true;
    const Tensor& t = g.tensor(id);
    int64_t bytes = info(t.dtype).bits / 8, unit = std::min<int64_t>(16, bytes * v);
    if (bytes == 0 || t.strides[1] != 1 || t.dims[1] % v != 0 || (t.stored && t.alignment % unit != 0)) return false;
    for (int i = 0; i < t.rank(); ++i)
      if (i != 1 && t.dims[i] > 1 && t.strides[i] % v != 0) return false;
    return true;
  });
}

// As many as 16 bytes hold where they lie side by side in `tensors` and all else (`may_move`); a few planes of
// `written` where they do not.
Channels choose_channels(const Graph& g, TensorId written, const std::vector<TensorId>& tensors, bool may_move = true) {
  int64_t widest = 1;
  for (TensorId t : tensors)
    if (t != kNone) widest = std::max<int64_t>(widest, info(g.tensor(t).dtype).bits / 8);
  for (int64_t v = std::min<int64_t>(16 / widest, 8); may_move && v > 1; v /= 2)
    if (moves_together(g, tensors, v)) return {v, true};
  const Tensor& t = g.tensor(written);
  if (!channels_last(t) && t.dims[1] % kPlanes == 0) return {kPlanes, false};
  return {};
}

class Builder {
 public:
  Builder(const Region& r, const Device& d)
      : r_(r),
        g_(*r.graph),
        n_(g_.node(r.nodes[0])),
        d_(d),
        forward_(n_.op == &ops::resample),
        x_(side(g_, forward_ ? n_.in[0] : n_.out[0])),
        y_(side(g_, forward_ ? n_.out[0] : n_.in[kDy])),
        step_(std::make_unique<Launches<dev::ResampleArgs>>()) {}

  std::unique_ptr<Step> run() {
    set_options();
    if (forward_) {
      index_ = wanted(r_, slot(n_.out, 1));
      bind_all();
      TensorId y = wanted(r_, y_.id);
      forward(*step_,
              {x_.id, y, index_, device_type_of(g_, index_), y_.dims, choose_channels(g_, y_.id, {x_.id, y, index_})},
              number({x_.id, y_.id, index_}));
      return std::move(step_);
    }
    index_ = slot(n_.in, kIndex);
    bind_all();
    if (args().kind == dev::kMaximum && index_ == kNone) return with_maxima();
    backward(device_type_of(g_, index_), choose_channels(g_, x_.id, {x_.id, y_.id, index_}));
    return std::move(step_);
  }

 private:
  dev::ResampleArgs& args() { return step_->args; }

  void bind(dev::Operand& o, TensorId t) {
    step_->bind(o, g_, t);
    if (t != kNone) o = spread(g_.tensor(t));
  }

  void bind_all() {
    bind(args().x, x_.id);
    bind(args().y, forward_ ? wanted(r_, y_.id) : y_.id);
    bind(args().index, index_);
  }

  void set_options() {
    int spatial = g_.tensor(x_.id).rank() - 2;
    ResampleOptions o = with_defaults(attrs<ResampleOptions>(n_), spatial);
    args().kind = static_cast<int>(o.mode);
    args().pad = o.padding == PaddingMode::neg_inf ? dev::kPadInfinity
                 : o.padding == PaddingMode::edge  ? dev::kPadEdge
                                                   : dev::kPadZero;
    args().alpha = o.alpha;
    for (int d = 0; d < 3; ++d) {
      int real = d - (3 - spatial);
      dev::ResampleAxis& a = args().axes[d];
      if (real < 0)
        a = {1, 1, make_line(1, 0, 1), make_line(1, 1, 1), 1};
      else
        a = make_axis(o, real, x_.dims[2 + d], y_.dims[2 + d]);
      small_ = small_ && fits_31_bits(a);
    }
  }

  std::string number(std::initializer_list<TensorId> tensors) const {
    bool small = small_;
    for (TensorId t : tensors)
      if (t != kNone) small = small && g_.tensor(t).span() < (int64_t{1} << 30);
    return small ? "i32" : "i64";
  }

  // Threads over the elements of one side, some channels each.
  Grid share_out(const Side& s, const Channels& c, dev::ResampleArgs& a) const {
    const Dims& n = s.dims;
    a.channels_last = channels_last(g_.tensor(s.id));
    int64_t tile = a.channels_last ? std::clamp<int64_t>(n[3], 1, kTileRows) : 1, rows = ceil_div(n[3], tile);
    auto divisor = [](int64_t size) { return dev::make_divisor(std::max<int64_t>(1, size)); };
    a.channels = divisor(n[1] / c.count), a.tile = divisor(tile), a.columns = divisor(n[4]), a.rows = divisor(rows);
    a.depth = divisor(n[2]);
    a.threads = n[0] * (n[1] / c.count) * n[2] * rows * tile * n[4];
    return {ceil_div(a.threads, kThreads), kThreads, 0};
  }

  // From x to y and the index, of which one may be unwanted.
  void forward(Launches<dev::ResampleArgs>& step, const PoolTensors& t, const std::string& number) const {
    std::string lane = lane_of(g_, n_, {t.x, t.y});
    if (lane == "float")
      if (std::optional<PoolKernel> pool = choose_pool(g_, t, step.args))
        return step.add(pool->include, "ResampleArgs", pool->body, pool->grid, d_);
    bool max = step.args.kind == dev::kMaximum;
    step.add("engines/cuda/resample/forward.cuh", "ResampleArgs",
             instance("resample", lane, device_type_of(g_, t.x), device_type_of(g_, t.y), t.index_type, number,
                      t.channels.count, t.channels.together, max),
             share_out(y_, t.channels, step.args), d_);
  }

  void backward(const std::string& index, const Channels& c) {
    std::string lane = lane_of(g_, n_, {x_.id, y_.id});
    if (lane == "float")
      if (std::optional<PoolKernel> pool = choose_pool_bwd(g_, {x_.id, y_.id, index_, index, y_.dims, c}, args()))
        return step_->add(pool->include, "ResampleArgs", pool->body, pool->grid, d_);
    step_->add("engines/cuda/resample/backward.cuh", "ResampleArgs",
               instance("resample_bwd", lane, device_type_of(g_, y_.id), device_type_of(g_, x_.id), index,
                        number({x_.id, y_.id, index_}), c.count, c.together),
               share_out(x_, c, args()), d_);
  }

  std::unique_ptr<Step> with_maxima();

  const Region& r_;
  const Graph& g_;
  const Node& n_;
  const Device& d_;
  bool forward_, small_ = true;  // 31 bits hold all positions
  Side x_, y_;
  TensorId index_ = kNone;
  std::unique_ptr<Launches<dev::ResampleArgs>> step_;
};

// Where the maxima of x are, then as if their index had been given. The index lies in the workspace, packed in the
// order of dy.
std::unique_ptr<Step> Builder::with_maxima() {
  TensorId x = n_.in[kX];
  const Dims& n = y_.dims;
  bool last = channels_last(g_.tensor(y_.id));
  dev::Operand index{};
  int64_t stride = 1;
  constexpr int kOrders[2][5] = {{4, 3, 2, 1, 0}, {1, 4, 3, 2, 0}};
  for (int axis : kOrders[last]) index.strides[axis] = stride, stride *= n[axis];
  int64_t positions = args().axes[0].extent * args().axes[1].extent * args().axes[2].extent;
  std::string type = positions <= 128 ? "i8" : "i32";
  args().index = index;
  args().index_in_workspace = true;
  auto bytes = static_cast<size_t>(stride) * (positions <= 128 ? 1 : 4);

  auto maxima = std::make_unique<Launches<dev::ResampleArgs>>();
  maxima->args = args();
  maxima->bind(maxima->args.x, g_, x);
  maxima->args.x = spread(g_.tensor(x));
  maxima->workspace = bytes;
  forward(*maxima, {x, kNone, kNone, type, y_.dims, choose_channels(g_, y_.id, {x}, last)}, number({x, y_.id}));
  step_->workspace = bytes;
  backward(type, choose_channels(g_, x_.id, {x_.id, y_.id}, last));
  auto both = std::make_unique<Sequence>();
  both->add(std::move(maxima));
  both->add(std::move(step_));
  return both;
}

class ResampleEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"resample_cuda", 108, DeviceKind::cuda, true,
                                         "pooling and interpolation, forward and backward"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (r.nodes.size() != 1) return Reason::no("pooling and interpolation run alone");
    const Node& n = r.graph->node(r.nodes[0]);
    if (n.op != &ops::resample && n.op != &ops::resample_bwd)
      return Reason::no(spelling(n), " is neither resample nor resample_bwd");
    if (Reason why = check_elements(r); !why) return why;
    constexpr double kEfficiency = 0.1;
    return one_way(roofline(r, d, kEfficiency) + d.step_seconds, [&r, &d] { return Builder(r, d).run(); });
  }
};

}  // namespace

const Engine& resample_engine() {
  static const ResampleEngine e;
  return e;
}

}  // namespace tsr::cuda
