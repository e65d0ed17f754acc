// SPDX-License-Identifier: Apache-2.0
// The name and the arguments of an exported function, for the log:
//
//   return answer(TESSERA_CALL(cudnnSetConvolutionGroupCount, convDesc, groupCount), [&] { .. });
//
// Nothing of it is made into text unless the log wants it.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "base/cat.hpp"
#include "capi/log.hpp"

namespace tsr::capi {

// An array of the program's: its first numbers are shown.
struct Numbers {
  const int* values;
  int64_t count;
};
inline Numbers numbers(const int* values, int64_t count) { return {values, count}; }
// The same of an attribute.
struct Elements {
  const void* values;
  cudnnBackendAttributeType_t type;
  int64_t count;
};
inline Elements elements(const void* values, cudnnBackendAttributeType_t type, int64_t count) {
  return {values, type, count};
}

// Arguments as the log shows them: tensors by type and sizes, other things behind pointers by their address.
std::string text_of(cudnnDataType_t t);
std::string text_of(cudnnTensorDescriptor_t t);
std::string text_of(cudnnFilterDescriptor_t t);
std::string text_of(cudnnBackendDescriptorType_t t);
std::string text_of(cudnnBackendAttributeName_t n);
std::string text_of(cudnnBackendAttributeType_t t);
std::string text_of(const Numbers& n);
std::string text_of(const Elements& e);
template <class T>
std::string text_of(const T& v) {
  if constexpr (std::is_pointer_v<T>)
    return address(v);
  else
    return cat(v);
}

// Says that a function was called; the names stand as in the source, with commas between them.
void log_call(const char* function, std::string_view names, const std::vector<std::string>& values);

template <class... T>
struct Called {
  const char* function;
  const char* names;
  std::tuple<T...> arguments;

  void log() const {
    if (!logs(CUDNN_SEV_INFO)) return;
    std::apply([this](const T&... a) { log_call(function, names, {text_of(a)...}); }, arguments);
  }
};
template <class... T>
Called<T...> called(const char* function, const char* names, const T&... arguments) {
  return {function, names, {arguments...}};
}

}  // namespace tsr::capi

// A macro, because only the preprocessor knows names of arguments.
#define TESSERA_CALL(function, ...) ::tsr::capi::called(#function, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__)
