// SPDX-License-Identifier: Apache-2.0
// A CUDA run time whose streams record while a variable says so.
#include <cstdlib>

extern "C" int cudaStreamIsCapturing(void*, int* status) {
  *status = std::getenv("FAKE_CUDART_RECORDS") ? 1 : 0;
  return 0;
}
