// SPDX-License-Identifier: Apache-2.0
// cuDNN's algorithms stand for engines of this library; queries list, order and measure them.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "capi/host_graph.hpp"
#include "capi/legacy/convolution.hpp"
#include "runtime/devices.hpp"

using namespace tsr;
using namespace tsr::capi;

namespace {

// What an algorithm stands for. Lists leave out what is there by another name.
struct Meaning {
  Route route;
  bool listed = true;
};
constexpr Meaning kFourier = {Route::fourier}, kTiledFourier = {Route::fourier, false}, kWinograd = {Route::winograd},
                  kFusedWinograd = {Route::winograd, false};

// By the value of the algorithm's enumerator; docs/cudnn.md explains the choice.
constexpr Meaning kForward[CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {{Route::small},  {Route::planner}, {Route::products},
                                                                {Route::onednn}, kFourier,         kTiledFourier,
                                                                kFusedWinograd,  kWinograd};
constexpr Meaning kBackwardData[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT] = {{Route::small}, {Route::planner}, kFourier,
                                                                          kTiledFourier,  kFusedWinograd,   kWinograd};
constexpr Meaning kBackwardFilter[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT] = {
    {Route::small}, {Route::planner}, kFourier, {Route::products}, kFusedWinograd, kWinograd, kTiledFourier};

std::span<const Meaning> meanings_of(ConvPass pass) {
  if (pass == ConvPass::forward) return kForward;
  if (pass == ConvPass::backward_data) return kBackwardData;
  return kBackwardFilter;
}

// The stages that a route asks for by name, if any.
std::string_view stages_of(Route route) {
  if (route == Route::winograd) return "winograd";
  return route == Route::fourier ? "fourier" : "";
}

bool is_followed(Route route, const Plan& p) {
  std::string_view name = stages_of(route);
  return name.empty() || std::any_of(p.stages().begin(), p.stages().end(),
                                     [&](const PlannedStages& s) { return s.rule->name == name; });
}

bool has_onednn(const Device& d) { return d.kind == DeviceKind::cpu && find_engine("onednn"); }

struct Candidate {
  int algorithm;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  double milliseconds = -1;
  size_t memory = 0;
  bool deterministic = true;
  std::string engines;  // with what they would do
};

// Describes the plain convolution to a call of its own; all queries and calls share its plan.
struct PlainCall {
  PlainCall(cudnnHandle_t handle, const Convolution& convolution, Route route, const ConvPointers& p)
      : c(convolution), call(handle, "convolution"), blend(call, kNoFactor, kNoFactor, c.y.type) {
    describe_to(call, c, p);
    follow(call, handle, route);
    plan = call.plan(make);
    own = route == Route::small;
    followed = plan->options().without == call.options.without && is_followed(route, *plan);
    workspace_bytes = own ? 0 : plan->workspace_bytes();
  }
  // Lists tell what an algorithm's own engines can do.
  void describe(Candidate& k) const {
    demand(followed, CUDNN_STATUS_NOT_SUPPORTED, "the algorithm's engines do not compute this convolution");
    k.memory = workspace_bytes, k.deterministic = plan->deterministic();
    for (const PlannedStages& s : plan->stages()) k.engines += cat(s.rule->name, ": ");
    for (const PlannedStep& s : plan->steps()) k.engines += cat(s.engine->info().name, " ", to_string(s.config), ";");
  }
  void run(void* workspace, size_t bytes) { call.run(make, workspace, bytes, own); }

  const Convolution& c;
  Call call;
  Blend blend;
  std::function<void(Maker&)> make = [this](Maker& m) { make_convolution_graph(m, c, blend); };
  std::shared_ptr<const Plan> plan;
  bool own = false;            // in the handle's memory
  bool followed = false;       // the plan is what the route asks for
  size_t workspace_bytes = 0;  // of the caller's
};

// Memory of the handle's device, all zeros, for measurements.
class Memory {
 public:
  Memory(const Device& d, size_t bytes) : device_(d) {
    constexpr size_t kAlign = 256;
    size_t rounded = std::max(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
    if (device_.memory) {
      std::vector<std::byte> zeros(rounded);
      data_ = device_.memory->allocate(rounded);
      device_.memory->copy_in(data_, zeros.data(), rounded);
    } else if ((data_ = std::aligned_alloc(kAlign, rounded))) {
      std::memset(data_, 0, rounded);
    } else {
      throw std::bad_alloc();
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { device_.memory ? device_.memory->release(data_) : std::free(data_); }
  void* data() const { return data_; }

 private:
  const Device& device_;
  void* data_ = nullptr;
};

// One run to warm up, then as many as fit into some milliseconds.
template <class Run>
double measure(const cudnnContext& handle, const Run& run) {
  demand(is_gpu(handle.device) || !is_recording(handle.stream), CUDNN_STATUS_NOT_SUPPORTED,
         "nothing can be measured in a stream that is being captured");
  auto timed = [&](int count) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) run();
    synchronize(handle.device, handle.stream);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / count;
  };
  constexpr double kBudget = 5;
  run();
  synchronize(handle.device, handle.stream);
  double once = timed(1);
  int count = static_cast<int>(std::clamp(kBudget / std::max(once, 1e-3), 0.0, 20.0));
  return count < 2 ? once : timed(count);
}

// What the plan's cost model expects.
double modelled(const Plan& p) {
  double seconds = 0;
  for (const PlannedStep& s : p.steps()) seconds += s.config.seconds;
  return seconds * 1e3;
}

// Fills in a candidate by `use`, or says why it is none.
template <class Use>
Candidate candidate(int algorithm, const Use& use) {
  Candidate k{algorithm};
  try {
    use(k);
  } catch (const Failure& f) {
    k.status = f.status;
  } catch (const Error& e) {
    k.status = e.status() == Status::not_supported ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_INTERNAL_ERROR;
  } catch (const std::bad_alloc&) {
    k.status = CUDNN_STATUS_ALLOC_FAILED;
  }
  return k;
}

// The algorithms of a pass that have engines, the fastest first, those that cannot be used last. The planner's own
// choice wins ties. What another does likewise in no more memory is left out.
template <class Use>
std::vector<Candidate> ranked(const Device& d, ConvPass pass, const Use& use) {
  std::span<const Meaning> all = meanings_of(pass);
  std::vector<Candidate> list;
  for (bool planner : {true, false})
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      Meaning m = all[static_cast<size_t>(i)];
      bool exists = m.listed && (m.route != Route::onednn || has_onednn(d));
      if (!exists || (m.route == Route::planner) != planner) continue;
      Candidate k = candidate(i, [&](Candidate& now) { use(now, m.route); });
      bool known = std::any_of(list.begin(), list.end(), [&](const Candidate& o) {
        return !k.engines.empty() && o.engines == k.engines && o.memory <= k.memory;
      });
      if (!known) list.push_back(k);
    }
  std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
    bool works = a.status == CUDNN_STATUS_SUCCESS, other = b.status == CUDNN_STATUS_SUCCESS;
    return works != other ? works : works && a.milliseconds < b.milliseconds;
  });
  return list;
}

// Where the caller wants the results; checked before anything is measured.
template <class Perf>
struct Places {
  Places(int requested, int* returned, Perf* results) : requested(requested), returned(returned), results(results) {
    demand(requested > 0, CUDNN_STATUS_BAD_PARAM, "requestedAlgoCount is ", requested, ", it must be positive");
    given(returned, "returnedAlgoCount");
    given(results, "perfResults");
  }
  int requested;
  int* returned;
  Perf* results;
};

template <class Perf>
void give(const std::vector<Candidate>& list, const Convolution& c, const Places<Perf>& to) {
  *to.returned = std::min(to.requested, static_cast<int>(list.size()));
  for (int i = 0; i < *to.returned; ++i) {
    const Candidate& k = list[static_cast<size_t>(i)];
    Perf& r = to.results[i];
    r = Perf{};
    r.algo = static_cast<decltype(r.algo)>(k.algorithm);
    r.status = k.status;
    r.time = static_cast<float>(k.milliseconds);
    r.memory = k.memory;
    r.determinism = k.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    r.mathType = c.conv.math;
  }
}

std::vector<Candidate> expected(cudnnHandle_t handle, const Convolution& c) {
  const Device& d = given(handle, "handle").device;
  return ranked(d, c.pass, [&](Candidate& k, Route route) {
    PlainCall p(handle, c, route, kUnknownPointers);
    p.describe(k);
    k.milliseconds = modelled(*p.plan);
  });
}

std::vector<Candidate> measured(cudnnHandle_t handle, const Convolution& c, const ConvPointers& p, void* workspace,
                                size_t bytes) {
  Call probe(handle, "convolution");
  describe_to(probe, c, p);  // refuses null pointers, which no algorithm can do anything about
  return ranked(handle->device, c.pass, [&](Candidate& k, Route route) {
    PlainCall plain(handle, c, route, p);
    plain.describe(k);
    demand(k.memory <= bytes, CUDNN_STATUS_ALLOC_FAILED, "the workspace is too small");
    k.milliseconds = measure(*handle, [&] { plain.run(workspace, bytes); });
  });
}

// In memory of its own, with as much workspace as each algorithm wants.
std::vector<Candidate> measured(cudnnHandle_t handle, const Convolution& c) {
  const Device& d = given(handle, "handle").device;
  Memory x(d, bytes_of(c.x)), w(d, bytes_of(c.w)), y(d, bytes_of(c.y));
  ConvPointers p{x.data(), w.data(), y.data()};
  return ranked(d, c.pass, [&](Candidate& k, Route route) {
    PlainCall plain(handle, c, route, p);
    plain.describe(k);
    Memory workspace(d, k.memory);
    k.milliseconds = measure(*handle, [&] { plain.run(workspace.data(), k.memory); });
  });
}

void give_count(cudnnHandle_t handle, ConvPass pass, int* count) {
  given(handle, "handle");
  given(count, "count") = static_cast<int>(meanings_of(pass).size());
}

void give_workspace(cudnnHandle_t handle, const Convolution& c, int algorithm, size_t* bytes) {
  given(handle, "handle");
  given(bytes, "sizeInBytes") = workspace_of(handle, c, route_of(c.pass, algorithm));
}

// Those of the engines that this library has.
std::vector<std::string> present(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return !find_engine(name); });
  return names;
}

}  // namespace

namespace tsr::capi {

Route route_of(ConvPass pass, int algorithm) {
  std::span<const Meaning> all = meanings_of(pass);
  demand(algorithm >= 0 && algorithm < static_cast<int>(all.size()), CUDNN_STATUS_BAD_PARAM, "algorithm ", algorithm,
         " does not exist, there are ", all.size());
  return all[static_cast<size_t>(algorithm)].route;
}

void follow(Call& call, cudnnHandle_t handle, Route route) {
  static const std::vector<std::string> products = present({"onednn", "reference", "host_cuda"}),
                                        onednn = present({"gemm_cpu", "reference"});
  const Device& d = given(handle, "handle").device;
  if (route == Route::products || route == Route::small) call.options.without = products;
  if (route == Route::onednn && has_onednn(d)) call.options.without = onednn;
  call.options.stages = stages_of(route);
  call.engines_are_a_wish = true;
}

size_t workspace_of(cudnnHandle_t handle, const Convolution& c, Route route) {
  return PlainCall(handle, c, route, kUnknownPointers).workspace_bytes;
}

}  // namespace tsr::capi

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return answer(TESSERA_CALL(cudnnGetConvolutionForwardAlgorithmMaxCount, handle, count),
                [&] { give_count(handle, ConvPass::forward, count); });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return answer(TESSERA_CALL(cudnnGetConvolutionBackwardDataAlgorithmMaxCount, handle, count),
                [&] { give_count(handle, ConvPass::backward_data, count); });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return answer(TESSERA_CALL(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount, handle, count),
                [&] { give_count(handle, ConvPass::backward_filter, count); });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc, const cudnnFilterDescriptor_t filterDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t destDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  auto entry = TESSERA_CALL(cudnnGetConvolutionForwardAlgorithm_v7, handle, srcDesc, filterDesc, convDesc, destDesc,
                            requestedAlgoCount, returnedAlgoCount, perfResults);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::forward, convDesc, srcDesc, filterDesc, destDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(expected(handle, c), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc, const cudnnTensorDescriptor_t diffDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  auto entry = TESSERA_CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7, handle, filterDesc, diffDesc, convDesc,
                            gradDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_data, convDesc, gradDesc, filterDesc, diffDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(expected(handle, c), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc, const cudnnTensorDescriptor_t diffDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  auto entry = TESSERA_CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7, handle, srcDesc, diffDesc, convDesc,
                            gradDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_filter, convDesc, srcDesc, gradDesc, diffDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(expected(handle, c), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  auto entry = TESSERA_CALL(cudnnFindConvolutionForwardAlgorithm, handle, xDesc, wDesc, convDesc, yDesc,
                            requestedAlgoCount, returnedAlgoCount, perfResults);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::forward, convDesc, xDesc, wDesc, yDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(measured(handle, c), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  auto entry = TESSERA_CALL(cudnnFindConvolutionBackwardDataAlgorithm, handle, wDesc, dyDesc, convDesc, dxDesc,
                            requestedAlgoCount, returnedAlgoCount, perfResults);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_data, convDesc, dxDesc, wDesc, dyDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(measured(handle, c), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  auto entry = TESSERA_CALL(cudnnFindConvolutionBackwardFilterAlgorithm, handle, xDesc, dyDesc, convDesc, dwDesc,
                            requestedAlgoCount, returnedAlgoCount, perfResults);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_filter, convDesc, xDesc, dwDesc, dyDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(measured(handle, c), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnFilterDescriptor_t wDesc,
    const void* w, const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc, void* y,
    const int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults, void* workSpace,
    size_t workSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnFindConvolutionForwardAlgorithmEx, handle, xDesc, x, wDesc, w, convDesc, yDesc, y,
                            requestedAlgoCount, returnedAlgoCount, perfResults, workSpace, workSpaceSizeInBytes);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::forward, convDesc, xDesc, wDesc, yDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(measured(handle, c, {x, w, y}, workSpace, workSpaceSizeInBytes), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnTensorDescriptor_t dyDesc,
    const void* dy, const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc, void* dx,
    const int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults,
    void* workSpace, size_t workSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnFindConvolutionBackwardDataAlgorithmEx, handle, wDesc, w, dyDesc, dy, convDesc, dxDesc,
                            dx, requestedAlgoCount, returnedAlgoCount, perfResults, workSpace, workSpaceSizeInBytes);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_data, convDesc, dxDesc, wDesc, dyDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(measured(handle, c, {dx, w, dy}, workSpace, workSpaceSizeInBytes), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnTensorDescriptor_t dyDesc,
    const void* y, const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc, void* dw,
    const int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults,
    void* workSpace, size_t workSpaceSizeInBytes) {
  auto entry =
      TESSERA_CALL(cudnnFindConvolutionBackwardFilterAlgorithmEx, handle, xDesc, x, dyDesc, y, convDesc, dwDesc, dw,
                   requestedAlgoCount, returnedAlgoCount, perfResults, workSpace, workSpaceSizeInBytes);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_filter, convDesc, xDesc, dwDesc, dyDesc);
    Places to(requestedAlgoCount, returnedAlgoCount, perfResults);
    give(measured(handle, c, {x, dw, y}, workSpace, workSpaceSizeInBytes), c, to);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle,
                                                                  const cudnnTensorDescriptor_t xDesc,
                                                                  const cudnnFilterDescriptor_t wDesc,
                                                                  const cudnnConvolutionDescriptor_t convDesc,
                                                                  const cudnnTensorDescriptor_t yDesc,
                                                                  cudnnConvolutionFwdAlgo_t algo, size_t* sizeInBytes) {
  auto entry =
      TESSERA_CALL(cudnnGetConvolutionForwardWorkspaceSize, handle, xDesc, wDesc, convDesc, yDesc, algo, sizeInBytes);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::forward, convDesc, xDesc, wDesc, yDesc);
    give_workspace(handle, c, algo, sizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t* sizeInBytes) {
  auto entry = TESSERA_CALL(cudnnGetConvolutionBackwardDataWorkspaceSize, handle, wDesc, dyDesc, convDesc, dxDesc, algo,
                            sizeInBytes);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_data, convDesc, dxDesc, wDesc, dyDesc);
    give_workspace(handle, c, algo, sizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t* sizeInBytes) {
  auto entry = TESSERA_CALL(cudnnGetConvolutionBackwardFilterWorkspaceSize, handle, xDesc, dyDesc, convDesc, gradDesc,
                            algo, sizeInBytes);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_filter, convDesc, xDesc, gradDesc, dyDesc);
    give_workspace(handle, c, algo, sizeInBytes);
  });
}
