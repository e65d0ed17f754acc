// SPDX-License-Identifier: Apache-2.0
#include "cublaslt/plan.hpp"

#include <limits>

namespace cublaslt {
namespace {

void* pointer_of(std::span<const Binding> bindings, int64_t uid) {
  for (const Binding& b : bindings)
    if (b.uid == uid) return b.pointer;
  throw opened::Error("the tensor with the id " + std::to_string(uid) + " has no pointer");
}

}  // namespace

Plan::Descriptor Plan::layout(const Matrix& m) const {
  const Library& library = handle_.library();
  void* raw = nullptr;
  library.check(call().create_layout(&raw, static_cast<int>(m.type), static_cast<uint64_t>(m.rows),
                                     static_cast<uint64_t>(m.columns), m.leading),
                "cublasLtMatrixLayoutCreate");
  Descriptor layout(raw, call().destroy_layout);
  auto set = [&](LayoutAttr name, auto value) {
    library.check(call().set_layout(raw, static_cast<int>(name), &value, sizeof value),
                  "cublasLtMatrixLayoutSetAttribute");
  };
  set(LayoutAttr::batches, static_cast<int32_t>(product_.batches));
  set(LayoutAttr::batch_stride, m.batch_stride);
  return layout;
}

template <class Attribute, class Value>
void Plan::set(Attribute name, const Value& value) const {
  handle_.library().check(call().set_matmul(matmul_.get(), static_cast<int>(name), &value, sizeof value),
                          "cublasLtMatmulDescSetAttribute");
}

Plan::Plan(Handle& handle, const Product& product, const std::function<double(const Plan&)>& time)
    : handle_(handle), product_(product) {
  const Library& library = handle.library();
  void* raw = nullptr;
  library.check(call().create_matmul(&raw, static_cast<int>(product.compute), static_cast<int>(product.scale_type)),
                "cublasLtMatmulDescCreate");
  matmul_ = Descriptor(raw, call().destroy_matmul);
  set(MatmulAttr::turned_a, product.a.turned);
  set(MatmulAttr::turned_b, product.b.turned);
  set(MatmulAttr::epilogue, product.epilogue);
  if (product.bias) set(MatmulAttr::bias_type, product.bias_type);
  if (product.fast_sums) set(MatmulAttr::fast_sums, int8_t{1});
  a_ = layout(product.a), b_ = layout(product.b), d_ = layout(product.d);
  c_ = product.c ? layout(*product.c) : d_;

  library.check(call().create_preference(&raw), "cublasLtMatmulPreferenceCreate");
  Descriptor preference(raw, call().destroy_preference);
  library.check(call().set_preference(raw, static_cast<int>(PreferenceAttr::workspace_bytes), &kWorkspaceBytes,
                                      sizeof kWorkspaceBytes),
                "cublasLtMatmulPreferenceSetAttribute");
  Suggestion found[kAlgorithms];
  int count = 0;
  library.check(call().suggest(handle.raw(), matmul_.get(), a_.get(), b_.get(), c_.get(), d_.get(), raw, kAlgorithms,
                               found, &count),
                "cublasLtMatmulAlgoGetHeuristic");
  double best = std::numeric_limits<double>::infinity();
  Suggestion fastest{};
  for (int i = 0; i < count; ++i) {
    if (found[i].status != 0) continue;
    chosen_ = found[i];
    double seconds = time(*this);
    if (seconds < best) best = seconds, fastest = chosen_;
  }
  if (best == std::numeric_limits<double>::infinity()) throw opened::Error("cuBLASLt suggests no algorithm");
  chosen_ = fastest;
}

void Plan::run(std::span<const Binding> bindings, void* workspace, void* stream) const {
  if (product_.bias) set(MatmulAttr::bias_pointer, pointer_of(bindings, *product_.bias));
  if (product_.a_scale) set(MatmulAttr::a_scale_pointer, pointer_of(bindings, *product_.a_scale));
  union Number {  // of the scale's type
    int32_t i32;
    float f32;
    double f64;
  };
  auto number = [&](int v) {
    Number n{};
    if (product_.scale_type == Type::i32)
      n.i32 = v;
    else if (product_.scale_type == Type::f64)
      n.f64 = v;
    else
      n.f32 = static_cast<float>(v);
    return n;
  };
  Number alpha = number(1), beta = number(product_.c ? 1 : 0);
  void* d = pointer_of(bindings, product_.d.uid);
  const void* c = product_.c ? pointer_of(bindings, product_.c->uid) : d;
  handle_.library().check(call().run(handle_.raw(), matmul_.get(), &alpha, pointer_of(bindings, product_.a.uid),
                                     a_.get(), pointer_of(bindings, product_.b.uid), b_.get(), &beta, c, c_.get(), d,
                                     d_.get(), &chosen_.algorithm, workspace, kWorkspaceBytes, stream),
                          "cublasLtMatmul");
}

}  // namespace cublaslt
