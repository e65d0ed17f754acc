// SPDX-License-Identifier: Apache-2.0
// Scatter-add in a fixed order: updates are sorted by where they go, then every element of the result is summed by one
// thread, in the order of the updates.
#include <cstring>

#include "base/thread_pool.hpp"
#include "engines/cpu/index/index.hpp"
#include "graph/ops/gather.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cpu {
namespace {

using namespace slots::scatter_add;

class ScatterAddStep : public Step {
 public:
  ScatterAddStep(const Graph& g, const Node& n)
      : updates_(n.in[kUpdates]), index_(n.in[kIndex]), x_(slot(n.in, kX)), y_(n.out[0]), threads_(thread_count()) {
    const Tensor &u = g.tensor(updates_), &index = g.tensor(index_), &y = g.tensor(y_);
    const auto& o = attrs<tessera::ScatterAddOptions>(n);
    GatherLoops l = gather_loops(u, index, y, o.axis, o.mode);
    auto axis = static_cast<int>(normalize_axis(o.axis, y.rank()));
    bool elements = o.mode == tessera::GatherMode::elements;
    int width = elements ? 1 : index.rank();
    rows_ = l.rows, row_y_ = l.row_stride, row_x_ = x_ == kNone ? 0 : g.tensor(x_).strides[axis];
    for (int i = 0; i < u.rank(); ++i) {
      bool along = i >= axis && i < axis + width;
      int other = i < axis ? i : i - width + 1;
      int64_t x = x_ == kNone || along ? 0 : g.tensor(x_).strides[other];
      if (along || elements) keyed_.add(u.dims[i], {l.wide[i], l.index[i], 0}), keyed_places_.push_back(!along);
      if (!along) (elements ? places_ : free_).add(u.dims[i], {l.wide[i], l.narrow[i], x});
    }
    // The innermost of the dimensions that share an index are summed together.
    if (free_.dims.size() > 0) {
      run_ = free_.dims.back(), run_u_ = free_.strides[0].back(), run_y_ = free_.strides[1].back(),
      run_x_ = free_.strides[2].back();
      free_.drop_last();
    }
    edges_ = volume(keyed_.dims);
    type_u_ = u.dtype, type_y_ = y.dtype, type_x_ = x_ == kNone ? y.dtype : g.tensor(x_).dtype;
    index_type_ = index.dtype;
    lane_ = n.compute == DType::f64 ? Lane::f64 : is_integer(n.compute) ? Lane::i64 : Lane::f32;
  }

  // Where the updates of each place begin, and the offsets of all of them.
  size_t workspace_bytes() const override {
    return static_cast<size_t>(volume(places_.dims) * rows_ + 1 + edges_) * sizeof(int64_t);
  }

  void run(const StepArgs& a) const override {
    auto* begins = reinterpret_cast<int64_t*>(a.workspace);
    int64_t places = volume(places_.dims) * rows_, *offsets = begins + places + 1;
    sort(a.tensors[index_], begins, offsets, places);
    int64_t outer = volume(free_.dims), grain = std::max<int64_t>(1, kLeastElements / std::max<int64_t>(1, run_));
    // Work is one place of one of the free loops, rows innermost.
    Loops work = free_;
    for (int i = 0; i < places_.dims.size(); ++i)
      work.add(places_.dims[i], {0, places_.strides[1][i], places_.strides[2][i]});
    parallel_for(outer * places, grain, threads_, [&](int64_t first, int64_t last, int) {
      int64_t done = first;
      walk(work.dims, work.strides, first / std::max<int64_t>(1, rows_), ceil_div(last, std::max<int64_t>(1, rows_)),
           [&](int64_t item, const std::array<int64_t, 3>& at) {
             int64_t place = item % volume(places_.dims) * rows_;
             for (; done < std::min(last, (item + 1) * rows_); ++done) {
               int64_t row = done - item * rows_;
               const int64_t *from = offsets + begins[place + row], *to = offsets + begins[place + row + 1];
               sum(a, from, to, at[0], at[1] + row * row_y_, at[2] + row * row_x_);
             }
           });
    });
  }

 private:
  struct Loops {
    Dims dims;
    std::array<Dims, 3> strides;
    void add(int64_t size, const std::array<int64_t, 3>& steps) {
      dims.push_back(size);
      for (size_t k = 0; k < 3; ++k) strides[k].push_back(steps[k]);
    }
    void drop_last() {
      Loops shorter;
      for (int i = 0; i + 1 < dims.size(); ++i) shorter.add(dims[i], {strides[0][i], strides[1][i], strides[2][i]});
      *this = shorter;
    }
  };

  // A counting sort. `begins` ends up with the places where each list begins, and the end.
  void sort(const void* index, int64_t* begins, int64_t* offsets, int64_t places) const {
    std::memset(begins, 0, static_cast<size_t>(places + 1) * sizeof(int64_t));
    // The number of the place: the keyed dimensions that are those of the result, then the row.
    Loops keyed = keyed_;
    int64_t step = 1;
    for (int i = keyed.dims.size() - 1; i >= 0; --i) {
      bool counts = keyed_places_[static_cast<size_t>(i)];
      keyed.strides[2][i] = counts ? step : 0;
      if (counts) step *= keyed.dims[i];
    }
    auto each = [&](const auto& f) {
      walk(keyed.dims, keyed.strides, 0, edges_, [&](int64_t, const std::array<int64_t, 3>& at) {
        auto row = load<int64_t>(index_type_, index, at[1]);
        if (row >= 0 && row < rows_) f(at[2] * rows_ + row, at[0]);
      });
    };
    each([&](int64_t place, int64_t) { ++begins[place + 1]; });
    for (int64_t i = 0; i < places; ++i) begins[i + 1] += begins[i];
    each([&](int64_t place, int64_t update) { offsets[begins[place]++] = update; });
    for (int64_t i = places; i > 0; --i) begins[i] = begins[i - 1];
    begins[0] = 0;
  }

  void sum(const StepArgs& a, const int64_t* from, const int64_t* to, int64_t u, int64_t y, int64_t x) const {
    Lane wide = lane_ == Lane::i64 ? Lane::i64 : Lane::f64;
    alignas(64) double sums[kBlock], values[kBlock];
    for (int64_t i = 0; i < run_; i += kBlock) {
      int64_t m = std::min(kBlock, run_ - i);
      if (x_ == kNone)
        std::memset(sums, 0, static_cast<size_t>(m) * sizeof(double));
      else
        cpu::kernels().load(type_x_, wide, a.tensors[x_], x + i * run_x_, run_x_, sums, m);
      for (const int64_t* p = from; p < to; ++p) {
        cpu::kernels().load(type_u_, lane_, a.tensors[updates_], *p + u + i * run_u_, run_u_, values, m);
        cpu::kernels().accumulate(lane_, tessera::ReduceMode::add, values, m, sums);
      }
      cpu::kernels().store(type_y_, wide, sums, a.tensors[y_], y + i * run_y_, run_y_, m);
    }
  }

  TensorId updates_, index_, x_, y_;
  int threads_;
  Loops keyed_;                     // an update for each: steps of updates, index
  std::vector<bool> keyed_places_;  // which of them are dimensions of the result
  Loops places_, free_;             // of the result, beside rows: with an index of their own, and without
  int64_t edges_ = 0, rows_ = 0, row_y_ = 0, row_x_ = 0;
  int64_t run_ = 1, run_u_ = 1, run_y_ = 1, run_x_ = 1;
  DType type_u_, type_y_, type_x_, index_type_;
  Lane lane_;
};

}  // namespace

std::unique_ptr<Step> make_scatter_add(const Graph& g, const Node& n) { return std::make_unique<ScatterAddStep>(g, n); }

}  // namespace tsr::cpu
