// SPDX-License-Identifier: Apache-2.0
// What the front end's headers want of NVIDIA's run-time compiler, for an engine of theirs that no test uses: it is
// never there, and need not be downloaded.
#pragma once

#include <cstddef>

enum nvrtcResult { NVRTC_SUCCESS = 0, NVRTC_ERROR_INTERNAL_ERROR = 11 };
using nvrtcProgram = struct _nvrtcProgram*;

inline nvrtcResult nvrtcCreateProgram(nvrtcProgram*, const char*, const char*, int, const char* const*,
                                      const char* const*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
inline nvrtcResult nvrtcDestroyProgram(nvrtcProgram*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline nvrtcResult nvrtcGetPTX(nvrtcProgram, char*) { return NVRTC_ERROR_INTERNAL_ERROR; }
inline const char* nvrtcGetErrorString(nvrtcResult) { return "there is no run-time compiler"; }
