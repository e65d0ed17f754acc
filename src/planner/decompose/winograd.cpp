// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3 x 3 at stride 1 in tiles of 2 x 2 positions, by Winograd's products of 4 x 4: 16 multiplications
// where 36 would be. With x a tile of 4 x 4 elements, w a filter and dy, y tiles of positions,
//   y = A' ((G w G') * (B' x B)) A, summed over channels, and dw = G' ((A dy A') * (B' x B)) G, summed over tiles;
// pictures' gradients are convolutions with the filter turned around. What is not finite spreads within a tile, so
// these stages are for those who ask for them.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "graph/ops/list.hpp"
#include "planner/decompose/conv_tiles.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;
using Matrix = std::vector<std::vector<double>>;
using Square = std::vector<std::vector<TensorId>>;

constexpr int64_t kTile = 2, kTaps = 3, kPoints = kTile + kTaps - 1;

const Matrix kOfPictures = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};  // B'
const Matrix kOfFilters = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};     // G
const Matrix kOfResults = {{1, 1, 1, 0}, {0, 1, -1, -1}};                                // A'

Matrix turned(const Matrix& m) {
  Matrix t(m[0].size(), std::vector<double>(m.size()));
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t j = 0; j < m[i].size(); ++j) t[j][i] = m[i][j];
  return t;
}

int64_t tiles(const TiledAxis& a) { return (a.out + kTile - 1) / kTile; }
int64_t reach(const TiledAxis& a) { return tiles(a) * kTile + kTaps - 1; }

class Winograd {
 public:
  Winograd(const Region& r, const Node& n, Decomposition& d)
      : g_(*r.graph),
        r_(r),
        n_(n),
        d_(d),
        c_(conv_shape(g_, n)),
        axes_{tiled_axis(c_, 0), tiled_axis(c_, 1)},
        type_(wide_compute(n)) {}

  void write() {
    check_tiled(r_, n_, c_);
    for (size_t i = 1; i < r_.nodes.size(); ++i) check_follower(g_.node(r_.nodes[i]));
    c_.wgrad ? write_filter_gradient() : write_convolution();
  }

 private:
  // --- sums with the factors of a matrix
  // Sum of factors times values, to `to` if that is given.
  TensorId sum(const std::vector<double>& factors, const std::vector<TensorId>& values, TensorId to) {
    std::vector<size_t> terms;
    for (bool first : {true, false})  // one that is added comes first
      for (size_t i = 0; i < factors.size(); ++i)
        if (factors[i] != 0 && (factors[i] > 0) == first) terms.push_back(i);
    TensorId total = kNone;
    for (size_t k = 0; k < terms.size(); ++k) {
      double f = factors[terms[k]];
      TensorId v = values[terms[k]], last = k + 1 == terms.size() ? to : kNone;
      if (std::abs(f) != 1)
        v = d_.apply(M::mul, type_, v, d_.constant(std::abs(f)), total == kNone && f > 0 ? last : kNone);
      if (total != kNone)
        total = d_.apply(f > 0 ? M::add : M::sub, type_, total, v, last);
      else if (f < 0)
        total = d_.apply(M::neg, type_, v, kNone, last);
      else
        total = last != kNone && v != last ? d_.apply(M::identity, type_, v, kNone, last) : v;
    }
    return total;
  }
  // m v m'. `to` tells where an element goes, or kNone.
  template <class To>
  Square transform(const Matrix& m, const Square& v, const To& to) {
    Square half(m.size(), std::vector<TensorId>(v[0].size())), y(m.size(), std::vector<TensorId>(m.size()));
    for (size_t j = 0; j < v[0].size(); ++j) {
      std::vector<TensorId> column;
      for (const auto& row : v) column.push_back(row[j]);
      for (size_t i = 0; i < m.size(); ++i) half[i][j] = sum(m[i], column, kNone);
    }
    for (size_t i = 0; i < m.size(); ++i)
      for (size_t j = 0; j < m.size(); ++j) y[i][j] = sum(m[j], half[i], to(i, j));
    return y;
  }
  // The same of views to a temporary [points][points][dims], in a stage of its own.
  TensorId transformed(const Matrix& m, const Square& v, const Dims& dims) {
    int64_t each = volume(dims);
    TensorId all = d_.temporary(type_, {kPoints, kPoints, each});
    transform(m, v,
              [&](size_t i, size_t j) { return d_.reshaped(all, dims, packed_strides(dims), point(i, j) * each); });
    d_.end_stage();
    return all;
  }
  static int64_t point(size_t i, size_t j) { return static_cast<int64_t>(i) * kPoints + static_cast<int64_t>(j); }
  template <class View>
  static Square square(int64_t n, const View& view) {
    Square v;
    for (int64_t i = 0; i < n; ++i) {
      v.emplace_back();
      for (int64_t j = 0; j < n; ++j) v.back().push_back(view(i, j));
    }
    return v;
  }

  // --- pictures, as [images, down, across, channels]
  int64_t all_tiles() const { return c_.images * tiles(axes_[0]) * tiles(axes_[1]); }
  Dims tile_dims(int64_t channels) const { return {c_.images, tiles(axes_[0]), tiles(axes_[1]), channels}; }
  static Dims channels_last(const Dims& d) { return {d[0], d[2], d[3], d[1]}; }
  // What a part [down, across] of pictures becomes from `low` on: the picture itself where that lies inside, or a copy
  // with zeros around it.
  struct Pictures {
    TensorId memory;
    bool outside;  // memory of the caller's
    Dims strides;
  };
  Pictures framed(TensorId outer, int64_t down, int64_t across, int64_t low_down, int64_t low_across) {
    const Tensor& x = g_.tensor(outer);
    Dims from = channels_last(x.strides);
    if (low_down == 0 && low_across == 0 && down <= x.dims[2] && across <= x.dims[3]) return {outer, true, from};
    Dims dims = {x.dims[0], down, across, x.dims[1]};
    TensorId to = d_.framed(outer, channels_last(x.dims), from, dims, {0, low_down, low_across, 0}, x.dtype);
    return {to, false, packed_strides(dims)};
  }
  // Element (i, j) of every tile.
  TensorId of_tiles(const Pictures& p, int64_t channels, int64_t i, int64_t j) {
    Dims strides = p.strides;
    int64_t offset = i * strides[1] + j * strides[2];
    strides[1] *= kTile, strides[2] *= kTile;
    return p.outside ? d_.view(p.memory, tile_dims(channels), strides, offset)
                     : d_.reshaped(p.memory, tile_dims(channels), strides, offset);
  }
  TensorId transformed_sources(TensorId outer) {
    int64_t channels = g_.tensor(outer).dims[1];
    Pictures p = framed(outer, reach(axes_[0]), reach(axes_[1]), axes_[0].low, axes_[1].low);
    return transformed(kOfPictures, square(kPoints, [&](int64_t i, int64_t j) { return of_tiles(p, channels, i, j); }),
                       tile_dims(channels));
  }

  // --- filters, whose taps are in the order in which sources meet them
  TensorId tap(TensorId outer, const Dims& dims, const Dims& strides, int64_t i, int64_t j) {
    const Dims& all = g_.tensor(outer).strides;
    if (axes_[0].reversed) i = kTaps - 1 - i;
    if (axes_[1].reversed) j = kTaps - 1 - j;
    return d_.view(outer, dims, strides, i * all[2] + j * all[3]);
  }

  // [points, rows, depth] times [points, depth, columns]; strides of the operands' last two dimensions.
  struct Operand {
    TensorId memory;
    int64_t outer, inner;
  };
  TensorId multiply(const Operand& a, const Operand& b, int64_t rows, int64_t depth, int64_t columns) {
    constexpr int64_t kAll = kPoints * kPoints;
    TensorId to = d_.temporary(type_, {kAll, rows, columns});
    d_.add(ops::matmul,
           {d_.reshaped(a.memory, {kAll, rows, depth}, {rows * depth, a.outer, a.inner}),
            d_.reshaped(b.memory, {kAll, depth, columns}, {depth * columns, b.outer, b.inner})},
           {to}, tessera::MatmulOptions{}, type_);
    d_.end_stage();
    return to;
  }
  Square results(TensorId products, const Dims& dims, const Dims& strides, int64_t each) {
    return square(kPoints,
                  [&](int64_t i, int64_t j) { return d_.reshaped(products, dims, strides, (i * kPoints + j) * each); });
  }

  void write_convolution() {
    const Tensor& w = g_.tensor(n_.in[1]);
    int from = c_.dgrad ? 0 : 1, to = 1 - from;  // the filter's dimensions that are summed over, and that remain
    int64_t channels = w.dims[from], filters = w.dims[to];
    TensorId pictures = transformed_sources(n_.in[0]);
    TensorId filter =
        transformed(kOfFilters,
                    square(kTaps,
                           [&](int64_t i, int64_t j) {
                             return tap(n_.in[1], {filters, channels}, {w.strides[to], w.strides[from]}, i, j);
                           }),
                    {filters, channels});
    TensorId products = multiply({pictures, channels, 1}, {filter, 1, channels}, all_tiles(), channels, filters);
    // Of tiles that reach beyond the results some positions are missing: each kind of position has a stage then.
    bool even = axes_[0].out % kTile == 0 && axes_[1].out % kTile == 0;
    for (int64_t i = 0; i < kTile; ++i)
      for (int64_t j = 0; j < kTile; ++j) {
        if (even && i + j > 0) continue;
        write_results(products, filters, even ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{i},
                      even ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{j});
      }
  }

  // Positions `down` by `across` of every tile, and the work that follows them.
  void write_results(TensorId products, int64_t filters, const std::vector<int64_t>& down,
                     const std::vector<int64_t>& across) {
    Dims dims = tile_dims(filters), strides = packed_strides(dims);
    dims[1] = (axes_[0].out - down[0] + 1) / kTile, dims[2] = (axes_[1].out - across[0] + 1) / kTile;
    if (volume(dims) == 0) return;
    Square m = results(products, dims, strides, all_tiles() * filters);
    std::vector<TensorId> column(kPoints);
    for (int64_t i : down) {
      std::vector<TensorId> half;
      for (int64_t j = 0; j < kPoints; ++j) {
        for (size_t k = 0; k < column.size(); ++k) column[k] = m[k][static_cast<size_t>(j)];
        half.push_back(sum(kOfResults[static_cast<size_t>(i)], column, kNone));
      }
      for (int64_t j : across) {
        here_.clear();
        sum(kOfResults[static_cast<size_t>(j)], half, placed(n_.out[0], dims, i, j));
        for (size_t k = 1; k < r_.nodes.size(); ++k) follow(g_.node(r_.nodes[k]), dims, i, j);
      }
    }
    d_.end_stage();
  }

  // --- pointwise work behind results
  void check_follower(const Node& n) {
    if (attrs<tessera::PointwiseOptions>(n).mode == M::gen_index)
      decline("positions are asked for behind ", spelling(n_));
    const Dims& y = g_.tensor(n_.out[0]).dims;
    for (const auto* list : {&n.in, &n.out})
      for (TensorId t : *list)
        if (t != kNone && !fits(g_.tensor(t).dims, y))
          decline("tensor ", describe(g_.tensor(t)), " has other sizes than ", spelling(n_));
  }
  // Does it repeat along dimensions of y, or have their sizes?
  static bool fits(const Dims& d, const Dims& y) {
    int missing = y.size() - d.size();
    for (int i = 0; missing >= 0 && i < d.size(); ++i)
      if (d[i] != 1 && d[i] != y[i + missing]) return false;
    return missing >= 0;
  }
  // Positions (i, j) of every tile in a tensor that follows the results.
  TensorId in_tiles(TensorId outer, const Dims& dims, int64_t i, int64_t j) {
    const Tensor& t = g_.tensor(outer);
    if (t.numel() == 1) return d_.whole(outer);
    Dims all = Dims::filled(4, 1), strides = Dims::filled(4, 0);
    for (int k = 0; k < t.rank(); ++k) all[k + 4 - t.rank()] = t.dims[k], strides[k + 4 - t.rank()] = t.strides[k];
    all = channels_last(all), strides = channels_last(strides);
    int64_t offset = 0;
    for (int k = 0; k < 4; ++k) {
      bool along = k == 1 || k == 2;
      if (all[k] == 1 && dims[k] != 1) continue;
      if (along && all[k] > 1) offset += (k == 1 ? i : j) * strides[k], strides[k] *= kTile;
      all[k] = dims[k];
    }
    return d_.view(outer, all, strides, offset);
  }
  TensorId placed(TensorId outer, const Dims& dims, int64_t i, int64_t j) {
    TensorId to = contains(r_.outputs, outer) ? in_tiles(outer, dims, i, j) : d_.sized(g_.tensor(outer).dtype, dims);
    return here_[outer] = to;
  }
  void follow(Node n, const Dims& dims, int64_t i, int64_t j) {
    for (TensorId& t : n.in)
      if (t != kNone) t = here_.count(t) ? here_[t] : in_tiles(t, dims, i, j);
    for (TensorId& t : n.out)
      if (t != kNone) t = placed(t, dims, i, j);
    d_.add(std::move(n));
  }

  void write_filter_gradient() {
    TensorId dy = n_.in[0];
    int64_t filters = g_.tensor(dy).dims[1], channels = g_.tensor(n_.in[1]).dims[1];
    TensorId pictures = transformed_sources(n_.in[1]);
    Pictures p = framed(dy, tiles(axes_[0]) * kTile, tiles(axes_[1]) * kTile, 0, 0);
    TensorId gradients =
        transformed(turned(kOfResults), square(kTile, [&](int64_t i, int64_t j) { return of_tiles(p, filters, i, j); }),
                    tile_dims(filters));
    TensorId products = multiply({gradients, 1, filters}, {pictures, channels, 1}, filters, all_tiles(), channels);
    Dims dims = {filters, channels}, strides = g_.tensor(n_.out[0]).strides;
    transform(turned(kOfFilters), results(products, dims, {channels, 1}, filters * channels), [&](size_t i, size_t j) {
      return tap(n_.out[0], dims, {strides[0], strides[1]}, static_cast<int64_t>(i), static_cast<int64_t>(j));
    });
    d_.end_stage();
  }

  const Graph& g_;
  const Region& r_;
  const Node& n_;
  Decomposition& d_;
  ConvShape c_;
  TiledAxis axes_[2];
  DType type_;
  std::map<TensorId, TensorId> here_;  // by tensors of the region, those of the positions being written
};

}  // namespace

bool is_three_by_three(const Graph& g, const Node& n) {
  ConvShape c = conv_shape(g, n);
  return meets_every_element(c, n) && c.axes.size() == 2 && c.groups == 1 &&
         std::all_of(c.axes.begin(), c.axes.end(), [](const ConvAxis& a) { return a.taps == kTaps; });
}

void decompose_winograd(const Region& r, const Node& n, Decomposition& d) { Winograd(r, n, d).write(); }

}  // namespace tsr
