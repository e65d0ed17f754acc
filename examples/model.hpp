// SPDX-License-Identifier: Apache-2.0
// What the model examples share: memory by name, a graph made ready to run on it, an optimiser as a graph.
//
// A model is a function that adds operations to a graph. Parameters are inputs of the graph; their memory has the same
// name in every graph that uses them, so that a training graph and an inference graph share it.
#pragma once

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "flags.hpp"

namespace model {

using namespace tessera;

// --- memory

class Memory {
 public:
  explicit Memory(std::string device) : device_(std::move(device)) {}
  const std::string& device() const { return device_; }
  // Zeros when the name is new.
  Buffer& at(const Tensor& t) { return buffers_.try_emplace(t.name(), t, device_).first->second; }
  Buffer& at(const std::string& name) { return buffers_.at(name); }
  bool has(const std::string& name) const { return buffers_.count(name) > 0; }
  void swap(const std::string& a, const std::string& b) { std::swap(buffers_.at(a), buffers_.at(b)); }

 private:
  std::string device_;
  std::map<std::string, Buffer> buffers_;
};

// A graph planned for the device of `memory`, with its workspace. What it reads and writes lies there, by name. An
// output `next.x` takes the place of `x` after the run: so parameters, averages and caches move on from step to step.
class Program {
 public:
  Program(const Graph& g, Memory& memory)
      : graph_(g), memory_(memory), plan_(g.plan({.device = memory.device()})), workspace_(plan_) {}

  void run() {
    // Bound anew every time, because buffers may have been swapped.
    bindings_.clear();
    for (const auto& tensors : {graph_.inputs(), graph_.outputs()})
      for (const Tensor& t : tensors) bindings_.push_back(bind(t, memory_.at(t)));
    plan_.execute(bindings_, workspace_);
    for (const Tensor& t : graph_.outputs())
      if (t.name().rfind("next.", 0) == 0) memory_.swap(t.name(), t.name().substr(5));
  }
  const Plan& plan() const { return plan_; }

 private:
  Graph graph_;
  Memory& memory_;
  Plan plan_;
  Workspace workspace_;
  std::vector<Binding> bindings_;
};

// --- parameters

// Declares the parameters of a model in a graph. The first graph that names one decides its first values.
class Parameters {
 public:
  Parameters(Graph& g, Memory& memory, uint64_t seed) : g_(g), memory_(memory), random_(seed) {}

  Tensor normal(const std::string& name, const Ints& dims, double stddev) {
    std::normal_distribution<double> values(0, stddev);
    return add(name, dims, [&] { return values(random_); });
  }
  Tensor constant(const std::string& name, const Ints& dims, double value) {
    return add(name, dims, [&] { return value; });
  }
  // Not trained, but kept: running statistics.
  Tensor state(const std::string& name, const Ints& dims, double value) {
    Tensor t = constant(name, dims, value);
    all_.pop_back();
    return t;
  }
  Graph& graph() const { return g_; }
  const std::vector<Tensor>& all() const { return all_; }
  int64_t count() const {
    int64_t n = 0;
    for (const Tensor& t : all_) n += memory_.at(t).size();
    return n;
  }

 private:
  template <class F>
  Tensor add(const std::string& name, const Ints& dims, const F& value) {
    for (const Tensor& t : all_)
      if (t.name() == name) return t;
    Tensor t = g_.input(name, DType::f32, dims);
    bool fresh = !memory_.has(name);
    Buffer& b = memory_.at(t);
    if (fresh) {
      std::vector<double> values(static_cast<size_t>(b.size()));
      for (double& v : values) v = value();
      b.set(values);
    }
    all_.push_back(t);
    return t;
  }

  Graph& g_;
  Memory& memory_;
  std::mt19937_64 random_;
  std::vector<Tensor> all_;
};

// --- AdamW, in the graph that computes the loss

class AdamW {
 public:
  struct Options {
    double rate = 1e-3, beta1 = 0.9, beta2 = 0.99, eps = 1e-8, decay = 0.01;
  };

  // Adds the gradients of `loss` and the update of every parameter to the graph.
  AdamW(const Parameters& parameters, Tensor loss, Options options) : o_(options) {
    Graph& g = parameters.graph();
    rate_ = g.scalar("adamw.rate", DType::f32);
    // By step: 1 / (1 - beta^step), the corrections of the averages' bias towards their first value, 0.
    correction1_ = g.scalar("adamw.correction1", DType::f32);
    correction2_ = g.scalar("adamw.correction2", DType::f32);
    std::vector<Tensor> gradients = gradient(loss, parameters.all());
    for (size_t i = 0; i < gradients.size(); ++i) update(g, parameters.all()[i], gradients[i]);
  }

  // Runs one step of `program`, which was made of the graph.
  void step(Program& program, Memory& memory, double rate) {
    ++steps_;
    memory.at(rate_).set(0, rate);
    memory.at(correction1_).set(0, 1 / (1 - std::pow(o_.beta1, steps_)));
    memory.at(correction2_).set(0, 1 / (1 - std::pow(o_.beta2, steps_)));
    program.run();
  }

 private:
  Tensor averaged(Graph& g, const Tensor& p, const char* kind, double beta, Tensor x) {
    Tensor old = g.input(p.name() + kind, DType::f32, p.dims());
    return g.output(beta * old + (1 - beta) * x, "next." + old.name());
  }

  void update(Graph& g, const Tensor& p, const Tensor& d) {
    Tensor m = averaged(g, p, ".mean", o_.beta1, d), v = averaged(g, p, ".square", o_.beta2, d * d);
    Tensor step = (m * correction1_) / (sqrt(v * correction2_) + o_.eps);
    // Vectors (biases and scales) are not drawn to 0.
    bool matrix = p.dims().size() > 1 && p.dims()[0] > 1;
    if (matrix) step = step + o_.decay * p;
    g.output(p - rate_ * step, "next." + p.name());
  }

  Options o_;
  Tensor rate_, correction1_, correction2_;
  int steps_ = 0;
};

}  // namespace model
