// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void paged_load(const Context<R>& c) {
  bool transposed = c.template options<tessera::PagedLoadOptions>().transposed;
  Array<int64_t> table = c.template in<int64_t>(1);
  with_exact_type<R>(c.in_tensor(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    Array<T> pages = c.template in<T>(0), y(c.out_tensor(0).dims);
    int64_t count = pages.dims[0], heads = pages.dims[1], block = pages.dims[2], width = pages.dims[3];
    int64_t steps = y.dims[transposed ? 3 : 2];
    Ints lengths(static_cast<size_t>(y.dims[0]), steps);
    if (c.has(2)) lengths = c.integers(2);
    for (int64_t b = 0; b < y.dims[0]; ++b)
      for (int64_t s = 0; s < std::min(steps, lengths[static_cast<size_t>(b)]); ++s) {
        int64_t page = table.at(b, 0, s / block, 0);
        if (page < 0 || page >= count) continue;
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t d = 0; d < width; ++d)
            (transposed ? y.at(b, h, d, s) : y.at(b, h, s, d)) = pages.at(page, h, s % block, d);
      }
    c.out(0, y);
  });
}

TESSERA_REFERENCE(paged_load);

}  // namespace tsr::ref
