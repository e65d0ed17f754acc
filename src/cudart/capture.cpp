// SPDX-License-Identifier: Apache-2.0
// Capturing streams: their work becomes nodes of a graph.
#include <atomic>

#include "cudart/stream.hpp"

namespace cudart {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

void begin(cudaStream_t stream, CUgraph_st* graph, std::vector<cudaGraphNode_t> after, cudaStreamCaptureMode mode) {
  demand(reinterpret_cast<uintptr_t>(stream) > 1, cudaErrorStreamCaptureUnsupported,
         "the default stream cannot be captured");
  demand(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed, cudaErrorInvalidValue, "mode is ",
         static_cast<int>(mode), ", allowed are 0, 1 and 2");
  CUstream_st& s = find_stream(stream);
  demand(!s.capture, cudaErrorIllegalState, "the stream is being captured already");
  static std::atomic<unsigned long long> last_id{0};
  auto c = std::make_shared<Capture>();
  c->id = ++last_id;
  if (!graph) c->own = std::make_unique<CUgraph_st>();
  c->graph = graph ? graph : c->own.get();
  c->origin = stream, c->mode = mode, c->thread = std::this_thread::get_id();
  c->members.insert(&s);
  s.capture = c, s.last = std::move(after);
}

// Nodes that come before `nodes`, and these.
std::set<cudaGraphNode_t> all_before(std::vector<cudaGraphNode_t> nodes) {
  std::set<cudaGraphNode_t> found;
  while (!nodes.empty()) {
    cudaGraphNode_t n = nodes.back();
    nodes.pop_back();
    if (found.insert(n).second) nodes.insert(nodes.end(), n->after.begin(), n->after.end());
  }
  return found;
}

void check_joined(const Capture& c, const CUstream_st& origin) {
  std::set<cudaGraphNode_t> joined = all_before(origin.last);
  for (const CUstream_st* s : c.members)
    for (cudaGraphNode_t n : s->last)
      demand(joined.count(n) != 0, cudaErrorStreamCaptureUnjoined, "stream ", static_cast<const void*>(s),
             " took part in the capture, and the stream in which it began does not wait for its work");
}

void end(CUstream_st& s, cudaStream_t stream, cudaGraph_t* graph) {
  given(graph, "pGraph") = nullptr;
  demand(s.capture != nullptr, cudaErrorIllegalState, "the stream is not being captured");
  std::shared_ptr<Capture> c = s.capture;
  demand(c->origin == stream, cudaErrorStreamCaptureUnmatched, "the capture began in another stream");
  demand(c->mode == cudaStreamCaptureModeRelaxed || c->thread == std::this_thread::get_id(),
         cudaErrorStreamCaptureWrongThread, "the capture began in another thread");
  struct Leave {
    std::set<CUstream_st*> members;
    ~Leave() {
      for (CUstream_st* m : members) m->capture.reset(), m->last.clear();
    }
  } leave{c->members};
  demand(!c->invalid, cudaErrorStreamCaptureInvalidated, "the capture was spoilt by an earlier call");
  check_joined(*c, s);
  *graph = c->own ? c->own.release() : c->graph;
}

}  // namespace

void leave_capture(CUstream_st& s) {
  std::shared_ptr<Capture> c = s.capture;
  if (!c) return;
  c->invalid = true;
  c->members.erase(&s);
  s.capture.reset();
  if (c->origin != &s) return;
  for (CUstream_st* m : c->members) m->capture.reset(), m->last.clear();  // nobody can end it any more
}

cudaStreamCaptureStatus status_of(const CUstream_st& s) {
  if (!s.capture) return cudaStreamCaptureStatusNone;
  return s.capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

void capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                  const cudaGraphNode_t** dependencies, size_t* count) {
  const CUstream_st& s = find_stream(stream);
  given(status, "captureStatus_out") = status_of(s);
  if (*status != cudaStreamCaptureStatusActive) return;
  if (id) *id = s.capture->id;
  if (graph) *graph = s.capture->graph;
  if (dependencies) *dependencies = s.last.data();
  if (count) *count = s.last.size();
}

void update_dependencies(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned flags) {
  CUstream_st& s = find_stream(stream);
  demand(s.capture != nullptr, cudaErrorIllegalState, "the stream is not being captured");
  std::vector<cudaGraphNode_t> nodes = nodes_of(*s.capture->graph, dependencies, count);
  if (flags & cudaStreamSetCaptureDependencies) s.last.clear();
  s.last.insert(s.last.end(), nodes.begin(), nodes.end());
}

}  // namespace cudart

using namespace cudart;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return answer("cudaStreamBeginCapture", [&] { begin(stream, nullptr, {}, mode); });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData*, size_t count, cudaStreamCaptureMode mode) {
  return answer("cudaStreamBeginCaptureToGraph", [&] {
    CUgraph_st& g = CUgraph_st::at(graph);
    begin(stream, &g, nodes_of(g, dependencies, count), mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return answer("cudaStreamEndCapture", [&] { end(find_stream(stream), stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return answer("cudaStreamIsCapturing", [&] { given(status, "pCaptureStatus") = status_of(find_stream(stream)); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return answer("cudaThreadExchangeStreamCaptureMode", [&] { std::swap(given(mode, "mode"), thread_mode); });
}
