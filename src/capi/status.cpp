// SPDX-License-Identifier: Apache-2.0
#include "capi/status.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace tsr::capi {
namespace {

thread_local std::string last_error;

cudnnStatus_t category(Status s) {
  switch (s) {
    case Status::bad_parameter:
      return CUDNN_STATUS_BAD_PARAM;
    case Status::not_supported:
      return CUDNN_STATUS_NOT_SUPPORTED;
    case Status::execution_failed:
      return CUDNN_STATUS_EXECUTION_FAILED;
    default:
      return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

cudnnStatus_t keep(const char* function, cudnnStatus_t status, const char* text) {
  last_error = cat(function, ": ", text, " (", cudnnGetErrorString(status), ")");
  if (logs(CUDNN_SEV_ERROR)) log_message(CUDNN_SEV_ERROR, status, last_error);
  return status;
}

}  // namespace

cudnnStatus_t status_of_exception(const char* function) noexcept {
  try {
    try {
      throw;
    } catch (const Failure& f) {
      return keep(function, f.status, f.text.c_str());
    } catch (const Error& e) {
      return keep(function, category(e.status()), e.what());
    } catch (const std::bad_alloc&) {
      return keep(function, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "the host has no memory left");
    } catch (const std::exception& e) {
      return keep(function, CUDNN_STATUS_INTERNAL_ERROR, e.what());
    }
  } catch (...) {  // not even the message could be kept
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

}  // namespace tsr::capi

void CUDNNWINAPI cudnnGetLastErrorString(char* message, size_t max_size) {
  if (!message || max_size == 0) return;
  using tsr::capi::last_error;
  size_t n = std::min(last_error.size(), max_size - 1);
  std::memcpy(message, last_error.data(), n);
  message[n] = '\0';
  last_error.clear();
}
