// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/host/host.hpp"

#include <cstring>
#include <mutex>

#include "base/settings.hpp"
#include "engines/reference/reference.hpp"
#include "graph/op.hpp"
#include "runtime/cuda/driver.hpp"

namespace tsr::cuda {
namespace {

// Host memory for one execution that is under way, or for one captured graph.
struct Staging {
  explicit Staging(size_t bytes) : bytes_(bytes) {
    RelaxedCapture allowed;
    check(driver().MemAllocHost(&data, bytes), "cuMemAllocHost", bytes, " bytes");
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() { driver().MemFreeHost(data); }

  void* data = nullptr;
  std::vector<void*> table;
  const class HostStep* step = nullptr;
  bool captured = false;

 private:
  size_t bytes_;
};

class HostStep : public Step {
 public:
  HostStep(const Region& r, std::unique_ptr<Step> work, const Device& d)
      : region_(r), emulated_(d.target == "emulated"), work_(std::move(work)) {
    const Graph& g = *r.graph;
    place(r.inputs);
    place(r.outputs);
    scratch_ = bytes_;
    bytes_ += work_->workspace_bytes() + kAlign;
    tensors_ = static_cast<size_t>(g.tensor_count());
    if (d.memory && !emulated_) {
      ensure_context(d.index);
      free_.push_back(std::make_unique<Staging>(bytes_));
    }
  }
  int kernels() const override { return 0; }
  size_t workspace_bytes() const override { return emulated_ ? work_->workspace_bytes() : 0; }

  void run(const StepArgs& a) const override {
    if (emulated_) return work_->run(a);
    auto stream = static_cast<Stream>(a.stream);
    int capturing = 0;
    check(driver().StreamIsCapturing(stream, &capturing), "cuStreamIsCapturing");
    Staging* s = take(capturing != 0);
    const Graph& g = *region_.graph;
    for (const auto& [t, offset] : places_) {
      void* host = static_cast<char*>(s->data) + offset;
      s->table[static_cast<size_t>(t)] = host;
      const Tensor& x = g.tensor(t);
      auto bytes = static_cast<size_t>(x.bytes());
      if (bytes == 0) continue;
      void* given = a.tensors[t];
      if (x.on_host())
        std::memcpy(host, given, bytes);
      else  // outputs too: a tensor with gaps keeps what lies between its elements
        check(driver().MemcpyDtoHAsync(host, reinterpret_cast<Pointer>(given), bytes, stream), "cuMemcpyDtoHAsync");
    }
    check(driver().LaunchHostFunc(stream, compute, s), "cuLaunchHostFunc");
    for (TensorId t : region_.outputs) {
      auto bytes = static_cast<size_t>(g.tensor(t).bytes());
      if (bytes == 0) continue;
      check(driver().MemcpyHtoDAsync(reinterpret_cast<Pointer>(a.tensors[t]), s->table[static_cast<size_t>(t)], bytes,
                                     stream),
            "cuMemcpyHtoDAsync");
    }
    check(driver().LaunchHostFunc(stream, give_back, s), "cuLaunchHostFunc");
  }

 private:
  static constexpr size_t kAlign = 256;

  void place(const std::vector<TensorId>& tensors) {
    for (TensorId t : tensors) {
      places_.emplace_back(t, bytes_);
      bytes_ += (static_cast<size_t>(region_.graph->tensor(t).bytes()) + kAlign) / kAlign * kAlign;
    }
  }

  // The one step that locks and may allocate: several executions can be under way, and each needs memory of its own.
  // Allocating may wait for callbacks under way, and these want the lock: so never under it.
  Staging* take(bool captured) const {
    std::unique_ptr<Staging> staging;
    {
      std::lock_guard guard(lock_);
      if (!free_.empty()) {
        staging = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!staging) staging = std::make_unique<Staging>(bytes_);
    Staging* s = staging.get();
    s->step = this;
    s->captured = captured;
    s->table.assign(tensors_, nullptr);
    std::lock_guard guard(lock_);
    used_.push_back(std::move(staging));
    return s;
  }

  static void compute(void* data) {
    auto* s = static_cast<Staging*>(data);
    try {
      s->step->work_->run({s->table.data(), static_cast<std::byte*>(s->data) + s->step->scratch_, nullptr});
    } catch (const std::exception& e) {
      // A callback cannot raise: NaN says that something went wrong.
      log_line(1, cat("a step computed on the host failed: ", e.what()));
      for (TensorId t : s->step->region_.outputs)
        std::memset(s->table[static_cast<size_t>(t)], 0xff,
                    static_cast<size_t>(s->step->region_.graph->tensor(t).bytes()));
    }
  }

  // A captured graph may be replayed for as long as the plan lives.
  static void give_back(void* data) {
    auto* s = static_cast<Staging*>(data);
    if (s->captured) return;
    const HostStep& step = *s->step;
    std::lock_guard guard(step.lock_);
    for (auto& u : step.used_) {
      if (u.get() != s) continue;
      step.free_.push_back(std::move(u));
      u = std::move(step.used_.back());
      step.used_.pop_back();
      return;
    }
  }

  Region region_;
  bool emulated_;
  std::unique_ptr<Step> work_;
  std::vector<std::pair<TensorId, size_t>> places_;  // where tensors lie in the staging memory
  size_t bytes_ = 0, scratch_ = 0, tensors_ = 0;
  mutable std::mutex lock_;
  mutable std::vector<std::unique_ptr<Staging>> free_, used_;
};

class HostEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "host_cuda", 100, DeviceKind::cuda, true, "copies to the host and computes there by definition, in f64", true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    for (const auto* list : {&r.inputs, &r.outputs})
      for (TensorId t : *list)
        if (r.graph->tensor(t).ragged != kNone)
          return Reason::no("tensor ", describe(r.graph->tensor(t)), " is ragged: its size is known on the GPU only");
    Matched work = ref::engine().match(r, d);
    if (!work.ok()) return work;
    constexpr double kBusBytesPerSecond = 20e9, kCallback = 50e-6;
    Config config = work.match->configs()[0];
    double seconds = config.seconds + kCallback + region_bytes(r) / kBusBytesPerSecond;
    return one_way(seconds, [&r, &d, config, work = std::shared_ptr<Match>(std::move(work.match))] {
      return std::make_unique<HostStep>(r, work->build(config), d);
    });
  }
};

}  // namespace

const Engine& host_engine() {
  static const HostEngine e;
  return e;
}

}  // namespace tsr::cuda
