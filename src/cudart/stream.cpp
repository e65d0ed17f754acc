// SPDX-License-Identifier: Apache-2.0
#include "cudart/stream.hpp"

#include <atomic>

namespace cudart {
namespace {

unsigned long long new_id() {
  static std::atomic<unsigned long long> last{2};  // the default streams come first
  return ++last;
}

void create(cudaStream_t* stream, unsigned flags, int priority) {
  demand(flags <= cudaStreamNonBlocking, cudaErrorInvalidValue, "flags is ", flags, ", allowed are 0 and 1");
  auto s = std::make_unique<CUstream_st>();
  s->flags = flags, s->priority = priority, s->id = new_id();
  given(stream, "pStream") = s.release();
}

}  // namespace

CUstream_st& find_stream(cudaStream_t stream) {
  static auto& legacy = *new CUstream_st;
  thread_local CUstream_st per_thread;
  auto number = reinterpret_cast<uintptr_t>(stream);
  if (number <= 1) return legacy;
  if (number == 2) return per_thread;
  return CUstream_st::at(stream);
}

void submit(cudaStream_t stream, Work w) {
  CUstream_st& s = find_stream(stream);
  if (s.capture)
    record(s, std::move(w));
  else
    run(w);
}

cudaGraphNode_t record(CUstream_st& s, Work w) {
  demand(!s.capture->invalid, cudaErrorStreamCaptureInvalidated, "the capture was spoilt by an earlier call");
  cudaGraphNode_t node = add_node(*s.capture->graph, std::move(w), s.last);
  s.last = {node};
  return node;
}

void refuse_capture(CUstream_st& s) {
  if (!s.capture) return;
  s.capture->invalid = true;
  fail(cudaErrorStreamCaptureUnsupported, "the stream is being captured: nothing has run that could be waited for");
}

}  // namespace cudart

CUstream_st::~CUstream_st() { cudart::leave_capture(*this); }

using namespace cudart;

int tesseraOwns(const void* handle) {
  bool standard = reinterpret_cast<uintptr_t>(handle) <= 2;  // streams that every runtime has
  bool ours = CUstream_st::alive(static_cast<const CUstream_st*>(handle)) ||
              CUgraph_st::alive(static_cast<const CUgraph_st*>(handle));
  return standard || ours ? 1 : 0;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return answer("cudaStreamCreate", [&] { create(stream, 0, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return answer("cudaStreamCreateWithFlags", [&] { create(stream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return answer("cudaStreamCreateWithPriority", [&] { create(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return answer("cudaStreamDestroy", [&] { delete &CUstream_st::at(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer("cudaStreamSynchronize", [&] { refuse_capture(find_stream(stream)); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return answer("cudaStreamQuery", [&] { refuse_capture(find_stream(stream)); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return answer("cudaStreamGetFlags", [&] { given(flags, "flags") = find_stream(stream).flags; });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return answer("cudaStreamGetPriority", [&] { given(priority, "priority") = find_stream(stream).priority; });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return answer("cudaStreamGetId", [&] {
    const CUstream_st& s = find_stream(stream);
    given(id, "streamId") = s.id != 0 ? s.id : reinterpret_cast<uintptr_t>(stream);
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return answer("cudaStreamGetDevice", [&] {
    find_stream(stream);
    given(device, "device") = 0;
  });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, int attribute, cudaLaunchAttributeValue* value) {
  return answer("cudaStreamGetAttribute",
                [&] { given(value, "value_out") = find_stream(stream).attributes[attribute]; });
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, int attribute, const cudaLaunchAttributeValue* value) {
  return answer("cudaStreamSetAttribute", [&] { find_stream(stream).attributes[attribute] = given(value, "value"); });
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src) {
  return answer("cudaStreamCopyAttributes", [&] { find_stream(dst).attributes = find_stream(src).attributes; });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void*, size_t, unsigned) {
  return answer("cudaStreamAttachMemAsync", [&] { find_stream(stream); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  return answer("cudaStreamAddCallback", [&] {
    refuse_capture(find_stream(stream));
    demand(callback, cudaErrorInvalidValue, "callback is a null pointer");
    callback(stream, cudaSuccess, data);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* data) {
  return answer("cudaLaunchHostFunc", [&] {
    cudaHostNodeParams p{fn, data};
    submit(stream, host_work(&p));
  });
}
