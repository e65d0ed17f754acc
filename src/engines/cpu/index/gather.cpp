// SPDX-License-Identifier: Apache-2.0
// Gather: neighbouring elements that share an index are copied together.
#include "graph/ops/gather.hpp"

#include <cstring>

#include "base/thread_pool.hpp"
#include "engines/cpu/index/index.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cpu {
namespace {

using namespace slots::gather;

class GatherStep : public Step {
 public:
  GatherStep(const Graph& g, const Node& n)
      : x_(n.in[kX]), index_(n.in[kIndex]), y_(n.out[0]), threads_(thread_count()) {
    const Tensor &x = g.tensor(x_), &index = g.tensor(index_), &y = g.tensor(y_);
    const auto& o = attrs<tessera::GatherOptions>(n);
    loops_ = gather_loops(y, index, x, o.axis, o.mode);
    from_ = x.dtype, to_ = y.dtype, index_type_ = index.dtype;
    take_run();
  }

  void run(const StepArgs& a) const override {
    const auto* x = static_cast<const char*>(a.tensors[x_]);
    auto* y = static_cast<char*>(a.tensors[y_]);
    const void* index = a.tensors[index_];
    int64_t bytes = info(from_).bits / 8;
    bool plain = from_ == to_ && run_x_ == 1 && run_y_ == 1;
    int64_t grain = std::max<int64_t>(1, kLeastElements / std::max<int64_t>(1, run_));
    std::array<Dims, 3> strides = {loops_.wide, loops_.index, loops_.narrow};
    parallel_for(volume(loops_.dims), grain, threads_, [&](int64_t first, int64_t last, int) {
      walk(loops_.dims, strides, first, last, [&](int64_t, const std::array<int64_t, 3>& at) {
        auto row = load<int64_t>(index_type_, index, at[1]);
        bool real = row >= 0 && row < loops_.rows;
        int64_t source = at[2] + row * loops_.row_stride;
        if (plain && real) return void(std::memcpy(y + at[0] * bytes, x + source * bytes, size_t(run_ * bytes)));
        if (plain) return void(std::memset(y + at[0] * bytes, 0, size_t(run_ * bytes)));
        convert(x, real ? source : -1, y, at[0]);
      });
    });
  }

 private:
  // The innermost dimensions that share an index, as far as they follow each other in both tensors, are one run.
  void take_run() {
    GatherLoops& l = loops_;
    auto drop_last = [&] {
      auto shorter = [](const Dims& d) {
        Dims s;
        for (int i = 0; i + 1 < d.size(); ++i) s.push_back(d[i]);
        return s;
      };
      l.dims = shorter(l.dims), l.wide = shorter(l.wide), l.index = shorter(l.index), l.narrow = shorter(l.narrow);
    };
    while (!l.dims.empty() && l.index.back() == 0 &&
           !(l.wide.back() != 0 && l.narrow.back() == 0 && l.dims.back() > 1)) {
      bool follows = run_ == 1 || (l.wide.back() == run_y_ * run_ && l.narrow.back() == run_x_ * run_);
      if (l.dims.back() != 1 && !follows) return;
      if (run_ == 1) run_y_ = l.wide.back(), run_x_ = l.narrow.back();
      run_ *= l.dims.back();
      drop_last();
    }
  }

  // A negative source stands for zeros.
  void convert(const void* x, int64_t source, void* y, int64_t target) const {
    Lane lane = exact_lane(from_);
    alignas(64) double values[kBlock];
    for (int64_t i = 0; i < run_; i += kBlock) {
      int64_t m = std::min(kBlock, run_ - i);
      if (source < 0)
        std::memset(values, 0, sizeof(values));
      else
        cpu::kernels().load(from_, lane, x, source + i * run_x_, run_x_, values, m);
      cpu::kernels().store(to_, lane, values, y, target + i * run_y_, run_y_, m);
    }
  }

  TensorId x_, index_, y_;
  int threads_;
  GatherLoops loops_;
  DType from_, to_, index_type_;
  int64_t run_ = 1, run_x_ = 1, run_y_ = 1;
};

}  // namespace

std::unique_ptr<Step> make_gather(const Graph& g, const Node& n) { return std::make_unique<GatherStep>(g, n); }

}  // namespace tsr::cpu
