// SPDX-License-Identifier: Apache-2.0
#include "harness/replay.hpp"

#include <algorithm>
#include <deque>

#include "graph/op.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

namespace tsr {

using cuda::check;
using cuda::driver;

CudaStream::CudaStream(const Device& d) {
  cuda::ensure_context(d.index);
  cuda::Stream s = nullptr;
  constexpr unsigned kNonBlocking = 1;
  check(driver().StreamCreate(&s, kNonBlocking), "cuStreamCreate");
  stream_ = s;
}
CudaStream::~CudaStream() { driver().StreamDestroy(static_cast<cuda::Stream>(stream_)); }
void CudaStream::synchronize() const {
  check(driver().StreamSynchronize(static_cast<cuda::Stream>(stream_)), "cuStreamSynchronize");
}

CapturedGraph::CapturedGraph(const CudaStream& stream, const std::function<void()>& launches) : stream_(stream) {
  auto s = static_cast<cuda::Stream>(stream.get());
  constexpr int kThreadLocal = 1;
  cuda::GraphHandle graph = nullptr;
  check(driver().StreamBeginCapture(s, kThreadLocal), "cuStreamBeginCapture");
  try {
    launches();
  } catch (...) {
    driver().StreamEndCapture(s, &graph);
    if (graph) driver().GraphDestroy(graph);
    throw;
  }
  check(driver().StreamEndCapture(s, &graph), "cuStreamEndCapture");
  graph_ = graph;
  cuda::GraphExec exec = nullptr;
  check(driver().GraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
  exec_ = exec;
  cuda::Event start = nullptr, stop = nullptr;
  check(driver().EventCreate(&start, 0), "cuEventCreate");
  check(driver().EventCreate(&stop, 0), "cuEventCreate");
  start_ = start, stop_ = stop;
}
CapturedGraph::~CapturedGraph() {
  if (exec_) driver().GraphExecDestroy(static_cast<cuda::GraphExec>(exec_));
  if (graph_) driver().GraphDestroy(static_cast<cuda::GraphHandle>(graph_));
  for (void* e : {start_, stop_})
    if (e) driver().EventDestroy(static_cast<cuda::Event>(e));
}
void CapturedGraph::launch() const {
  check(driver().GraphLaunch(static_cast<cuda::GraphExec>(exec_), static_cast<cuda::Stream>(stream_.get())),
        "cuGraphLaunch");
}
double CapturedGraph::timed_launch() const {
  auto s = static_cast<cuda::Stream>(stream_.get());
  auto start = static_cast<cuda::Event>(start_), stop = static_cast<cuda::Event>(stop_);
  check(driver().EventRecord(start, s), "cuEventRecord");
  launch();
  check(driver().EventRecord(stop, s), "cuEventRecord");
  check(driver().EventSynchronize(stop), "cuEventSynchronize");
  float ms = 0;
  check(driver().EventElapsedTime(&ms, start, stop), "cuEventElapsedTime");
  return ms * 1e-3;
}

BufferSets::BufferSets(const Graph& g, const Device& d, const DataSpec& spec, int64_t bytes) {
  // Random data is costly to make and to send: beyond the first elements it repeats.
  constexpr int64_t kRandom = 1 << 18;
  std::vector<TensorId> tensors;
  int64_t total = 0;
  for (TensorId id = 0; id < g.tensor_count(); ++id) {
    const Tensor& t = g.tensor(id);
    if (t.is_constant() || !(t.stored || t.by_value)) continue;
    require(t.ragged == kNone, "tensor ", describe(t), " is ragged, which benchmarks do not fill");
    total += t.bytes();
    tensors.push_back(id);
  }
  int64_t count = std::clamp<int64_t>(bytes / std::max<int64_t>(total, 1) + 1, 2, 64);
  sets_.resize(static_cast<size_t>(count));
  for (TensorId id : tensors) {
    const Tensor& t = g.tensor(id);
    int64_t random = std::min(kRandom, t.span());
    auto period = static_cast<size_t>(byte_size(t.dtype, random)), size = static_cast<size_t>(t.bytes());
    auto data = std::make_shared<std::vector<std::byte>>(std::max<size_t>(period, 1));
    fill(t, data->data(), random, spec);
    for (auto& set : sets_) {
      if (t.by_value) {
        memory_.push_back(data);
        set.push_back({t.uid, data->data()});
        continue;
      }
      memory_.push_back(device_memory(d, size));
      auto* to = static_cast<std::byte*>(memory_.back().get());
      d.memory->copy_in(to, data->data(), std::min(period, size));
      // The filled part doubles until it covers the tensor.
      for (size_t have = period; have < size; have *= 2)
        check(driver().MemcpyDtoDAsync(reinterpret_cast<cuda::Pointer>(to + have), reinterpret_cast<cuda::Pointer>(to),
                                       std::min(have, size - have), nullptr),
              "cuMemcpyDtoDAsync");
      set.push_back({t.uid, to});
    }
  }
  check(driver().CtxSynchronize(), "cuCtxSynchronize");
}

std::vector<Stats> replay_in_turn(const std::vector<const CapturedGraph*>& graphs, const std::vector<int>& parts,
                                  double seconds) {
  constexpr size_t kRounds = 200;
  std::vector<std::vector<double>> times(graphs.size());
  for (const CapturedGraph* g : graphs) (void)g->timed_launch();
  double start = now();
  for (size_t round = 0; round < kRounds && (round < 3 || now() - start < seconds); ++round)
    for (size_t i = 0; i < graphs.size(); ++i) times[i].push_back(graphs[i]->timed_launch() / parts[i]);
  std::vector<Stats> out;
  for (auto& t : times) out.push_back(stats_of(std::move(t)));
  return out;
}

namespace {

std::vector<Stats> replay_works(const Device& d, const std::vector<StreamWork>& works, double seconds) {
  constexpr double kSample = 200e-6;  // long enough that the start of a replay does not count
  CudaStream stream(d);
  std::deque<CapturedGraph> graphs;
  std::vector<const CapturedGraph*> list;
  std::vector<int> parts;
  auto timed = [&](const StreamWork& work) {
    double start = now();
    work(stream.get());
    stream.synchronize();
    return now() - start;
  };
  for (const StreamWork& work : works) {
    (void)timed(work);  // the first call loads kernels
    parts.push_back(std::clamp(static_cast<int>(kSample / timed(work)), 1, 20));
    graphs.emplace_back(stream, [&] {
      for (int i = 0; i < parts.back(); ++i) work(stream.get());
    });
    list.push_back(&graphs.back());
  }
  return replay_in_turn(list, parts, seconds);
}

}  // namespace

std::vector<Stats> time_in_turn(const Device& d, const std::vector<StreamWork>& works, double seconds) {
  if (is_gpu(d)) return replay_works(d, works, seconds);
  std::vector<Work> calls;
  for (const StreamWork& work : works) calls.emplace_back([&work] { work(nullptr); });
  return interleave(calls, seconds);
}

}  // namespace tsr
