// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/move/paged.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/move/copy.hpp"

namespace tsr::cpu {
namespace {

alignas(16) constexpr std::byte kZero[16] = {};  // an element of any type

// The only dimension of a list of lengths that has more than one element.
int64_t list_stride(const Tensor& t) {
  for (int d = 0; d < t.rank(); ++d)
    if (t.dims[d] > 1) return t.strides[d];
  return 0;
}

class PagedLoadStep : public Step {
 public:
  PagedLoadStep(const Graph& g, const Node& n, int threads)
      : pages_(g.tensor(n.in[0])),
        table_(g.tensor(n.in[1])),
        y_(g.tensor(n.out[0])),
        page_id_(n.in[0]),
        table_id_(n.in[1]),
        length_id_(n.in.size() > 2 ? n.in[2] : kNone),
        y_id_(n.out[0]),
        threads_(threads),
        bytes_(info(y_.dtype).bits / 8) {
    bool transposed = attrs<tessera::PagedLoadOptions>(n).transposed;
    steps_ = y_.dims[transposed ? 3 : 2], block_ = pages_.dims[2];
    step_stride_ = y_.strides[transposed ? 3 : 2];
    if (length_id_ != kNone) {
      length_type_ = g.tensor(length_id_).dtype;
      length_stride_ = list_stride(g.tensor(length_id_));
    }
    CopyAxis heads{pages_.dims[1], pages_.strides[1], y_.strides[1]};
    CopyAxis width{pages_.dims[3], pages_.strides[3], y_.strides[transposed ? 2 : 3]};
    page_ = StridedCopy({heads, {block_, pages_.strides[2], step_stride_}, width}, bytes_);
    step_ = StridedCopy({heads, width}, bytes_);
    heads.from = width.from = 0;
    no_step_ = StridedCopy({heads, width}, bytes_);
  }

  void run(const StepArgs& a) const override {
    int64_t slots = block_ == 0 ? 0 : (steps_ + block_ - 1) / block_;
    parallel_for(y_.dims[0] * slots, 1, threads_, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) load_page(a.tensors, i / slots, i % slots);
    });
  }

 private:
  void load_page(void* const* t, int64_t batch, int64_t slot) const {
    int64_t first = slot * block_, room = std::min(block_, steps_ - first), held = room;
    if (length_id_ != kNone) {
      auto length = load<int64_t>(length_type_, t[length_id_], batch * length_stride_);
      held = std::clamp<int64_t>(length - first, 0, room);
    }
    auto page = load<int64_t>(table_.dtype, t[table_id_], batch * table_.strides[0] + slot * table_.strides[2]);
    if (page < 0 || page >= pages_.dims[0]) held = 0;
    const char* from = static_cast<const char*>(t[page_id_]) + (held > 0 ? page * pages_.strides[0] * bytes_ : 0);
    char* to = static_cast<char*>(t[y_id_]) + (batch * y_.strides[0] + first * step_stride_) * bytes_;
    if (held == block_) return page_.run(from, to, 1);
    for (int64_t s = 0; s < room; ++s, to += step_stride_ * bytes_)
      if (s < held)
        step_.run(from + s * pages_.strides[2] * bytes_, to, 1);
      else
        no_step_.run(kZero, to, 1);
  }

  Tensor pages_, table_, y_;
  TensorId page_id_, table_id_, length_id_, y_id_;
  int threads_;
  int64_t bytes_, steps_ = 0, block_ = 0, step_stride_ = 0, length_stride_ = 0;
  DType length_type_ = DType::i32;
  StridedCopy page_, step_, no_step_;
};

}  // namespace

std::unique_ptr<Step> make_paged_load(const Graph& g, const Node& n, int threads) {
  return std::make_unique<PagedLoadStep>(g, n, threads);
}

}  // namespace tsr::cpu
