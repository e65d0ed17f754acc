// SPDX-License-Identifier: Apache-2.0
// From a product to something that runs: the library's heuristics suggest algorithms, and the fastest of the first few
// by the caller's clock is taken.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "cublaslt/library.hpp"
#include "cublaslt/product.hpp"

namespace cublaslt {

struct Binding {
  int64_t uid;
  void* pointer;  // device memory
};

class Plan {
 public:
  static constexpr size_t kWorkspaceBytes = 64 << 20;  // as much as a plan may take
  static constexpr int kAlgorithms = 8;

  // Raises opened::Error where the library has no algorithm. `time` gives the seconds of one execution of the plan as
  // it is then.
  Plan(Handle& handle, const Product& product, const std::function<double(const Plan&)>& time);
  size_t workspace_bytes() const { return chosen_.workspace_bytes; }
  // Launches. Every tensor of the product needs a pointer; others are ignored. The workspace has kWorkspaceBytes.
  void run(std::span<const Binding> bindings, void* workspace, void* stream) const;

 private:
  using Descriptor = std::shared_ptr<void>;
  Descriptor layout(const Matrix& m) const;
  template <class Attribute, class Value>
  void set(Attribute name, const Value& value) const;
  const Functions& call() const { return handle_.library().call(); }

  Handle& handle_;
  Product product_;
  Descriptor matmul_, a_, b_, c_, d_;
  Suggestion chosen_{};
};

}  // namespace cublaslt
