// SPDX-License-Identifier: Apache-2.0
// Convolutions by Fourier's transform, in tiles: an axis of pictures is cut into tiles, each as long as a transform,
// and the filter, zeros behind it, is one more or, where it is long, several blocks. Transforms are products with a
// matrix of cosines; between them stands a convolution over tiles, with a tap for each block of the filter and as many
// times the groups as transforms have points. A product of complex numbers takes three of real ones,
//   Re (a + bi)(c + di) = (a + b) c - b (c + d), Im = (a + b) c - a (c - d),
// so points of sources are a + b, b and a, those of filters c, c + d and c - d, for every frequency but the first and
// the last, which are real. Gradients are the same with the matrices' roles exchanged. What is not finite spreads
// within a tile, so these stages are for those who ask for them.
#include <limits>
#include <map>
#include <numbers>

#include "base/dims.hpp"
#include "graph/ops/list.hpp"
#include "planner/decompose/conv_tiles.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

// How an axis is cut: `tile` positions, or `block` taps, of a transform of `length` elements at a time.
struct Cut {
  TiledAxis axis;
  int64_t length, tile, block;

  bool transformed() const { return length > 1; }
  int64_t points() const { return transformed() ? 3 * length / 2 - 1 : 1; }
  int64_t tiles() const { return ceil_div(axis.out, tile); }
  int64_t blocks() const { return ceil_div(axis.taps, block); }
  int64_t sources() const { return tiles() + blocks() - 1; }  // tiles of the source
  int64_t reach() const { return (sources() - 1) * tile + length; }
};
using Cuts = std::vector<Cut>;

int64_t all_points(const Cuts& cuts) {
  int64_t all = 1;
  for (const Cut& c : cuts) all *= c.points();
  return all;
}

// Multiplications, counted by axis in the order in which pictures are transformed, the last axis first.
double cost_of(const Cuts& cuts, const ConvShape& c) {
  double source = static_cast<double>(c.images * c.groups * (c.dgrad ? c.filters : c.channels)),
         result = static_cast<double>(c.images * c.groups * (c.dgrad ? c.channels : c.filters)),
         filter = static_cast<double>(c.groups * c.filters * c.channels),
         product = filter * static_cast<double>(c.images), sum = 0;
  for (size_t i = 0; i < cuts.size(); ++i) {
    auto points = static_cast<double>(cuts[i].points());
    product *= points * static_cast<double>(cuts[i].tiles() * cuts[i].blocks());
    if (!cuts[i].transformed()) continue;
    double of_source = source * points * static_cast<double>(cuts[i].sources() * cuts[i].length),
           of_result = result * points * static_cast<double>(cuts[i].tiles() * cuts[i].tile),
           of_filter = filter * points * static_cast<double>(cuts[i].blocks() * cuts[i].block);
    for (size_t j = 0; j < cuts.size(); ++j) {
      const Cut& o = cuts[j];
      if (j < i)
        of_source *= static_cast<double>(o.reach()), of_result *= static_cast<double>(o.tiles() * o.tile),
            of_filter *= static_cast<double>(o.blocks() * o.block);
      if (j > i)
        of_source *= static_cast<double>(o.sources() * o.points()),
            of_result *= static_cast<double>(o.tiles() * o.points()),
            of_filter *= static_cast<double>(o.blocks() * o.points());
    }
    sum += of_source + of_result + of_filter;
  }
  return sum + product;
}

std::vector<Cut> ways_to_cut(const TiledAxis& a) {
  constexpr int64_t kLongest = 256;
  if (a.taps == 1) return {{a, 1, 1, 1}};
  std::vector<Cut> ways;
  for (int64_t length = 4; length <= kLongest; length *= 2) {
    if (length >= a.taps) ways.push_back({a, length, length - a.taps + 1, a.taps});
    if (length / 2 < a.taps) ways.push_back({a, length, length / 2, length / 2});
  }
  return ways;
}

// The cheapest of all ways to cut the axes.
Cuts choose_cuts(const ConvShape& c) {
  std::vector<std::vector<Cut>> ways;
  size_t count = 1;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    ways.push_back(ways_to_cut(tiled_axis(c, i)));
    count *= ways.back().size();
  }
  Cuts best;
  double least = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < count; ++k) {
    Cuts cuts;
    size_t rest = k;
    for (const std::vector<Cut>& w : ways) cuts.push_back(w[rest % w.size()]), rest /= w.size();
    if (double cost = cost_of(cuts, c); cost < least) least = cost, best = cuts;
  }
  return best;
}

// Runs along an axis, and what lies around them: before it, the parts into which it is cut, axes behind it, points of
// axes that have been transformed, elements of a run, channels.
struct Runs {
  int64_t before, parts, behind, later, within;

  Dims dims(int64_t run) const { return {before, parts, behind, later, run, within}; }
  // Strides of [before][axis][behind][later][within]: of axes of this size, parts so many elements apart.
  Dims of_elements(int64_t size, int64_t apart) const {
    int64_t element = behind * later * within;
    return {size * element, apart * element, later * within, within, element, 1};
  }
  // Of [before][parts][behind][points][later][within].
  Dims of_points(int64_t points) const {
    int64_t one = later * within;
    return {parts * behind * points * one, behind * points * one, points * one, within, one, 1};
  }
  // Of [points][later][before][parts][behind][within].
  Dims points_first() const {
    int64_t one = before * parts * behind * within;
    return {parts * behind * within, behind * within, within, one, later * one, 1};
  }
};

class Fourier {
 public:
  Fourier(const Region& r, const Node& n, Decomposition& d)
      : g_(*r.graph),
        r_(r),
        n_(n),
        d_(d),
        c_(conv_shape(g_, n)),
        cuts_(choose_cuts(c_)),
        points_(all_points(cuts_)),
        type_(wide_compute(n)),
        results_(c_.dgrad ? c_.channels : c_.filters),
        summed_(c_.dgrad ? c_.filters : c_.channels) {}

  void write() {
    check_tiled(r_, n_, c_);
    c_.wgrad ? write_filter_gradient() : write_convolution();
  }

 private:
  // --- matrices
  enum class Of : uint8_t { sources, filters, results };
  // [points, count]: what each point is of each element. Of frequency f, points have a * cos + b * sin of f * element,
  // where a and b depend on the kind of the point, 0, 1 or 2. Point 0 is all of frequency 0, the last all of the
  // highest.
  TensorId matrix(Of of, const Cut& c) {
    int64_t count = of == Of::sources ? c.length : of == Of::filters ? c.block : c.tile;
    auto [known, made] = matrices_.try_emplace({of, c.length, count}, kNone);
    if (!made) return known->second;
    TensorId to = known->second = d_.temporary(type_, {c.points(), count});
    TensorId sizes = d_.view(n_.in[0], {c.points(), count}, {0, 0});  // for its positions alone
    TensorId point = d_.positions(sizes, 0, type_), element = d_.positions(sizes, 1, type_);
    TensorId frequency = apply(M::floor, scaled(plus(point, 2.5), 1.0 / 3));
    TensorId kind = apply(M::sub, plus(point, 2), scaled(frequency, 3));
    if (of == Of::filters && c.axis.reversed) element = plus(scaled(element, -1), static_cast<double>(count - 1));
    auto length = static_cast<double>(c.length);
    TensorId turns = apply(M::mod, apply(M::mul, frequency, element), number(length));
    TensorId angle = scaled(turns, 2 * std::numbers::pi / length);
    TensorId a = kNone, b = kNone;
    switch (of) {
      case Of::sources:
        a = polynomial(kind, 1, -2, 1), b = polynomial(kind, -1, -0.5, 0.5);
        break;
      case Of::filters:
        b = polynomial(kind, 0, 2.5, -1.5);
        break;
      case Of::results: {
        TensorId first = apply(M::max, plus(scaled(point, -1), 1), number(0));
        TensorId last = apply(M::max, plus(point, static_cast<double>(2 - c.points())), number(0));
        a = apply(M::add, polynomial(kind, 1, -3.5, 1.5), scaled(apply(M::sub, first, last), 0.5));
        b = plus(kind, -1);
        break;
      }
    }
    TensorId cosine = apply(M::cos, angle), sine = apply(M::mul, apply(M::sin, angle), b);
    if (a != kNone) cosine = apply(M::mul, cosine, a);
    double factor = of == Of::results ? 2 / length : 1;
    d_.pointwise({.mode = M::add, .alpha1 = factor, .alpha2 = factor}, {cosine, sine}, type_, to);
    d_.end_stage();
    return to;
  }
  TensorId number(double x) { return d_.constant(x, type_); }
  TensorId apply(M mode, TensorId a, TensorId b = kNone) { return d_.apply(mode, type_, a, b); }
  TensorId plus(TensorId x, double y) { return apply(M::add, x, number(y)); }
  TensorId scaled(TensorId x, double y) { return apply(M::mul, x, number(y)); }
  TensorId polynomial(TensorId x, double p0, double p1, double p2) {
    return plus(apply(M::mul, x, plus(scaled(x, p2), p1)), p0);
  }

  // --- transforms
  // A matrix times all runs of `from`.
  void multiply(Of of, const Cut& c, bool to_points, const Runs& r, TensorId from, const Dims& from_strides,
                TensorId to, const Dims& to_strides) {
    TensorId m = matrix(of, c);
    int64_t points = c.points(), elements = d_.tensor(m).dims[1];
    int64_t rows = to_points ? points : elements, depth = to_points ? elements : points;
    Dims strides = to_points ? Dims{0, 0, 0, 0, elements, 1} : Dims{0, 0, 0, 0, 1, elements};
    d_.add(ops::matmul,
           {d_.reshaped(m, {1, 1, 1, 1, rows, depth}, strides), d_.reshaped(from, r.dims(depth), from_strides)},
           {d_.reshaped(to, r.dims(rows), to_strides)}, tessera::MatmulOptions{}, type_);
    d_.end_stage();
  }
  // Sizes of an axis of sources, of results and of filters.
  struct Axis {
    int64_t size, apart, parts;
  };
  static Axis axis_of(Of of, const Cut& c) {
    if (of == Of::sources) return {c.reach(), c.tile, c.sources()};
    if (of == Of::results) return {c.tiles() * c.tile, c.tile, c.tiles()};
    return {c.blocks() * c.block, c.block, c.blocks()};
  }
  Runs runs(Of of, size_t i, int64_t outer, int64_t channels) const {
    Runs r{outer, axis_of(of, cuts_[i]).parts, 1, 1, channels};
    for (size_t j = 0; j < cuts_.size(); ++j) {
      if (j < i) r.before *= axis_of(of, cuts_[j]).size;
      if (j > i) r.behind *= axis_of(of, cuts_[j]).parts, r.later *= cuts_[j].points();
    }
    return r;
  }
  static int64_t elements(const Runs& r, int64_t run) { return volume(r.dims(run)); }
  // Is an axis the last one to be transformed, or the first to be transformed back?
  bool is_outermost(size_t i) const {
    for (size_t j = 0; j < i; ++j)
      if (cuts_[j].transformed()) return false;
    return true;
  }

  // [outer][axes][channels] to [outer][parts][points][channels]; of filters [points][outer][parts][channels].
  TensorId transform(Of of, TensorId x, int64_t outer, int64_t channels) {
    for (size_t i = cuts_.size(); i-- > 0;) {
      const Cut& c = cuts_[i];
      if (!c.transformed()) continue;
      Runs r = runs(of, i, outer, channels);
      Axis a = axis_of(of, c);
      TensorId to = d_.temporary(type_, {elements(r, c.points())});
      bool first = of == Of::filters && is_outermost(i);
      multiply(of, c, true, r, x, r.of_elements(a.size, a.apart), to,
               first ? r.points_first() : r.of_points(c.points()));
      x = to;
    }
    return x;
  }
  // And back.
  TensorId transform_back(Of of, TensorId x, int64_t outer, int64_t channels) {
    for (size_t i = 0; i < cuts_.size(); ++i) {
      const Cut& c = cuts_[i];
      if (!c.transformed()) continue;
      Runs r = runs(of, i, outer, channels);
      Axis a = axis_of(of, c);
      TensorId to = d_.temporary(type_, {elements(r, a.apart)});
      bool first = of == Of::filters && is_outermost(i);
      multiply(of, c, false, r, x, first ? r.points_first() : r.of_points(c.points()), to,
               r.of_elements(a.size, a.apart));
      x = to;
    }
    return x;
  }

  // --- tensors
  // Sizes or strides [first, second, axes ..] as [first, axes .., second].
  static Dims second_last(const Dims& d) {
    Dims y = {d[0]};
    for (int i = 2; i < d.size(); ++i) y.push_back(d[i]);
    y.push_back(d[1]);
    return y;
  }
  TensorId framed_pictures(TensorId outer, Of of) {
    const Tensor& x = g_.tensor(outer);
    Dims sizes = second_last(x.dims), low = Dims::filled(sizes.size(), 0);
    for (size_t i = 0; i < cuts_.size(); ++i) {
      sizes[static_cast<int>(i) + 1] = axis_of(of, cuts_[i]).size;
      if (of == Of::sources) low[static_cast<int>(i) + 1] = cuts_[i].axis.low;
    }
    return d_.framed(outer, second_last(x.dims), second_last(x.strides), sizes, low, type_);
  }
  // A filter as [groups, results of one, taps .., what is summed over]. Taps in the other order end where blocks do.
  struct Filter {
    Dims dims, strides, sizes, low;
  };
  Filter filter(const Tensor& w) const {
    int result = c_.dgrad ? 1 : 0, sum = 1 - result;
    Filter f{{c_.groups, results_}, {c_.filters * w.strides[0], w.strides[result]}, {c_.groups, results_}, {0, 0}};
    for (size_t i = 0; i < cuts_.size(); ++i) {
      const Cut& c = cuts_[i];
      int64_t size = axis_of(Of::filters, c).size;
      f.dims.push_back(c.axis.taps), f.strides.push_back(w.strides[static_cast<int>(i) + 2]);
      f.sizes.push_back(size), f.low.push_back(c.axis.reversed ? c.axis.taps - size : 0);
    }
    f.dims.push_back(summed_), f.strides.push_back(w.strides[sum]), f.sizes.push_back(summed_), f.low.push_back(0);
    return f;
  }

  // [images][tiles][points][channels] as pictures of the convolution over tiles.
  TensorId as_pictures(TensorId memory, Of of, int64_t channels) {
    Dims dims = {c_.images, points_ * channels};
    for (const Cut& c : cuts_) dims.push_back(axis_of(of, c).parts);
    Dims packed = packed_strides(second_last(dims)), strides = {packed[0], 1};
    for (int i = 1; i + 1 < packed.size(); ++i) strides.push_back(packed[i]);
    return d_.reshaped(memory, dims, strides);
  }
  // [points][results][blocks][summed] as its filter.
  TensorId as_filter(TensorId memory) {
    Dims dims = {points_ * c_.groups * results_, summed_};
    for (const Cut& c : cuts_) dims.push_back(c.blocks());
    Dims packed = packed_strides(second_last(dims)), strides = {packed[0], 1};
    for (int i = 1; i + 1 < packed.size(); ++i) strides.push_back(packed[i]);
    return d_.reshaped(memory, dims, strides);
  }
  tessera::ConvOptions options() const {
    tessera::ConvOptions o;
    o.groups = points_ * c_.groups;
    if (cuts_[0].axis.reversed) o.mode = tessera::ConvMode::convolution;  // blocks are, too
    return o;
  }

  void write_convolution() {
    int64_t sources = c_.groups * summed_, results = c_.groups * results_;
    TensorId pictures = transform(Of::sources, framed_pictures(n_.in[0], Of::sources), c_.images, sources);
    Filter f = filter(*c_.w);
    TensorId taps =
        transform(Of::filters, d_.framed(n_.in[1], f.dims, f.strides, f.sizes, f.low, type_), results, summed_);
    Dims dims = {c_.images};
    for (const Cut& c : cuts_) dims.push_back(c.tiles());
    dims.push_back(points_ * results);
    TensorId products = d_.temporary(type_, dims);
    d_.add(ops::conv_fprop, {as_pictures(pictures, Of::sources, sources), as_filter(taps)},
           {as_pictures(products, Of::results, results)}, options(), type_);
    d_.end_stage();
    TensorId all = transform_back(Of::results, products, c_.images, results);

    const Tensor& y = g_.tensor(n_.out[0]);
    Dims sizes = second_last(y.dims);
    for (size_t i = 0; i < cuts_.size(); ++i) sizes[static_cast<int>(i) + 1] = axis_of(Of::results, cuts_[i]).size;
    Dims packed = packed_strides(sizes), strides = {packed[0], 1};
    for (int i = 1; i + 1 < packed.size(); ++i) strides.push_back(packed[i]);
    Node first;
    first.op = &ops::pointwise, first.in = {d_.reshaped(all, y.dims, strides)}, first.out = n_.out;
    first.attrs = tessera::PointwiseOptions{.mode = M::identity}, first.compute = type_;
    std::map<TensorId, TensorId> here;
    d_.add_region(r_, first, here, [&](TensorId t) { return d_.whole(t); });
  }

  void write_filter_gradient() {
    int64_t channels = c_.groups * summed_, filters = c_.groups * results_;
    TensorId pictures = transform(Of::sources, framed_pictures(n_.in[1], Of::sources), c_.images, channels);
    TensorId gradients = transform(Of::results, framed_pictures(n_.in[0], Of::results), c_.images, filters);
    int64_t blocks = 1;
    for (const Cut& c : cuts_) blocks *= c.blocks();
    TensorId products = d_.temporary(type_, {points_ * filters * blocks * summed_});
    tessera::ConvOptions o = options();
    for (const Cut& c : cuts_) o.size.push_back(c.blocks());
    d_.add(ops::conv_wgrad,
           {as_pictures(gradients, Of::results, filters), as_pictures(pictures, Of::sources, channels)},
           {as_filter(products)}, o, type_);
    d_.end_stage();
    TensorId all = transform_back(Of::filters, products, filters, summed_);
    Filter f = filter(*c_.w);
    int64_t from = 0;
    Dims packed = packed_strides(f.sizes);
    for (int i = 0; i < packed.size(); ++i) from -= f.low[i] * packed[i];
    d_.apply(M::identity, type_, d_.reshaped(all, f.dims, packed, from), kNone, d_.view(n_.out[0], f.dims, f.strides));
    d_.end_stage();
  }

  const Graph& g_;
  const Region& r_;
  const Node& n_;
  Decomposition& d_;
  ConvShape c_;
  Cuts cuts_;
  int64_t points_;
  DType type_;
  int64_t results_, summed_;  // channels of one group
  std::map<std::tuple<Of, int64_t, int64_t>, TensorId> matrices_;
};

}  // namespace

bool has_several_taps(const Graph& g, const Node& n) {
  ConvShape c = conv_shape(g, n);
  return meets_every_element(c, n) && c.taps > 1;
}

void decompose_fourier(const Region& r, const Node& n, Decomposition& d) { Fourier(r, n, d).write(); }

}  // namespace tsr
