// SPDX-License-Identifier: Apache-2.0
// Events: since work is done when it is submitted, an event has happened when it is recorded.
#include "cudart/stream.hpp"

void CUevent_st::record() {
  recorded = true;
  capture.reset();
  time = std::chrono::steady_clock::now();
}

namespace cudart {
namespace {

void create(cudaEvent_t* event, unsigned flags) {
  demand(flags <= 7, cudaErrorInvalidValue, "flags is ", flags, ", allowed are 0 to 7");
  auto e = std::make_unique<CUevent_st>();
  e->flags = flags;
  given(event, "event") = e.release();
}

void record(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  CUevent_st& e = CUevent_st::at(event);
  CUstream_st& s = find_stream(stream);
  if (!s.capture) return e.record();
  if (flags & cudaEventRecordExternal) {
    record(s, record_work(event));
    return;
  }
  demand(!s.capture->invalid, cudaErrorStreamCaptureInvalidated, "the capture was spoilt by an earlier call");
  e.capture = s.capture;
  e.after = s.last;
}

void wait(CUstream_st& s, cudaEvent_t event, unsigned flags) {
  CUevent_st& e = CUevent_st::at(event);
  std::shared_ptr<Capture> its = e.capture.lock();
  if (!its) {
    if (!s.capture) return;
    if (flags & cudaEventWaitExternal) {
      record(s, wait_work(event));
      return;
    }
    demand(!e.recorded, cudaErrorStreamCaptureIsolation, "the event was recorded outside of the stream's capture");
    return;
  }
  demand(!s.capture || s.capture == its, cudaErrorStreamCaptureMerge, "the event belongs to another capture");
  if (!s.capture) s.last.clear();
  s.capture = its;
  its->members.insert(&s);
  for (cudaGraphNode_t n : e.after)
    if (std::find(s.last.begin(), s.last.end(), n) == s.last.end()) s.last.push_back(n);
}

CUevent_st& happened(cudaEvent_t event, const char* name) {
  CUevent_st& e = CUevent_st::at(event);
  demand(e.capture.expired(), cudaErrorCapturedEvent, name, " was recorded in a captured stream");
  return e;
}

CUevent_st& timed(cudaEvent_t event, const char* name) {
  CUevent_st& e = happened(event, name);
  demand(e.recorded, cudaErrorInvalidResourceHandle, name, " was never recorded");
  demand(!(e.flags & cudaEventDisableTiming), cudaErrorInvalidResourceHandle, name, " was created without timing");
  return e;
}

}  // namespace
}  // namespace cudart

using namespace cudart;

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return answer("cudaEventCreate", [&] { create(event, 0); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return answer("cudaEventCreateWithFlags", [&] { create(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return answer("cudaEventDestroy", [&] { delete &CUevent_st::at(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer("cudaEventRecord", [&] { record(event, stream, 0); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return answer("cudaEventRecordWithFlags", [&] { record(event, stream, flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer("cudaEventQuery", [&] { happened(event, "event"); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer("cudaEventSynchronize", [&] { happened(event, "event"); });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return answer("cudaEventElapsedTime", [&] {
    std::chrono::duration<float, std::milli> d = timed(end, "end").time - timed(start, "start").time;
    given(ms, "ms") = d.count();
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return answer("cudaStreamWaitEvent", [&] { wait(find_stream(stream), event, flags); });
}
