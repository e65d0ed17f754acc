// SPDX-License-Identifier: Apache-2.0
// Running sums: along a row, or of neighbouring rows side by side where their elements lie closer than those of a row.
#include "base/thread_pool.hpp"
#include "engines/cpu/index/index.hpp"

namespace tsr::cpu {
namespace {

class CumsumStep : public Step {
 public:
  CumsumStep(const Graph& g, const Node& n) : x_(n.in[0]), y_(n.out[0]), threads_(thread_count()) {
    const Tensor &x = g.tensor(x_), &y = g.tensor(y_);
    const auto& o = attrs<tessera::CumsumOptions>(n);
    auto axis = static_cast<int>(normalize_axis(o.axis, x.rank()));
    exclusive_ = o.exclusive;
    length_ = x.dims[axis], step_x_ = x.strides[axis], step_y_ = y.strides[axis];
    // Neighbours: the dimension whose elements of x lie closest.
    int nearest = -1;
    for (int i = 0; i < x.rank(); ++i)
      if (i != axis && x.dims[i] > 1 && (nearest < 0 || x.strides[i] < x.strides[nearest])) nearest = i;
    if (nearest >= 0 && x.strides[nearest] >= x.strides[axis]) nearest = -1;
    for (int i = 0; i < x.rank(); ++i) {
      if (i == axis || i == nearest) continue;
      rows_.push_back(x.dims[i]), rows_x_.push_back(x.strides[i]), rows_y_.push_back(y.strides[i]);
    }
    if (nearest >= 0) across_ = x.dims[nearest], across_x_ = x.strides[nearest], across_y_ = y.strides[nearest];
    if (o.reverse && length_ > 0) {
      first_x_ = (length_ - 1) * step_x_, first_y_ = (length_ - 1) * step_y_;
      step_x_ = -step_x_, step_y_ = -step_y_;
    }
    type_x_ = x.dtype, type_y_ = y.dtype;
    lane_ = n.compute == DType::f64 ? Lane::f64 : is_integer(n.compute) ? Lane::i64 : Lane::f32;
  }

  void run(const StepArgs& a) const override {
    const void* x = a.tensors[x_];
    void* y = a.tensors[y_];
    int64_t blocks = ceil_div(across_, kBlock), width = std::min(across_, kBlock);
    int64_t grain = std::max<int64_t>(1, kLeastElements / std::max<int64_t>(1, length_ * width));
    parallel_for(volume(rows_) * blocks, grain, threads_, [&](int64_t first, int64_t last, int) {
      std::array<Dims, 2> strides = {rows_x_, rows_y_};
      walk(rows_, strides, first / blocks, ceil_div(last, blocks), [&](int64_t row, const std::array<int64_t, 2>& at) {
        for (int64_t b = std::max(first, row * blocks); b < std::min(last, (row + 1) * blocks); ++b) {
          int64_t from = (b - row * blocks) * kBlock, m = std::min(kBlock, across_ - from);
          int64_t at_x = first_x_ + at[0] + from * across_x_, at_y = first_y_ + at[1] + from * across_y_;
          if (across_ > 1)
            side_by_side(x, at_x, y, at_y, m);
          else if (lane_ == Lane::i64)
            along<uint64_t>(x, at_x, y, at_y);
          else
            along<double>(x, at_x, y, at_y);
        }
      });
    });
  }

 private:
  Lane wide() const { return lane_ == Lane::i64 ? Lane::i64 : Lane::f64; }

  void side_by_side(const void* x, int64_t at_x, void* y, int64_t at_y, int64_t m) const {
    alignas(64) double sums[kBlock] = {}, values[kBlock];
    for (int64_t i = 0; i < length_; ++i, at_x += step_x_, at_y += step_y_) {
      if (exclusive_) cpu::kernels().store(type_y_, wide(), sums, y, at_y, across_y_, m);
      cpu::kernels().load(type_x_, lane_, x, at_x, across_x_, values, m);
      cpu::kernels().accumulate(lane_, tessera::ReduceMode::add, values, m, sums);
      if (!exclusive_) cpu::kernels().store(type_y_, wide(), sums, y, at_y, across_y_, m);
    }
  }

  // T: double, or uint64_t, whose sums wrap around as those of integers do.
  template <class T>
  void along(const void* x, int64_t at_x, void* y, int64_t at_y) const {
    alignas(64) T values[kBlock];
    T sum = 0;
    for (int64_t i = 0; i < length_; i += kBlock) {
      int64_t m = std::min(kBlock, length_ - i);
      cpu::kernels().load(type_x_, wide(), x, at_x + i * step_x_, step_x_, values, m);
      for (int64_t k = 0; k < m; ++k) {
        T before = sum;
        sum += values[k];
        values[k] = exclusive_ ? before : sum;
      }
      cpu::kernels().store(type_y_, wide(), values, y, at_y + i * step_y_, step_y_, m);
    }
  }

  TensorId x_, y_;
  int threads_;
  bool exclusive_;
  Dims rows_, rows_x_, rows_y_;
  int64_t length_, step_x_, step_y_, first_x_ = 0, first_y_ = 0;
  int64_t across_ = 1, across_x_ = 0, across_y_ = 0;
  DType type_x_, type_y_;
  Lane lane_;
};

}  // namespace

std::unique_ptr<Step> make_cumsum(const Graph& g, const Node& n) { return std::make_unique<CumsumStep>(g, n); }

}  // namespace tsr::cpu
