// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/conv1d/sequences.hpp"

#include <algorithm>

#include "engines/cpu/conv1d/rows.hpp"
#include "engines/cpu/vector/kernels.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

using M = tessera::PointwiseMode;

// A tensor of the node as rows along its last dimension.
struct Rows {
  TensorId id = kNone;
  DType type = DType::f32;
  Dims strides;
  int64_t length = 0;

  Rows() = default;
  Rows(const Graph& g, const std::vector<TensorId>& slots, size_t slot) {
    if (slot >= slots.size() || slots[slot] == kNone) return;
    const Tensor& t = g.tensor(slots[slot]);
    id = slots[slot], type = t.dtype, strides = t.strides, length = t.dims.back();
  }
  explicit operator bool() const { return id != kNone; }

  // The row (or the single value) at these leading indices.
  int64_t offset(std::initializer_list<int64_t> index) const {
    int64_t o = 0;
    int d = 0;
    for (int64_t i : index) o += i * strides[d++];
    return o;
  }
  void load(void* const* t, std::initializer_list<int64_t> index, float* to) const {
    kernels().load(type, Lane::f32, t[id], offset(index), strides.back(), to, length);
  }
  // Results that nobody wants have no memory.
  bool wanted(void* const* t) const { return id != kNone && t[id]; }
  void store(void* const* t, std::initializer_list<int64_t> index, const float* from) const {
    if (!wanted(t)) return;
    kernels().store(type, Lane::f32, from, t[id], offset(index), strides.back(), length);
  }
  float value(void* const* t, int64_t i) const {
    float v;
    kernels().load(type, Lane::f32, t[id], i * strides[0], 1, &v, 1);
    return v;
  }
  void set(void* const* t, int64_t i, double v) const {
    if (!wanted(t)) return;
    auto narrow = static_cast<float>(v);
    kernels().store(type, Lane::f32, &narrow, t[id], i * strides[0], 1, 1);
  }
};

// Scratch memory handed out piece by piece.
class Scratch {
 public:
  explicit Scratch(std::byte* at) : at_(at) {}
  float* row(int64_t n) { return take<float>(n); }
  double* sums(int64_t n) {
    auto* p = take<double>(n);
    std::fill_n(p, n, 0.0);
    return p;
  }

 private:
  template <class T>
  T* take(int64_t n) {
    auto* p = reinterpret_cast<T*>(at_);
    at_ += (n * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return p;
  }
  std::byte* at_;
};
size_t row_bytes(int64_t n, size_t each) { return (static_cast<size_t>(n) * each + 63) / 64 * 64; }

void store_sums(const Rows& to, void* const* t, std::initializer_list<int64_t> index, const double* sums) {
  if (!to.wanted(t)) return;
  kernels().store(to.type, Lane::f64, sums, t[to.id], to.offset(index), to.strides.back(), to.length);
}

void apply(M mode, const float* a, const float* b, float* y, int64_t n) {
  tessera::PointwiseOptions o;
  o.mode = mode;
  kernels().apply(Lane::f32, {&o, a, b, nullptr, false, false, false, y, n});
}

// One filter for each channel. Filters are turned so that tap j meets x[t - j].
class CausalConv : public SequenceWork {
 public:
  CausalConv(const Graph& g, const Node& n)
      : x_(g, n.in, 0),
        w_(g, n.in, 1),
        silu_(attrs<tessera::CausalConvOptions>(n).activation == tessera::CausalActivation::silu),
        reversed_(attrs<tessera::CausalConvOptions>(n).reversed) {
    const Tensor& x = g.tensor(n.in[0]);
    batch_ = x.dims[0], channels_ = x.dims[1], length_ = x.dims[2], taps_ = w_.length;
  }

 protected:
  void load_filter(void* const* t, int64_t channel, float* w) const {
    w_.load(t, {channel}, w);
    if (!reversed_) std::reverse(w, w + taps_);
  }
  Rows x_, w_;
  int64_t batch_, length_, taps_;
  bool silu_, reversed_;
};

class Forward : public CausalConv {
 public:
  Forward(const Graph& g, const Node& n) : CausalConv(g, n), bias_(g, n.in, 2), y_(g, n.out, 0) {
    scratch_ = 2 * row_bytes(length_, 4) + row_bytes(taps_, 4);
  }
  void run(void* const* t, int64_t channel, std::byte* scratch) const override {
    const SequenceLoops& loops = sequence_loops();
    Scratch s(scratch);
    float *w = s.row(taps_), *x = s.row(length_), *y = s.row(length_);
    load_filter(t, channel, w);
    float bias = bias_ ? bias_.value(t, channel) : 0;
    for (int64_t b = 0; b < batch_; ++b) {
      x_.load(t, {b, channel}, x);
      loops.convolve(x, w, taps_, bias, y, length_);
      if (silu_) apply(M::swish, y, nullptr, y, length_);
      y_.store(t, {b, channel}, y);
    }
  }

 private:
  Rows bias_, y_;
};

class Backward : public CausalConv {
 public:
  Backward(const Graph& g, const Node& n)
      : CausalConv(g, n), dy_(g, n.in, 2), bias_(g, n.in, 3), dx_(g, n.out, 0), dw_(g, n.out, 1), dbias_(g, n.out, 2) {
    scratch_ = 4 * row_bytes(length_, 4) + row_bytes(taps_, 4) + row_bytes(taps_, 8);
  }
  void run(void* const* t, int64_t channel, std::byte* scratch) const override {
    const SequenceLoops& loops = sequence_loops();
    Scratch s(scratch);
    double* dw = s.sums(taps_);
    float *w = s.row(taps_), *x = s.row(length_), *dz = s.row(length_), *z = s.row(length_), *dx = s.row(length_);
    load_filter(t, channel, w);
    float bias = bias_ ? bias_.value(t, channel) : 0;
    double dbias = 0;
    for (int64_t b = 0; b < batch_; ++b) {
      x_.load(t, {b, channel}, x);
      dy_.load(t, {b, channel}, dz);
      if (silu_) {
        loops.convolve(x, w, taps_, bias, z, length_);
        apply(M::swish_bwd, z, dz, dz, length_);
      }
      dbias += loops.sum(dz, length_);
      loops.filter_gradient(x, dz, taps_, dw, length_);
      std::fill_n(dx, length_, 0.0f);
      loops.correlate(dz, w, taps_, dx, length_);
      dx_.store(t, {b, channel}, dx);
    }
    if (!reversed_) std::reverse(dw, dw + taps_);
    store_sums(dw_, t, {channel}, dw);
    dbias_.set(t, channel, dbias);
  }

 private:
  Rows dy_, bias_, dx_, dw_, dbias_;
};

// Three projections p of x, g = p1 p2, y = mixer * g + skip g, gated = y p0.
class TwoConvs : public SequenceWork {
 public:
  TwoConvs(const Graph& g, const Node& n) : x_(g, n.in, 0), proj_(g, n.in, 1), mixer_(g, n.in, 2), skip_(g, n.in, 3) {
    const Tensor& x = g.tensor(n.in[0]);
    batch_ = x.dims[0], channels_ = x.dims[1], length_ = x.dims[3], kp_ = proj_.length, km_ = mixer_.length;
  }

 protected:
  struct Filters {
    float *proj[3], *mixer;
    float skip;
  };
  Filters load_filters(void* const* t, int64_t channel, Scratch& s) const {
    Filters f;
    for (int64_t part = 0; part < 3; ++part) {
      f.proj[part] = s.row(kp_);
      proj_.load(t, {channel, part}, f.proj[part]);
      std::reverse(f.proj[part], f.proj[part] + kp_);
    }
    f.mixer = s.row(km_);
    mixer_.load(t, {channel}, f.mixer);
    std::reverse(f.mixer, f.mixer + km_);
    f.skip = skip_.value(t, channel);
    return f;
  }
  size_t filter_bytes() const { return 3 * row_bytes(kp_, 4) + row_bytes(km_, 4); }

  Rows x_, proj_, mixer_, skip_;
  int64_t batch_, length_, kp_, km_;
};

class TwoConvsForward : public TwoConvs {
 public:
  TwoConvsForward(const Graph& g, const Node& n) : TwoConvs(g, n), y_(g, n.out, 0), gated_(g, n.out, 1) {
    scratch_ = filter_bytes() + 6 * row_bytes(length_, 4);
  }
  void run(void* const* t, int64_t channel, std::byte* scratch) const override {
    const SequenceLoops& loops = sequence_loops();
    Scratch s(scratch);
    Filters f = load_filters(t, channel, s);
    float *x = s.row(length_), *p[3] = {s.row(length_), s.row(length_), s.row(length_)}, *g = s.row(length_),
          *y = s.row(length_);
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t part = 0; part < 3; ++part) {
        x_.load(t, {b, channel, part}, x);
        loops.convolve(x, f.proj[part], kp_, 0, p[part], length_);
      }
      loops.multiply(p[1], p[2], g, length_);
      loops.convolve(g, f.mixer, km_, 0, y, length_);
      loops.add_scaled(g, f.skip, y, length_);
      y_.store(t, {b, channel}, y);
      if (!gated_.wanted(t)) continue;
      loops.multiply(y, p[0], y, length_);
      gated_.store(t, {b, channel}, y);
    }
  }

 private:
  Rows y_, gated_;
};

class TwoConvsBackward : public TwoConvs {
 public:
  TwoConvsBackward(const Graph& g, const Node& n)
      : TwoConvs(g, n),
        y_(g, n.in, 4),
        dy_(g, n.in, 5),
        dx_(g, n.out, 0),
        dproj_(g, n.out, 1),
        dmixer_(g, n.out, 2),
        dskip_(g, n.out, 3) {
    scratch_ = filter_bytes() + 3 * row_bytes(kp_, 8) + row_bytes(km_, 8) + 11 * row_bytes(length_, 4);
  }
  void run(void* const* t, int64_t channel, std::byte* scratch) const override {
    const SequenceLoops& loops = sequence_loops();
    Scratch s(scratch);
    double *dproj[3] = {s.sums(kp_), s.sums(kp_), s.sums(kp_)}, *dmixer = s.sums(km_), dskip = 0;
    Filters f = load_filters(t, channel, s);
    auto row = [&] { return s.row(length_); };
    float *x[3] = {row(), row(), row()}, *p[3] = {row(), row(), row()};
    float *g = row(), *dy = row(), *e = row(), *dg = row(), *d = row();
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t part = 0; part < 3; ++part) {
        x_.load(t, {b, channel, part}, x[part]);
        loops.convolve(x[part], f.proj[part], kp_, 0, p[part], length_);
      }
      dy_.load(t, {b, channel}, dy);
      loops.multiply(p[1], p[2], g, length_);
      loops.multiply(dy, p[0], e, length_);
      dskip += loops.dot(e, g, length_);
      loops.filter_gradient(g, e, km_, dmixer, length_);
      loops.scale(e, f.skip, dg, length_);
      loops.correlate(e, f.mixer, km_, dg, length_);
      for (int64_t part = 0; part < 3; ++part) {
        if (part == 0) {
          y_.load(t, {b, channel}, d);
          loops.multiply(d, dy, d, length_);
        } else {
          loops.multiply(dg, p[3 - part], d, length_);
        }
        loops.filter_gradient(x[part], d, kp_, dproj[part], length_);
        std::fill_n(e, length_, 0.0f);
        loops.correlate(d, f.proj[part], kp_, e, length_);
        dx_.store(t, {b, channel, part}, e);
      }
    }
    for (int64_t part = 0; part < 3; ++part) {
      std::reverse(dproj[part], dproj[part] + kp_);
      store_sums(dproj_, t, {channel, part}, dproj[part]);
    }
    std::reverse(dmixer, dmixer + km_);
    store_sums(dmixer_, t, {channel}, dmixer);
    dskip_.set(t, channel, dskip);
  }

 private:
  Rows y_, dy_, dx_, dproj_, dmixer_, dskip_;
};

}  // namespace

std::unique_ptr<SequenceWork> make_sequence_work(const Graph& g, const Node& n) {
  if (n.op == &ops::causal_conv1d) return std::make_unique<Forward>(g, n);
  if (n.op == &ops::causal_conv1d_bwd) return std::make_unique<Backward>(g, n);
  if (n.op == &ops::b2b_causal_conv1d) return std::make_unique<TwoConvsForward>(g, n);
  if (n.op == &ops::b2b_causal_conv1d_bwd) return std::make_unique<TwoConvsBackward>(g, n);
  return nullptr;
}

}  // namespace tsr::cpu
