// SPDX-License-Identifier: Apache-2.0
// Streams: work is done when it is submitted, so that a stream is always idle; while a stream is captured, its work
// goes into a graph instead.
#pragma once

#include <chrono>
#include <set>
#include <thread>

#include "cudart/graph.hpp"

namespace cudart {

// One capture, of the stream in which it began and of those that joined by waiting for events.
struct Capture {
  unsigned long long id = 0;
  CUgraph_st* graph = nullptr;
  std::unique_ptr<CUgraph_st> own;  // unless the program gave the graph
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::set<CUstream_st*> members;
};

CUstream_st& find_stream(cudaStream_t stream);  // also the default ones

// Runs the work, or records it.
void submit(cudaStream_t stream, Work w);
cudaGraphNode_t record(CUstream_st& s, Work w);
// For calls that a captured stream cannot take: the capture is spoilt.
void refuse_capture(CUstream_st& s);
void leave_capture(CUstream_st& s);
cudaStreamCaptureStatus status_of(const CUstream_st& s);
// What the outputs ask for of a stream's capture; each may be null but the first.
void capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                  const cudaGraphNode_t** dependencies, size_t* count);
void update_dependencies(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned flags);

}  // namespace cudart

struct CUstream_st : cudart::Handle<CUstream_st> {
  static constexpr const char* kWhat = "stream";
  ~CUstream_st();
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  std::shared_ptr<cudart::Capture> capture;
  std::vector<cudaGraphNode_t> last;  // what the next captured node comes after
  std::unordered_map<int, cudaLaunchAttributeValue> attributes;
};

struct CUevent_st : cudart::Handle<CUevent_st> {
  static constexpr const char* kWhat = "event";
  void record();  // now
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  // Where it stands in a capture: what waits for it comes after these nodes.
  std::weak_ptr<cudart::Capture> capture;
  std::vector<cudaGraphNode_t> after;
};
