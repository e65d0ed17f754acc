// SPDX-License-Identifier: Apache-2.0
#include "capi/arguments.hpp"

#include <algorithm>

#include "capi/backend/descriptor.hpp"
#include "capi/types.hpp"

namespace tsr::capi {
namespace {

// "[1,2]", or how the array begins where it is longer than anyone reads.
template <class Element>
std::string text_of_array(const void* values, int64_t count, const Element& element) {
  if (!values) return address(values);
  constexpr int64_t kShown = CUDNN_DIM_MAX;
  std::string text = "[";
  for (int64_t i = 0; i < std::min(count, kShown); ++i) text += (i ? "," : "") + element(i);
  return text + (count > kShown ? ",..]" : "]");
}

std::string text_of_shape(const Shape* s) { return s ? cat(*s) : address(s); }

}  // namespace

std::string text_of(cudnnDataType_t t) { return name_of(t); }
std::string text_of(cudnnTensorDescriptor_t t) { return text_of_shape(t); }
std::string text_of(cudnnFilterDescriptor_t t) { return text_of_shape(t); }
std::string text_of(cudnnBackendAttributeType_t t) { return name_of(t); }

std::string text_of(cudnnBackendDescriptorType_t t) {
  const DescriptorRow* row = find_row(t);
  return row ? row->text : cat(static_cast<int>(t));
}

std::string text_of(cudnnBackendAttributeName_t n) {
  const AttributeRow* row = find_attribute(n);
  return row ? row->text : cat(static_cast<int>(n));
}

std::string text_of(const Numbers& n) {
  return text_of_array(n.values, n.count, [&](int64_t i) { return cat(n.values[i]); });
}

std::string text_of(const Elements& e) {
  auto array = [&]<class T>(const T* values) {
    return text_of_array(values, e.count, [&](int64_t i) { return text_of(values[i]); });
  };
  switch (e.type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return array(static_cast<const void* const*>(e.values));
    case CUDNN_TYPE_DATA_TYPE:
      return array(static_cast<const cudnnDataType_t*>(e.values));
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return array(static_cast<const uint8_t*>(e.values));
    case CUDNN_TYPE_INT64:
      return array(static_cast<const int64_t*>(e.values));
    case CUDNN_TYPE_FLOAT:
      return array(static_cast<const float*>(e.values));
    case CUDNN_TYPE_DOUBLE:
      return array(static_cast<const double*>(e.values));
    case CUDNN_TYPE_FRACTION:
      return text_of_array(e.values, e.count, [&](int64_t i) {
        const cudnnFraction_t& f = static_cast<const cudnnFraction_t*>(e.values)[i];
        return cat(f.numerator, "/", f.denominator);
      });
    default:  // INT32 and enumerations
      return array(static_cast<const int32_t*>(e.values));
  }
}

void log_call(const char* function, std::string_view names, const std::vector<std::string>& values) {
  std::string text = cat("function ", function, "() called");
  for (const std::string& value : values) {
    // What stands around a name that is not alone: "numbers(padA, arrayLength)".
    bool wrapped = names.find('(') < names.find(',');
    if (wrapped) names.remove_prefix(names.find('(') + 1);
    text += cat("\n", names.substr(0, names.find(',')), "=", value);
    if (wrapped) names.remove_prefix(names.find(')'));
    names.remove_prefix(std::min(names.find_first_not_of(", ", names.find(',')), names.size()));
  }
  log_message(CUDNN_SEV_INFO, CUDNN_STATUS_SUCCESS, text);
}

}  // namespace tsr::capi
