// SPDX-License-Identifier: Apache-2.0
// Captured streams and graphs: nothing runs before a launch, and all of it in order then.
#include "runtime.hpp"

namespace {

using namespace cudart_test;
using Ints = std::vector<int>;

void count_up(void* counter) { ++*static_cast<int*>(counter); }

cudaGraphExec_t instantiate(cudaGraph_t g) {
  cudaGraphExec_t e = nullptr;
  EXPECT_CUDA(cudaGraphInstantiate(&e, g, 0));
  return e;
}

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t g) {
  size_t count = 0;
  EXPECT_CUDA(cudaGraphGetNodes(g, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  EXPECT_CUDA(cudaGraphGetNodes(g, nodes.data(), &count));
  return nodes;
}

cudaStreamCaptureStatus status_of(cudaStream_t s) {
  auto status = cudaStreamCaptureStatusNone;
  EXPECT_CUDA(cudaStreamIsCapturing(s, &status));
  return status;
}

TEST(Capture, WorkRunsAtEachLaunchOnly) {
  Array<int> a({1, 2}), b({0, 0});
  int calls = 0;
  cudaStream_t s = new_stream();
  ASSERT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(status_of(s), cudaStreamCaptureStatusActive);
  EXPECT_EQ(status_of(nullptr), cudaStreamCaptureStatusNone);
  ASSERT_CUDA(cudaMemcpyAsync(b.get(), a.get(), 8, cudaMemcpyDeviceToDevice, s));
  ASSERT_CUDA(cudaMemsetAsync(a.get(), 0, 4, s));
  ASSERT_CUDA(cudaLaunchHostFunc(s, count_up, &calls));
  cudaGraph_t g = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(s, &g));
  EXPECT_EQ(status_of(s), cudaStreamCaptureStatusNone);
  EXPECT_EQ(b.values(), (Ints{0, 0}));
  EXPECT_EQ(calls, 0);
  std::vector<cudaGraphNode_t> nodes = nodes_of(g);
  ASSERT_EQ(nodes.size(), 3U);
  cudaGraphNodeType type{};
  EXPECT_CUDA(cudaGraphNodeGetType(nodes[2], &type));
  EXPECT_EQ(type, cudaGraphNodeTypeHost);
  size_t roots = 0;
  EXPECT_CUDA(cudaGraphGetRootNodes(g, nullptr, &roots));
  EXPECT_EQ(roots, 1U);
  cudaGraphExec_t e = instantiate(g);
  EXPECT_CUDA(cudaGraphDestroy(g));
  ASSERT_CUDA(cudaGraphLaunch(e, s));
  EXPECT_EQ(b.values(), (Ints{1, 2}));
  EXPECT_EQ(a.values(), (Ints{0, 2}));
  ASSERT_CUDA(cudaGraphLaunch(e, nullptr));
  EXPECT_EQ(b.values(), (Ints{0, 2}));
  EXPECT_EQ(calls, 2);
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaStreamDestroy(s));
}

TEST(Capture, StreamsJoinByEvents) {
  Array<int> a({5}), b({0}), c({0});
  cudaStream_t first = new_stream(), second = new_stream();
  cudaEvent_t fork = nullptr, join = nullptr;
  ASSERT_CUDA(cudaEventCreate(&fork));
  ASSERT_CUDA(cudaEventCreate(&join));
  ASSERT_CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  ASSERT_CUDA(cudaMemcpyAsync(b.get(), a.get(), 4, cudaMemcpyDefault, first));
  ASSERT_CUDA(cudaEventRecord(fork, first));
  ASSERT_CUDA(cudaStreamWaitEvent(second, fork, 0));
  EXPECT_EQ(status_of(second), cudaStreamCaptureStatusActive);
  ASSERT_CUDA(cudaMemcpyAsync(c.get(), b.get(), 4, cudaMemcpyDefault, second));
  said([&] { EXPECT_EQ(cudaEventQuery(fork), cudaErrorCapturedEvent); });
  ASSERT_CUDA(cudaEventRecord(join, second));
  ASSERT_CUDA(cudaStreamWaitEvent(first, join, 0));
  cudaGraph_t g = nullptr;
  said([&] { EXPECT_EQ(cudaStreamEndCapture(second, &g), cudaErrorStreamCaptureUnmatched); });
  ASSERT_CUDA(cudaStreamEndCapture(first, &g));
  EXPECT_EQ(status_of(second), cudaStreamCaptureStatusNone);
  cudaGraphExec_t e = instantiate(g);
  ASSERT_CUDA(cudaGraphLaunch(e, first));
  EXPECT_EQ(c.values(), Ints{5});
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaGraphDestroy(g));
  // Without the join the capture is of no use.
  ASSERT_CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  ASSERT_CUDA(cudaEventRecord(fork, first));
  ASSERT_CUDA(cudaStreamWaitEvent(second, fork, 0));
  ASSERT_CUDA(cudaMemsetAsync(c.get(), 0, 4, second));
  said([&] { EXPECT_EQ(cudaStreamEndCapture(first, &g), cudaErrorStreamCaptureUnjoined); });
  EXPECT_EQ(g, nullptr);
  EXPECT_EQ(status_of(first), cudaStreamCaptureStatusNone);
  for (cudaEvent_t event : {fork, join}) EXPECT_CUDA(cudaEventDestroy(event));
  for (cudaStream_t s : {first, second}) EXPECT_CUDA(cudaStreamDestroy(s));
  cudaGetLastError();
}

TEST(Capture, WaitingForACapturedStreamSpoilsIt) {
  cudaStream_t s = new_stream();
  Array<int> a({1});
  cudaGraph_t g = nullptr;
  said([&] {
    EXPECT_EQ(cudaStreamEndCapture(s, &g), cudaErrorIllegalState);
    EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamBeginCapture(s, static_cast<cudaStreamCaptureMode>(5)), cudaErrorInvalidValue);
    ASSERT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    EXPECT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(status_of(s), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaMemsetAsync(a.get(), 0, 4, s), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
  });
  EXPECT_CUDA(cudaMemsetAsync(a.get(), 0, 4, s));
  EXPECT_EQ(a.values(), Ints{0});
  EXPECT_CUDA(cudaStreamDestroy(s));
  cudaGetLastError();
}

TEST(Capture, EndsWithItsStream) {
  cudaStream_t first = new_stream(), second = new_stream();
  cudaEvent_t fork = nullptr;
  ASSERT_CUDA(cudaEventCreate(&fork));
  ASSERT_CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaEventRecord(fork, first));
  ASSERT_CUDA(cudaStreamWaitEvent(second, fork, 0));
  EXPECT_CUDA(cudaStreamDestroy(first));
  EXPECT_EQ(status_of(second), cudaStreamCaptureStatusNone);
  EXPECT_CUDA(cudaStreamDestroy(second));
  EXPECT_CUDA(cudaEventDestroy(fork));
}

TEST(Capture, GoesOnInAGraphOfTheProgram) {
  int calls = 0;
  cudaStream_t s = new_stream();
  cudaGraph_t g = nullptr, same = nullptr;
  cudaGraphNode_t first = nullptr;
  cudaHostNodeParams host{[](void* n) { *static_cast<int*>(n) = 10; }, &calls};
  ASSERT_CUDA(cudaGraphCreate(&g, 0));
  ASSERT_CUDA(cudaGraphAddHostNode(&first, g, nullptr, 0, &host));
  ASSERT_CUDA(cudaStreamBeginCaptureToGraph(s, g, &first, nullptr, 1, cudaStreamCaptureModeRelaxed));
  ASSERT_CUDA(cudaLaunchHostFunc(s, count_up, &calls));
  ASSERT_CUDA(cudaStreamEndCapture(s, &same));
  EXPECT_EQ(same, g);
  cudaGraphExec_t e = instantiate(g);
  ASSERT_CUDA(cudaGraphLaunch(e, s));
  EXPECT_EQ(calls, 11);
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaGraphDestroy(g));
  EXPECT_CUDA(cudaStreamDestroy(s));
}

TEST(Capture, SaysWhereItStands) {
  cudaStream_t s = new_stream();
  Array<int> a({1});
  auto status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t inside = nullptr, g = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 9;
  ASSERT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaMemsetAsync(a.get(), 0, 4, s));
#if TESSERA_CUDART == 12
  ASSERT_CUDA(cudaStreamGetCaptureInfo_v2(s, &status, &id, &inside, &last, &count));
#else
  ASSERT_CUDA(cudaStreamGetCaptureInfo(s, &status, &id, &inside, &last, nullptr, &count));
#endif
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0U);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(last[0], nodes_of(inside).at(0));
  ASSERT_CUDA(cudaStreamEndCapture(s, &g));
  EXPECT_EQ(g, inside);
  EXPECT_CUDA(cudaGraphDestroy(g));
  EXPECT_CUDA(cudaStreamDestroy(s));
}

TEST(Capture, MemoryOfStreamsBelongsToTheGraph) {
  cudaStream_t s = new_stream();
  Array<int> a({3}), b({0});
  void* between = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaMallocAsync(&between, 4, s));
  ASSERT_NE(between, nullptr);
  ASSERT_CUDA(cudaMemcpyAsync(between, a.get(), 4, cudaMemcpyDefault, s));
  ASSERT_CUDA(cudaMemcpyAsync(b.get(), between, 4, cudaMemcpyDefault, s));
  ASSERT_CUDA(cudaFreeAsync(between, s));
  cudaGraph_t g = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(s, &g));
  EXPECT_EQ(nodes_of(g).size(), 4U);
  cudaGraphExec_t e = instantiate(g);
  EXPECT_CUDA(cudaGraphDestroy(g));
  ASSERT_CUDA(cudaGraphLaunch(e, s));
  ASSERT_CUDA(cudaGraphLaunch(e, s));
  EXPECT_EQ(b.values(), Ints{3});
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  cudaPointerAttributes attributes;
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, between));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_CUDA(cudaStreamDestroy(s));
}

TEST(Capture, ALaunchWithinACaptureIsAChild) {
  cudaStream_t s = new_stream();
  int calls = 0;
  cudaGraph_t inner = nullptr, outer = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&inner, 0));
  cudaHostNodeParams host{count_up, &calls};
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddHostNode(&node, inner, nullptr, 0, &host));
  cudaGraphExec_t e = instantiate(inner);
  ASSERT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaGraphLaunch(e, s));
  ASSERT_CUDA(cudaGraphLaunch(e, s));
  ASSERT_CUDA(cudaStreamEndCapture(s, &outer));
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaGraphDestroy(inner));
  e = instantiate(outer);
  EXPECT_EQ(calls, 0);
  ASSERT_CUDA(cudaGraphLaunch(e, s));
  EXPECT_EQ(calls, 2);
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaGraphDestroy(outer));
  EXPECT_CUDA(cudaStreamDestroy(s));
}

TEST(Graph, NodesRunInTheOrderOfTheirEdges) {
  Array<int> a({0, 1, 2});
  cudaGraph_t g = nullptr;
  cudaGraphNode_t last = nullptr, first = nullptr, empty = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&g, 0));
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&last, g, nullptr, 0, a.get(), a.get() + 1, 4, cudaMemcpyDeviceToDevice));
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&first, g, nullptr, 0, a.get() + 1, a.get() + 2, 4, cudaMemcpyDeviceToDevice));
  ASSERT_CUDA(cudaGraphAddEmptyNode(&empty, g, &first, 1));
#if TESSERA_CUDART == 12
  ASSERT_CUDA(cudaGraphAddDependencies(g, &empty, &last, 1));
#else
  ASSERT_CUDA(cudaGraphAddDependencies(g, &empty, &last, nullptr, 1));
#endif
  cudaGraphExec_t e = instantiate(g);
  ASSERT_CUDA(cudaGraphLaunch(e, nullptr));
  EXPECT_EQ(a.values(), (Ints{2, 2, 2}));
  // A circle cannot run.
#if TESSERA_CUDART == 12
  ASSERT_CUDA(cudaGraphAddDependencies(g, &last, &first, 1));
#else
  ASSERT_CUDA(cudaGraphAddDependencies(g, &last, &first, nullptr, 1));
#endif
  cudaGraphExec_t none = nullptr;
  std::string text = said([&] { EXPECT_EQ(cudaGraphInstantiate(&none, g, 0), cudaErrorInvalidValue); });
  EXPECT_NE(text.find("circle"), std::string::npos) << text;
  EXPECT_CUDA(cudaGraphDestroyNode(empty));
  EXPECT_EQ(nodes_of(g).size(), 2U);
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaGraphDestroy(g));
  said([&] {
    EXPECT_EQ(cudaGraphDestroy(g), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaGraphLaunch(e, nullptr), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaGraphDestroyNode(first), cudaErrorInvalidResourceHandle);
  });
  cudaGetLastError();
}

TEST(Graph, ParametersChangeInTheGraphAndInWhatRuns) {
  Array<int> a({1}), b({2}), to({0});
  cudaGraph_t g = nullptr;
  cudaGraphNode_t copy = nullptr, fill = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&g, 0));
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&copy, g, nullptr, 0, to.get(), a.get(), 4, cudaMemcpyDeviceToDevice));
  cudaMemsetParams set{to.get(), 0, 0x0102, 2, 1, 1};
  ASSERT_CUDA(cudaGraphAddMemsetNode(&fill, g, &copy, 1, &set));
  cudaGraphExec_t e = instantiate(g);
  ASSERT_CUDA(cudaGraphLaunch(e, nullptr));
  EXPECT_EQ(to.values(), Ints{0x0102});
  ASSERT_CUDA(cudaGraphNodeSetEnabled(e, fill, 0));
  ASSERT_CUDA(cudaGraphExecMemcpyNodeSetParams1D(e, copy, to.get(), b.get(), 4, cudaMemcpyDeviceToDevice));
  ASSERT_CUDA(cudaGraphLaunch(e, nullptr));
  EXPECT_EQ(to.values(), Ints{2});
  // The graph itself is as it was; an update takes it over.
  ASSERT_CUDA(cudaGraphExecUpdate(e, g, nullptr));
  ASSERT_CUDA(cudaGraphLaunch(e, nullptr));
  EXPECT_EQ(to.values(), Ints{1});
  ASSERT_CUDA(cudaGraphMemcpyNodeSetParams1D(copy, to.get(), b.get(), 4, cudaMemcpyDeviceToDevice));
  cudaMemcpy3DParms params{};
  ASSERT_CUDA(cudaGraphMemcpyNodeGetParams(copy, &params));
  EXPECT_EQ(params.srcPtr.ptr, b.get());
  // Graphs of another form do not fit.
  cudaGraphNode_t more = nullptr;
  ASSERT_CUDA(cudaGraphAddEmptyNode(&more, g, nullptr, 0));
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_EQ(cudaGraphExecUpdate(e, g, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  said([&] { EXPECT_EQ(cudaGraphMemsetNodeSetParams(copy, &set), cudaErrorInvalidValue); });
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaGraphDestroy(g));
  cudaGetLastError();
}

TEST(Graph, ChildrenAreCopiesAndCanBeReplaced) {
  Array<int> a({1}), b({2}), to({0});
  auto copy_from = [&](const Array<int>& from) {
    cudaGraph_t g = nullptr;
    cudaGraphNode_t n = nullptr;
    EXPECT_CUDA(cudaGraphCreate(&g, 0));
    EXPECT_CUDA(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, to.get(), from.get(), 4, cudaMemcpyDeviceToDevice));
    return g;
  };
  cudaGraph_t child = copy_from(a), other = copy_from(b), g = nullptr, inside = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddChildGraphNode(&node, g, nullptr, 0, child));
  EXPECT_CUDA(cudaGraphDestroy(child));
  ASSERT_CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
  EXPECT_EQ(nodes_of(inside).size(), 1U);
  said([&] { EXPECT_EQ(cudaGraphDestroy(inside), cudaErrorInvalidValue); });
  cudaGraphExec_t e = instantiate(g);
  ASSERT_CUDA(cudaGraphLaunch(e, nullptr));
  EXPECT_EQ(to.values(), Ints{1});
  ASSERT_CUDA(cudaGraphExecChildGraphNodeSetParams(e, node, other));
  EXPECT_CUDA(cudaGraphDestroy(other));
  ASSERT_CUDA(cudaGraphLaunch(e, nullptr));
  EXPECT_EQ(to.values(), Ints{2});
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_CUDA(cudaGraphDestroy(g));
  cudaGetLastError();
}

TEST(Graph, UserObjectsLiveAsLongAsWhatMayRun) {
  int gone = 0;
  cudaUserObject_t object = nullptr;
  cudaGraph_t g = nullptr, clone = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&g, 0));
  ASSERT_CUDA(cudaUserObjectCreate(&object, &gone, count_up, 1, cudaUserObjectNoDestructorSync));
  ASSERT_CUDA(cudaGraphRetainUserObject(g, object, 1, cudaGraphUserObjectMove));
  cudaGraphExec_t e = instantiate(g);
  ASSERT_CUDA(cudaGraphClone(&clone, g));
  EXPECT_CUDA(cudaGraphDestroy(g));
  EXPECT_CUDA(cudaGraphDestroy(clone));
  EXPECT_EQ(gone, 0);
  EXPECT_CUDA(cudaGraphExecDestroy(e));
  EXPECT_EQ(gone, 1);
  said([&] { EXPECT_EQ(cudaUserObjectRelease(object, 1), cudaErrorInvalidResourceHandle); });
  cudaGetLastError();
}

}  // namespace
