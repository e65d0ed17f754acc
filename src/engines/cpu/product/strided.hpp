// SPDX-License-Identifier: Apache-2.0
// An operand that lies in memory as it is multiplied: neighbours and inner positions at fixed strides.
#pragma once

#include "engines/cpu/product/product.hpp"
#include "graph/graph.hpp"

namespace tsr::cpu {

// Some axes of a tensor, walked slowest first.
struct Axes {
  Dims sizes, strides;

  Axes() = default;
  Axes(int64_t size, int64_t stride) { add(size, stride); }
  void add(int64_t size, int64_t stride) { sizes.push_back(size), strides.push_back(stride); }
  int64_t count() const { return volume(sizes); }
  int64_t offset(int64_t flat) const;
  Axes merged() const;  // without axes of size 1, neighbours that form one run joined; at least one axis
};

template <class T>
class StridedOperand : public Operand<T> {
 public:
  // Batches are counted over axes of sizes `batch`; the tensor has a matrix for each run of `share` along each. The
  // first one begins with element `start`.
  StridedOperand(TensorId tensor, DType type, const Dims& batch, const Dims& share, const Dims& batch_strides,
                 const Axes& neighbours, const Axes& inner, int64_t start = 0);

  DType type() const override { return type_; }
  int64_t slots() const override { return slots_; }
  int64_t slot(int64_t batch) const override;
  void pack(void* const* tensors, int64_t slot, int64_t first, int64_t n, int64_t from, int64_t depth,
            const Panels<T>& to) const override;
  // Of the first inner element of a neighbour.
  int64_t offset(int64_t slot, int64_t neighbour) const {
    return start_ + matrices_.offset(slot) + neighbours_.offset(neighbour);
  }

 private:
  TensorId tensor_;
  DType type_;
  Dims batch_, share_;
  Axes matrices_, neighbours_, inner_;
  int64_t slots_, start_;
};

}  // namespace tsr::cpu
