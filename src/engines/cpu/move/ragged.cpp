// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/move/ragged.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/move/copy.hpp"
#include "graph/ops/list.hpp"
#include "graph/ragged.hpp"

namespace tsr::cpu {
namespace {

alignas(16) constexpr std::byte kZero[16] = {};  // an element of any type

// The packed side of a copy, and the dimensions of the other one that are its batches and steps.
class RaggedCopyStep : public Step {
 public:
  RaggedCopyStep(const Graph& g, const Node& n, int threads)
      : x_(g.tensor(n.in[0])), y_(g.tensor(n.out[0])), x_id_(n.in[0]), y_id_(n.out[0]), threads_(threads) {
    const Tensor& packed = this->packed();
    offsets_type_ = g.tensor(packed.ragged).dtype;
    bytes_ = info(packed.dtype).bits / 8;
    int time = ragged_axis(packed);
    const auto& perm = attrs<tessera::TransposeOptions>(n).perm;
    std::vector<CopyAxis> axes;
    for (int i = 0; i < y_.rank(); ++i) {
      auto from = static_cast<int>(perm[static_cast<size_t>(i)]);
      int of_packed = unpacks() ? from : i;
      CopyAxis axis{y_.dims[i], x_.strides[from], y_.strides[i]};
      if (of_packed == 0)
        batch_ = axis;
      else if (of_packed == time)
        time_ = axis;
      else
        axes.push_back(axis);
    }
    step_ = StridedCopy(axes, bytes_);
    for (CopyAxis& a : axes) a.from = 0;
    no_step_ = StridedCopy(axes, bytes_);
  }

  void run(const StepArgs& a) const override {
    parallel_for(batch_.size * time_.size, kGrain, threads_, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) copy_step(a.tensors, i / time_.size, i % time_.size);
    });
  }

 private:
  static constexpr int64_t kGrain = 16;  // steps that another thread takes at once

  bool unpacks() const { return x_.ragged != kNone; }
  const Tensor& packed() const { return unpacks() ? x_ : y_; }

  void copy_step(void* const* t, int64_t batch, int64_t step) const {
    auto offset = [&](int64_t b) {
      return load<int64_t>(offsets_type_, t[packed().ragged], b) * packed().ragged_multiplier;
    };
    int64_t stride = unpacks() ? time_.from : time_.to, start = offset(batch);
    bool held = step < (offset(batch + 1) - start) / std::max<int64_t>(1, stride);
    if (!held && !unpacks()) return;
    int64_t from = (unpacks() ? start : batch * batch_.from) + step * time_.from;
    int64_t to = (unpacks() ? batch * batch_.to : start) + step * time_.to;
    char* y = static_cast<char*>(t[y_id_]) + to * bytes_;
    if (held)
      step_.run(static_cast<const char*>(t[x_id_]) + from * bytes_, y, 1);
    else
      no_step_.run(kZero, y, 1);
  }

  Tensor x_, y_;
  TensorId x_id_, y_id_;
  int threads_;
  DType offsets_type_ = DType::i32;
  int64_t bytes_ = 1;
  CopyAxis batch_{1, 0, 0}, time_{1, 0, 0};
  StridedCopy step_, no_step_;
};

}  // namespace

bool has_ragged(const Graph& g, const Node& n) {
  auto ragged = [&](TensorId t) { return t != kNone && g.tensor(t).ragged != kNone; };
  return std::any_of(n.in.begin(), n.in.end(), ragged) || std::any_of(n.out.begin(), n.out.end(), ragged);
}

Reason check_ragged_copy(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  if (n.op != &ops::transpose) return Reason::no(spelling(n), " of packed sequences; transpositions copy them");
  if (x.ragged != kNone && y.ragged != kNone)
    return Reason::no("tensors ", describe(x), " and ", describe(y), " are both ragged");
  return Reason::yes();
}

std::unique_ptr<Step> make_ragged_copy(const Graph& g, const Node& n, int threads) {
  return std::make_unique<RaggedCopyStep>(g, n, threads);
}

}  // namespace tsr::cpu
