// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/epilogue.hpp"

#include <algorithm>

namespace tsr::cpu {
namespace {

// The product lies in the memory of a tile, counted over the axes in `order`.
EpilogueParts in_order(EpilogueParts p, const std::vector<int>& order) {
  Tensor& tile = p.graph.edit(0);
  int64_t stride = 1;
  for (size_t k = order.size(); k-- > 0;) {
    tile.strides[order[k]] = stride;
    stride *= tile.dims[order[k]];
  }
  return p;
}

}  // namespace

Epilogue::Epilogue(const Region& r, NodeId anchor, const Expr& lowered, DType type, const Scaling& scaling,
                   const std::vector<int>& order)
    : Epilogue(in_order(prepare_epilogue(r, anchor, lowered, type, scaling), order), type, order) {}

Epilogue::Epilogue(const EpilogueParts& p, DType type, const std::vector<int>& order)
    : ids_(p.ids), element_bytes_(info(type).bits / 8), program_(p.expr, p.graph, order) {}

size_t Epilogue::scratch_bytes() const {
  return program_.scratch_bytes() + (ids_.size() * sizeof(void*) + 255) / 256 * 256;
}

bool Epilogue::may_overwrite(TensorId input, TensorId output) const {
  auto local = [&](TensorId t) { return static_cast<TensorId>(std::find(ids_.begin(), ids_.end(), t) - ids_.begin()); };
  return program_.may_overwrite(local(input), local(output));
}

void Epilogue::run(void* const* tensors, int64_t first, int64_t n, const void* at, std::byte* scratch) const {
  auto** table = reinterpret_cast<void**>(scratch + program_.scratch_bytes());
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] == kNone)
      // Counted from the first element of the whole product, most of which is not there.
      table[i] =
          reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(at) - static_cast<uintptr_t>(first * element_bytes_));
    else
      table[i] = tensors[ids_[i]];
  }
  if (!program_.has_reduction()) return program_.run_elements(table, first, first + n, scratch);
  int64_t length = program_.row_length();
  program_.run_rows(table, first / length, (first + n) / length, scratch);
}

}  // namespace tsr::cpu
