// SPDX-License-Identifier: Apache-2.0
#include "graph/layouts.hpp"

#include <algorithm>

namespace tsr {
namespace {

constexpr Layout kLayouts[] = {
    {"nwc", "ncw"},     {"nhwc", "nchw"}, {"ndhwc", "ncdhw"}, {"ncw", "ncw"},   {"nchw", "nchw"},
    {"ncdhw", "ncdhw"}, {"bshd", "bhsd"}, {"sbhd", "bhsd"},   {"bhds", "bhsd"}, {"bhsd", "bhsd"},
    {"col", "rc"},      {"row", "rc"},    {"bcol", "brc"},    {"brow", "brc"},
};

// "col" and "bcol" are words, the others spell the letters from slowest to fastest.
std::string_view order_of(const Layout& l) {
  if (l.name == "col") return "cr";
  if (l.name == "row") return "rc";
  if (l.name == "bcol") return "bcr";
  if (l.name == "brow") return "brc";
  return l.name;
}

Dims strides_of(const Layout& l, const Dims& dims) {
  int order[kMaxRank];
  std::string_view letters = order_of(l);
  for (size_t k = 0; k < letters.size(); ++k) order[k] = static_cast<int>(l.logical.find(letters[k]));
  return permuted_strides(dims, order);
}

}  // namespace

std::span<const Layout> layouts() { return kLayouts; }

std::optional<Dims> layout_strides(std::string_view name, const Dims& dims) {
  for (const Layout& l : kLayouts)
    if (l.name == name && static_cast<int>(l.logical.size()) == dims.size()) return strides_of(l, dims);
  return std::nullopt;
}

std::string_view layout_name(const Dims& dims, const Dims& strides) {
  for (const Layout& l : kLayouts)
    if (static_cast<int>(l.logical.size()) == dims.size() && strides_of(l, dims) == strides) return l.name;
  return {};
}

std::vector<int> memory_order(const Dims& dims, const Dims& strides) {
  std::vector<int> order;
  for (int d = 0; d < dims.size(); ++d)
    if (dims[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] > strides[b]; });
  return order;
}

}  // namespace tsr
