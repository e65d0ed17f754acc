// SPDX-License-Identifier: Apache-2.0
// Versions and the names of statuses.
#include <charconv>

#include "base/settings.hpp"
#include "capi/status.hpp"

namespace tsr::capi {
namespace {

// What is reported: this interface's version, or an older one that TESSERA_REPORT_VERSION asks for.
int version() {
  static const int v = [] {
    int64_t asked = setting_int("TESSERA_REPORT_VERSION");
    if (asked == 0) return CUDNN_VERSION;
    if (asked >= 90000 && asked <= CUDNN_VERSION) return static_cast<int>(asked);
    log_line(
        2, cat("TESSERA_REPORT_VERSION=", asked, " is not in 90000 to ", CUDNN_VERSION, "; reporting ", CUDNN_VERSION));
    return CUDNN_VERSION;
  }();
  return v;
}

}  // namespace
}  // namespace tsr::capi

using namespace tsr::capi;

size_t CUDNNWINAPI cudnnGetVersion(void) { return static_cast<size_t>(version()); }
size_t CUDNNWINAPI cudnnGetMaxDeviceVersion(void) { return CUDNN_MAX_DEVICE_VERSION; }
// The newest CUDA run time whose interface this library was written for; nothing of it is linked.
size_t CUDNNWINAPI cudnnGetCudartVersion(void) { return 13010; }

cudnnStatus_t CUDNNWINAPI cudnnGetProperty(libraryPropertyType type, int* value) {
  return answer(TESSERA_CALL(cudnnGetProperty, type, value), [&] {
    int& out = given(value, "value");
    switch (static_cast<int>(type)) {
      case 0:
        out = version() / 10000;
        return;
      case 1:
        out = version() / 100 % 100;
        return;
      case 2:
        out = version() % 100;
        return;
      default:
        refuse(CUDNN_STATUS_BAD_PARAM, "property ", static_cast<int>(type),
               ": allowed are 0, 1 and 2 (major, minor, patch)");
    }
  });
}

// All parts are one file.
cudnnStatus_t CUDNNWINAPI cudnnGraphVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t CUDNNWINAPI cudnnOpsVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t CUDNNWINAPI cudnnCnnVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t CUDNNWINAPI cudnnAdvVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t CUDNNWINAPI cudnnSubquadraticOpsVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }

const char* CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t status) {
  static constexpr struct {
    int status;
    const char* name;
  } kNames[] = {
      {0, "CUDNN_STATUS_SUCCESS"},
      {1001, "CUDNN_STATUS_NOT_INITIALIZED"},
      {1002, "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"},
      {1003, "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH"},
      {1004, "CUDNN_STATUS_DEPRECATED"},
      {1005, "CUDNN_STATUS_LICENSE_ERROR"},
      {1006, "CUDNN_STATUS_RUNTIME_IN_PROGRESS"},
      {1007, "CUDNN_STATUS_RUNTIME_FP_OVERFLOW"},
      {1008, "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"},
      {2000, "CUDNN_STATUS_BAD_PARAM"},
      {2002, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"},
      {2003, "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER"},
      {2004, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"},
      {2005, "CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND"},
      {2006, "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT"},
      {2007, "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"},
      {2008, "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH"},
      {2009, "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES"},
      {2010, "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE"},
      {2011, "CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH"},
      {2012, "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE"},
      {3000, "CUDNN_STATUS_NOT_SUPPORTED"},
      {3001, "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN"},
      {3002, "CUDNN_STATUS_NOT_SUPPORTED_SHAPE"},
      {3003, "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE"},
      {3004, "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT"},
      {3005, "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER"},
      {3006, "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART"},
      {3007, "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH"},
      {3008, "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING"},
      {3009, "CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE"},
      {3010, "CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT"},
      {3011, "CUDNN_STATUS_NOT_SUPPORTED_PADDING"},
      {3012, "CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM"},
      {3013, "CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API"},
      {3014, "CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE"},
      {4000, "CUDNN_STATUS_INTERNAL_ERROR"},
      {4001, "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED"},
      {4002, "CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE"},
      {4003, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"},
      {4004, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
      {4005, "CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM"},
      {4006, "CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED"},
      {5000, "CUDNN_STATUS_EXECUTION_FAILED"},
      {5001, "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER"},
      {5002, "CUDNN_STATUS_EXECUTION_FAILED_CUBLAS"},
      {5003, "CUDNN_STATUS_EXECUTION_FAILED_CUDART"},
      {5004, "CUDNN_STATUS_EXECUTION_FAILED_CURAND"},
      {2001, "CUDNN_STATUS_INVALID_VALUE"},
  };
  for (const auto& n : kNames)
    if (n.status == status) return n.name;
  return "CUDNN_UNKNOWN_STATUS";
}
