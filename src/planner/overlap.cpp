// SPDX-License-Identifier: Apache-2.0
#include "planner/overlap.hpp"

#include <algorithm>
#include <vector>

namespace tsr {
namespace {

bool same_places(const Tensor& a, const Tensor& b) {
  if (a.dims != b.dims || a.ragged != b.ragged || a.reordering != b.reordering ||
      a.ragged_multiplier != b.ragged_multiplier)
    return false;
  if (info(a.dtype).bits != info(b.dtype).bits || info(a.dtype).vector != info(b.dtype).vector) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a.dims[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

// Elements of whole bytes, one after the other along strides.
bool plain(const Tensor& t) { return info(t.dtype).vector == 1 && info(t.dtype).bits >= 8; }

// Whether first + sum of index * step can lie in (low, high), for some index of each step.
class Search {
 public:
  struct Step {
    int64_t bytes, last;  // bytes > 0; the index runs from 0 to `last`
  };
  explicit Search(std::vector<Step> steps) : steps_(std::move(steps)) {
    std::sort(steps_.begin(), steps_.end(), [](const Step& x, const Step& y) { return x.bytes > y.bytes; });
    rest_.assign(steps_.size() + 1, 0);
    for (size_t i = steps_.size(); i-- > 0;) rest_[i] = rest_[i + 1] + steps_[i].bytes * steps_[i].last;
  }
  bool reaches(int64_t first, int64_t low, int64_t high) { return visit(0, first, low, high); }

 private:
  bool visit(size_t i, int64_t at, int64_t low, int64_t high) {
    if (at >= high || at + rest_[i] <= low) return false;
    // Odd strides only: a guess on the safe side ends the search.
    if (i == steps_.size() || --left_ < 0) return true;
    int64_t step = steps_[i].bytes;
    int64_t from = std::max<int64_t>(0, (low - at - rest_[i + 1]) / step),
            to = std::min(steps_[i].last, (high - at) / step);
    for (int64_t k = from; k <= to; ++k)
      if (visit(i + 1, at + k * step, low, high)) return true;
    return false;
  }
  std::vector<Step> steps_;
  std::vector<int64_t> rest_;  // what steps from here on can add
  int left_ = 10000;
};

bool share_a_byte(const Tensor& a, int64_t from_a_to_b, const Tensor& b) {
  // Elements i of a and j of b meet where  b + j * sb - (a + i * sa)  is above -size of b and below size of a. Counting
  // i from its end makes all steps positive.
  std::vector<Search::Step> steps;
  int64_t first = from_a_to_b, size_a = info(a.dtype).bits / 8, size_b = info(b.dtype).bits / 8;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i] < 2 || a.strides[i] == 0) continue;
    first -= a.strides[i] * size_a * (a.dims[i] - 1);
    steps.push_back({a.strides[i] * size_a, a.dims[i] - 1});
  }
  for (int i = 0; i < b.rank(); ++i)
    if (b.dims[i] > 1 && b.strides[i] != 0) steps.push_back({b.strides[i] * size_b, b.dims[i] - 1});
  return Search(std::move(steps)).reaches(first, -size_b, size_a);
}

}  // namespace

Overlap overlap(const Tensor& a, const void* a_data, const Tensor& b, const void* b_data) {
  auto at_a = reinterpret_cast<intptr_t>(a_data), at_b = reinterpret_cast<intptr_t>(b_data);
  if (at_a + a.bytes() <= at_b || at_b + b.bytes() <= at_a) return Overlap::none;
  if (at_a == at_b && same_places(a, b)) return Overlap::same;
  // Where packed sequences lie only their offsets tell, and of reordered factors programs fill in any strides.
  if (a.ragged != kNone || b.ragged != kNone) return Overlap::none;
  if (a.reordering != Reordering::none || b.reordering != Reordering::none) return Overlap::none;
  if (!plain(a) || !plain(b)) return Overlap::partly;
  return share_a_byte(a, at_b - at_a, b) ? Overlap::partly : Overlap::none;
}

}  // namespace tsr
