// SPDX-License-Identifier: Apache-2.0
// How calls of the C interface end. Inside, failures are exceptions; `answer` turns them into statuses, keeps the text
// for cudnnGetLastErrorString, writes the log and tells profilers.
#pragma once

#include "base/error.hpp"
#include "base/trace.hpp"
#include "capi/arguments.hpp"
#include "cudnn/cudnn.h"

namespace tsr::capi {

// A failure with a status of its own; tessera::Error and others become the status of their category.
struct Failure {
  cudnnStatus_t status;
  std::string text;
};

template <class... Parts>
[[noreturn]] void refuse(cudnnStatus_t status, const Parts&... parts) {
  throw Failure{status, cat(parts...)};
}
template <class... Parts>
void demand(bool condition, cudnnStatus_t status, const Parts&... parts) {
  if (!condition) refuse(status, parts...);
}
// What a caller must give: a handle, a descriptor, a place for a result.
template <class T>
T& given(T* p, const char* name) {
  if (!p) refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, name, " is a null pointer");
  return *p;
}

// A new descriptor of the program's.
template <class T>
T& create(T** to, const char* name) {
  given(to, name);  // first: an assignment makes its right side before it looks at the left
  *to = new T;
  return **to;
}

// The status of the exception under way; its text becomes the thread's last error.
cudnnStatus_t status_of_exception(const char* function) noexcept;

// Every exported function that can fail is one call of this.
template <class C, class F>
cudnnStatus_t answer(const C& called, const F& f) noexcept {
  TraceRange range(called.function);
  try {
    called.log();
    f();
    return CUDNN_STATUS_SUCCESS;
  } catch (...) {
    return status_of_exception(called.function);
  }
}

}  // namespace tsr::capi
