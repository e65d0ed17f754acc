// SPDX-License-Identifier: Apache-2.0
// The largest elements: a row at a time is read into scratch memory, and its k largest are put in order in front.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.hpp"
#include "engines/cpu/index/index.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cpu {
namespace {

using namespace slots::top_k;

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(v);
  else
    return false;
}

class TopKStep : public Step {
 public:
  TopKStep(const Graph& g, const Region& r, const Node& n) : x_(n.in[0]), threads_(thread_count()) {
    const Tensor& x = g.tensor(x_);
    const auto& o = attrs<tessera::TopKOptions>(n);
    auto axis = static_cast<int>(normalize_axis(o.axis, x.rank()));
    k_ = o.k, length_ = x.dims[axis], step_ = x.strides[axis];
    type_ = x.dtype, lane_ = exact_lane(x.dtype);
    rows_.push_back(1);
    for (Dims& s : strides_) s.push_back(0);
    for (int i = 0; i < x.rank(); ++i)
      if (i != axis) rows_.push_back(x.dims[i]), strides_[0].push_back(x.strides[i]);
    for (int which : {kValues, kIndices}) {
      TensorId t = slot(n.out, static_cast<size_t>(which));
      Result& result = results_[which];
      if (t != kNone && std::find(r.outputs.begin(), r.outputs.end(), t) != r.outputs.end()) {
        const Tensor& y = g.tensor(t);
        result = {t, y.dtype, y.strides[axis]};
      }
      for (int i = 0; i < x.rank(); ++i)
        if (i != axis) strides_[static_cast<size_t>(1 + which)].push_back(t == kNone ? 0 : g.tensor(t).strides[i]);
    }
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(threads_ * length_ * 16); }

  void run(const StepArgs& a) const override {
    int64_t grain = std::max<int64_t>(1, kLeastElements / std::max<int64_t>(1, length_));
    parallel_for(volume(rows_), grain, threads_, [&](int64_t first, int64_t last, int worker) {
      std::byte* scratch = a.workspace + int64_t{worker} * length_ * 16;
      walk(rows_, strides_, first, last, [&](int64_t, const std::array<int64_t, 3>& at) {
        if (lane_ == Lane::f32) return row<float>(a, scratch, at);
        if (lane_ == Lane::f64) return row<double>(a, scratch, at);
        row<int64_t>(a, scratch, at);
      });
    });
  }

 private:
  template <class T>
  void row(const StepArgs& a, std::byte* scratch, const std::array<int64_t, 3>& at) const {
    auto* places = reinterpret_cast<int64_t*>(scratch);
    auto* values = reinterpret_cast<T*>(scratch + length_ * 8);
    for (int64_t i = 0; i < length_; i += kBlock)
      cpu::kernels().load(type_, lane_, a.tensors[x_], at[0] + i * step_, step_, values + i,
                          std::min(kBlock, length_ - i));
    for (int64_t i = 0; i < length_; ++i) places[i] = i;
    std::partial_sort(places, places + k_, places + length_, [values](int64_t p, int64_t q) {
      T u = values[p], v = values[q];
      if (is_nan(u) != is_nan(v)) return is_nan(u);
      if (is_nan(u)) return p < q;
      return u != v ? u > v : p < q;
    });
    const Result &value = results_[kValues], &index = results_[kIndices];
    for (int64_t j = 0; j < k_; ++j) {
      if (value.tensor != kNone)
        cpu::kernels().store(value.type, lane_, values + places[j], a.tensors[value.tensor], at[1] + j * value.step, 1,
                             1);
      if (index.tensor != kNone) store(index.type, a.tensors[index.tensor], at[2] + j * index.step, places[j]);
    }
  }

  struct Result {
    TensorId tensor = kNone;
    DType type = DType::f32;
    int64_t step = 0;
  };
  TensorId x_;
  int threads_;
  int64_t k_, length_, step_;
  DType type_;
  Lane lane_;
  Dims rows_;
  std::array<Dims, 3> strides_;  // of x, values, indices
  Result results_[2];
};

}  // namespace

std::unique_ptr<Step> make_top_k(const Graph& g, const Region& r, const Node& n) {
  return std::make_unique<TopKStep>(g, r, n);
}

}  // namespace tsr::cpu
