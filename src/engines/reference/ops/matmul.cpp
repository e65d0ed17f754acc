// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/product.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using namespace slots::matmul;

template <class T, class R>
void apply(const Context<R>& c) {
  Array<T> a = c.template in<T>(kA), b = c.template in<T>(kB);
  Array<T> y(c.out_tensor(0).dims, static_cast<T>(c.template options<tessera::MatmulOptions>().padding_value));
  int r = y.rank();
  int64_t M = y.dims[r - 2], N = y.dims[r - 1], K = a.dims[r - 1];
  Ints m_of, n_of, k_of;
  if (c.has(kM)) m_of = c.integers(kM);
  if (c.has(kN)) n_of = c.integers(kN);
  if (c.has(kK)) k_of = c.integers(kK);
  auto limit = [](const Ints& v, int64_t batch, int64_t full) {
    return v.empty() ? full : std::clamp<int64_t>(v.size() == 1 ? v[0] : v[static_cast<size_t>(batch)], 0, full);
  };
  Dims batch_dims = y.dims;
  batch_dims[r - 1] = batch_dims[r - 2] = 1;
  int64_t batches = volume(batch_dims);
  Dims batch = Dims::filled(r, 0);
  for (int64_t i = 0; i < batches; ++i, next_index(batch, batch_dims)) {
    Dims ia = batch, ib = batch;
    for (int d = 0; d < r - 2; ++d) {
      // A batch of 1 is shared by all; a batch that divides the other is shared by runs of it (grouped heads).
      ia[d] = batch[d] / (y.dims[d] / a.dims[d]);
      ib[d] = batch[d] / (y.dims[d] / b.dims[d]);
    }
    int64_t pa = a.flat(ia), pb = b.flat(ib), py = y.flat(batch), first = r > 2 ? batch[0] : 0;
    int64_t m_end = limit(m_of, first, M), n_end = limit(n_of, first, N), k_end = limit(k_of, first, K);
    for (int64_t m = 0; m < m_end; ++m)
      for (int64_t n = 0; n < n_end; ++n) {
        T sum{};
        for (int64_t k = 0; k < k_end; ++k) sum += a[pa + m * K + k] * b[pb + k * N + n];
        y[py + m * N + n] = sum;
      }
  }
  move_products(c, y);
  c.out(0, y);
}

}  // namespace

template <class R>
void matmul(const Context<R>& c) {
  if (is_complex(c.node().compute)) return apply<std::complex<double>>(c);
  if (is_integer(c.node().compute)) return apply<int64_t>(c);
  apply<R>(c);
}

TESSERA_REFERENCE(matmul);

}  // namespace tsr::ref
