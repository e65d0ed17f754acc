// SPDX-License-Identifier: Apache-2.0
// A step that is one kernel after the other, all with the same arguments.
#pragma once

#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {

// A result, or kNone if nobody wants it: it has no memory then.
TensorId wanted(const Region& r, TensorId t);

// The type's name in device code, `none` without a tensor.
std::string device_type_of(const Graph& g, TensorId t);
// Whether kernels can read and write the region's tensors one element at a time.
Reason check_elements(const Region& r);
// What to compute in: "double" if the node or one of these tensors needs it, "float" otherwise.
std::string lane_of(const Graph& g, const Node& n, std::initializer_list<TensorId> tensors);
// The instance of a function template of device code for these arguments.
template <class... Arguments>
std::string instance(std::string_view name, const Arguments&... arguments) {
  std::string list;
  ((list += cat(list.empty() ? "" : ", ", arguments)), ...);
  return cat(name, "<", list, ">");
}

// `Args` has a member `workspace`.
template <class Args>
class Launches : public Step, public KernelArgs<Args> {
 public:
  Launches() { KernelArgs<Args>::workspace(this->args.workspace, 0); }
  size_t workspace = 0;  // bytes

  // `o` is one of the operands in `args`.
  void bind(dev::Operand& o, const Graph& g, TensorId t) { this->operand(o, g, t); }
  // Without blocks there is nothing to do.
  void add(const std::string& include, const std::string& args_type, const std::string& body, const Grid& grid,
           const Device& d, const std::string& generated = "") {
    if (grid.blocks == 0) return;
    Program p;
    p.include = include;
    p.generated = generated + "using namespace tsr::dev;";
    p.args = args_type;
    p.body = body;
    p.threads = grid.threads;
    p.blocks_per_unit = 1;  // otherwise the compiler spills a few registers to fit more blocks
    kernels_.emplace_back(get_kernel(p, d), grid);
  }

  size_t workspace_bytes() const override { return workspace; }
  int kernels() const override { return static_cast<int>(kernels_.size()); }
  void run(const StepArgs& a) const override {
    Args now = this->filled(a);
    for (const auto& [kernel, grid] : kernels_) kernel->launch(grid, a.stream, now);
  }

 private:
  std::vector<std::pair<std::shared_ptr<const Kernel>, Grid>> kernels_;
};

// A step of kernels that each have arguments of their own.
class LaunchList : public Step {
 public:
  template <class Args>
  void add(std::shared_ptr<const Kernel> kernel, const Grid& grid, KernelArgs<Args> args) {
    launches_.push_back(std::make_unique<Launch<Args>>(std::move(kernel), grid, std::move(args)));
  }
  int kernels() const override { return static_cast<int>(launches_.size()); }
  void run(const StepArgs& a) const override {
    for (const auto& l : launches_) l->run(a);
  }

 private:
  struct AnyLaunch {
    virtual ~AnyLaunch() = default;
    virtual void run(const StepArgs& a) const = 0;
  };
  template <class Args>
  struct Launch : AnyLaunch {
    Launch(std::shared_ptr<const Kernel> k, const Grid& g, KernelArgs<Args> a)
        : kernel(std::move(k)), grid(g), args(std::move(a)) {}
    void run(const StepArgs& a) const override { kernel->launch(grid, a.stream, args.filled(a)); }
    std::shared_ptr<const Kernel> kernel;
    Grid grid;
    KernelArgs<Args> args;
  };
  std::vector<std::unique_ptr<AnyLaunch>> launches_;
};

// Steps after each other, in the same workspace.
class Sequence : public Step {
 public:
  void add(std::unique_ptr<Step> s) { steps_.push_back(std::move(s)); }
  size_t workspace_bytes() const override;
  int kernels() const override;
  void run(const StepArgs& a) const override;

 private:
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace tsr::cuda
