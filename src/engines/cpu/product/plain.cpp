// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/plain.hpp"

namespace tsr::cpu {
namespace {

enum Table : TensorId { kLeft, kRight };

StridedOperand<float> operand(TensorId id, const PlainProduct::Matrix& m, int64_t n, int64_t depth) {
  return {id, m.type, {}, {}, {}, Axes(n, m.stride), Axes(depth, m.inner)};
}

class InPlace : public Result<float> {
 public:
  InPlace(float* c, int64_t stride, bool add) : c_(c), stride_(stride), add_(add) {}
  bool place(void* const*, ResultTile<float>& t) const override {
    t.at = c_ + t.row * stride_ + t.column;
    t.stride = stride_;
    t.add = add_;
    return true;
  }
  int64_t depth(void* const*, int64_t, int64_t depth) const override { return depth; }
  void finish(void* const*, const ResultTile<float>&, std::byte*) const override {}

 private:
  float* c_;
  int64_t stride_;
  bool add_;
};

}  // namespace

PlainProduct::PlainProduct(int64_t rows, int64_t columns, int64_t depth, const Matrix& left, const Matrix& right,
                           int threads)
    : shape_{1, rows, columns, depth},
      left_(operand(kLeft, left, rows, depth)),
      right_(operand(kRight, right, columns, depth)),
      product_(shape_, left_, right_, {.threads = threads}) {}

void PlainProduct::run(const void* left, const void* right, float* c, int64_t stride, bool add,
                       std::byte* workspace) const {
  void* table[] = {const_cast<void*>(left), const_cast<void*>(right)};
  product_.run(shape_, table, workspace, InPlace(c, stride, add));
}

}  // namespace tsr::cpu
