// SPDX-License-Identifier: Apache-2.0
// A graph of the GPU's driver, or of the CUDA runtime that the program is linked with: the stand-in on the CPU.
#pragma once

#include <string>
#include <utility>

#include "client.hpp"

namespace client {

class CudaGraph {
 public:
  static bool exist() { return Gpu::is_real() || (!Gpu::get() && dlsym(RTLD_DEFAULT, "cudaGraphCreate")); }
  CudaGraph() {
    find("GraphCreate", create_), find("GraphDestroy", destroy_), find("GraphInstantiateWithFlags", instantiate_);
    find("GraphLaunch", launch_), find("GraphExecDestroy", drop_), find("GraphAddChildGraphNode", add_child_);
    find("GraphExecChildGraphNodeSetParams", set_child_);
    wait();
    Gpu::check(create_(&graph_, 0));
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() {
    if (runnable_) drop_(runnable_);
    destroy_(graph_);
  }
  operator cudaGraph_t() const { return static_cast<cudaGraph_t>(graph_); }
  void instantiate() { Gpu::check(instantiate_(&runnable_, graph_, 0)); }
  void launch() {
    Gpu::check(launch_(runnable_, nullptr));
    wait();
  }
  void launch_once() {
    instantiate();
    launch();
    Gpu::check(drop_(std::exchange(runnable_, nullptr)));
  }
  void* add_child(const CudaGraph& child) const {
    void* node = nullptr;
    Gpu::check(add_child_(&node, graph_, nullptr, 0, child.graph_));
    return node;
  }
  int set_child(void* node, const CudaGraph& child) const { return set_child_(runnable_, node, child.graph_); }

 private:
  // The driver and the runtime have the same functions, by these names behind `cu` and `cuda`.
  template <class F>
  static void find(const std::string& name, F& f) {
    if (Gpu::is_real())
      Gpu::get()->find(("cu" + name).c_str(), f);
    else
      f = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, ("cuda" + name).c_str()));
  }
  static void wait() {
    if (Gpu::get()) Gpu::get()->wait();
  }
  void *graph_ = nullptr, *runnable_ = nullptr;
  int (*create_)(void**, unsigned) = nullptr;
  int (*destroy_)(void*) = nullptr;
  int (*instantiate_)(void**, void*, unsigned long long) = nullptr;
  int (*launch_)(void*, void*) = nullptr;
  int (*drop_)(void*) = nullptr;
  int (*add_child_)(void**, void*, const void*, size_t, void*) = nullptr;
  int (*set_child_)(void*, void*, void*) = nullptr;
};

}  // namespace client
