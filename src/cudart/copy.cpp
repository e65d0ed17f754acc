// SPDX-License-Identifier: Apache-2.0
// Copies and fills. All memory is host memory: what a program says of directions is only checked for sense.
#include <cstring>

#include "cudart/memory.hpp"
#include "cudart/stream.hpp"

namespace cudart {
namespace {

std::byte* place(const cudaPitchedPtr& p, const cudaPos& at, size_t y, size_t z) {
  return static_cast<std::byte*>(p.ptr) + ((at.z + z) * p.ysize + at.y + y) * p.pitch + at.x;
}

// One side of a copy.
void check_side(const cudaPitchedPtr& p, const cudaPos& at, const cudaExtent& e, const char* name) {
  demand(p.ptr, cudaErrorInvalidValue, name, " is a null pointer");
  bool rows = e.height > 1 || e.depth > 1;
  demand(!rows || p.pitch >= at.x + e.width, cudaErrorInvalidPitchValue, "the pitch of ", name, " is ", p.pitch,
         " bytes, rows end at ", at.x + e.width);
  demand(e.depth == 1 || p.ysize >= at.y + e.height, cudaErrorInvalidValue, "ysize of ", name, " is ", p.ysize,
         ", slices end at row ", at.y + e.height);
  const std::byte* first = place(p, at, 0, 0);
  const std::byte* last = place(p, at, e.height - 1, e.depth - 1) + e.width;
  check_range(first, static_cast<size_t>(last - first), name);
}

bool empty(const cudaExtent& e) { return e.width == 0 || e.height == 0 || e.depth == 0; }

cudaMemcpy3DParms rows(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                       cudaMemcpyKind kind) {
  cudaMemcpy3DParms p{};
  p.srcPtr = {const_cast<void*>(src), spitch, width, height};
  p.dstPtr = {dst, dpitch, width, height};
  p.extent = {width, height, 1};
  p.kind = kind;
  return p;
}

cudaMemcpy3DParms between_devices(const cudaMemcpy3DPeerParms* p) {
  const cudaMemcpy3DPeerParms& g = given(p, "p");
  demand(g.srcDevice == 0 && g.dstDevice == 0, cudaErrorInvalidDevice, "devices ", g.srcDevice, " and ", g.dstDevice,
         ": there is only device 0");
  return {g.srcArray, g.srcPos, g.srcPtr, g.dstArray, g.dstPos, g.dstPtr, g.extent, cudaMemcpyDefault};
}

void check_devices(int dst, int src) {
  demand(dst == 0 && src == 0, cudaErrorInvalidDevice, "devices ", dst, " and ", src, ": there is only device 0");
}

void set(void* dst, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  cudaMemsetParams p{dst, pitch, static_cast<unsigned>(value) & 0xff, 1, width, height};
  submit(stream, set_work(&p));
}

void set_slices(const cudaPitchedPtr& dst, int value, const cudaExtent& e, cudaStream_t stream) {
  auto* at = static_cast<std::byte*>(dst.ptr);
  for (size_t z = 0; z < e.depth; ++z, at += dst.pitch * dst.ysize)
    set(at, dst.pitch, value, e.width, e.height, stream);
}

}  // namespace

Work copy_work(const cudaMemcpy3DParms* p) {
  const cudaMemcpy3DParms& c = given(p, "the copy's parameters");
  demand(c.kind >= cudaMemcpyHostToHost && c.kind <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection, "kind is ",
         static_cast<int>(c.kind), ", allowed are 0 to 4");
  demand(!c.srcArray && !c.dstArray, cudaErrorNotSupported, "there are no arrays here, only linear memory");
  if (!empty(c.extent)) {
    check_side(c.dstPtr, c.dstPos, c.extent, "dst");
    check_side(c.srcPtr, c.srcPos, c.extent, "src");
  }
  return c;
}

Work copy_work(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p = rows(dst, bytes, src, bytes, bytes, 1, kind);
  return copy_work(&p);
}

Work set_work(const cudaMemsetParams* p) {
  const cudaMemsetParams& s = given(p, "the fill's parameters");
  demand(s.elementSize == 1 || s.elementSize == 2 || s.elementSize == 4, cudaErrorInvalidValue, "elementSize is ",
         s.elementSize, ", allowed are 1, 2 and 4");
  if (s.width == 0 || s.height == 0) return s;
  demand(s.height == 1 || s.pitch >= s.width * s.elementSize, cudaErrorInvalidPitchValue, "the pitch is ", s.pitch,
         " bytes, rows have ", s.width * s.elementSize);
  check_range(s.dst, (s.height - 1) * s.pitch + s.width * s.elementSize, "dst");
  return s;
}

void run_copy(const cudaMemcpy3DParms& p) {
  if (empty(p.extent)) return;
  for (size_t z = 0; z < p.extent.depth; ++z)
    for (size_t y = 0; y < p.extent.height; ++y)
      std::memmove(place(p.dstPtr, p.dstPos, y, z), place(p.srcPtr, p.srcPos, y, z), p.extent.width);
}

void run_set(const cudaMemsetParams& p) {
  for (size_t y = 0; y < p.height; ++y) {
    auto* row = static_cast<std::byte*>(p.dst) + y * p.pitch;
    if (p.elementSize == 1)
      std::memset(row, static_cast<int>(p.value), p.width);
    else
      for (size_t x = 0; x < p.width; ++x) std::memcpy(row + x * p.elementSize, &p.value, p.elementSize);
  }
}

}  // namespace cudart

using namespace cudart;

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return answer("cudaMemcpy", [&] { run(copy_work(dst, src, count, kind)); });
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return answer("cudaMemcpyAsync", [&] { submit(stream, copy_work(dst, src, count, kind)); });
}

cudaError_t cudaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device, size_t count) {
  return answer("cudaMemcpyPeer", [&] {
    check_devices(dst_device, src_device);
    run(copy_work(dst, src, count, cudaMemcpyDefault));
  });
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device, size_t count,
                                cudaStream_t stream) {
  return answer("cudaMemcpyPeerAsync", [&] {
    check_devices(dst_device, src_device);
    submit(stream, copy_work(dst, src, count, cudaMemcpyDefault));
  });
}

cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return answer("cudaMemcpy2D", [&] {
    cudaMemcpy3DParms p = rows(dst, dpitch, src, spitch, width, height, kind);
    run(copy_work(&p));
  });
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return answer("cudaMemcpy2DAsync", [&] {
    cudaMemcpy3DParms p = rows(dst, dpitch, src, spitch, width, height, kind);
    submit(stream, copy_work(&p));
  });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return answer("cudaMemcpy3D", [&] { run(copy_work(p)); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return answer("cudaMemcpy3DAsync", [&] { submit(stream, copy_work(p)); });
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p) {
  return answer("cudaMemcpy3DPeer", [&] {
    cudaMemcpy3DParms c = between_devices(p);
    run(copy_work(&c));
  });
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return answer("cudaMemcpy3DPeerAsync", [&] {
    cudaMemcpy3DParms c = between_devices(p);
    submit(stream, copy_work(&c));
  });
}

cudaError_t cudaMemset(void* dst, int value, size_t count) {
  return answer("cudaMemset", [&] { set(dst, count, value, count, 1, nullptr); });
}

cudaError_t cudaMemsetAsync(void* dst, int value, size_t count, cudaStream_t stream) {
  return answer("cudaMemsetAsync", [&] { set(dst, count, value, count, 1, stream); });
}

cudaError_t cudaMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height) {
  return answer("cudaMemset2D", [&] { set(dst, pitch, value, width, height, nullptr); });
}

cudaError_t cudaMemset2DAsync(void* dst, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return answer("cudaMemset2DAsync", [&] { set(dst, pitch, value, width, height, stream); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr dst, int value, cudaExtent extent) {
  return answer("cudaMemset3D", [&] { set_slices(dst, value, extent, nullptr); });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr dst, int value, cudaExtent extent, cudaStream_t stream) {
  return answer("cudaMemset3DAsync", [&] { set_slices(dst, value, extent, stream); });
}
