// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel, but for what only an execution knows: pointers, numbers that lie on the host, pieces of
// the workspace, and tensor maps, which are made of pointers. A binder knows where in the arguments each of them
// belongs and fills it in at each run, without allocating.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>

#include "device/code_args.cuh"
#include "device/operand.cuh"
#include "engines/cuda/toolkit/code.hpp"
#include "planner/engine.hpp"
#include "planner/expr.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {

// By places: bytes from the start of the arguments.
class Binder {
 public:
  void pointer(size_t place, TensorId t, int64_t bytes_further = 0);  // nothing for kNone
  void workspace(size_t place, size_t offset);
  void number(size_t place, Lane lane, DType type, TensorId t);  // a dev::Number
  void real(size_t place, DType type, TensorId t);               // a double
  void integer(size_t place, DType type, TensorId t);            // an i64
  void bits(size_t place, size_t bytes, TensorId t);             // as they lie on the host
  void map(size_t place, const TensorBox& box, TensorId t, const Device& d);
  void workspace_map(size_t place, const TensorBox& box, size_t offset, const Device& d);

  void fill(std::byte* args, void* const* tensors, std::byte* workspace) const;

 private:
  enum class Kind : uint8_t { pointer, workspace, number, real, integer, bits };
  struct Entry {
    Kind kind;
    Lane lane = Lane::f32;
    DType type = DType::f32;
    TensorId tensor = kNone;
    size_t place;
    int64_t offset = 0;  // in the tensor, in the workspace, or a number of bytes
  };
  struct Map {
    // The last encoding, which serves the next run with the same pointer. Who finds it in use encodes for itself.
    struct Kept {
      std::atomic_flag busy;
      const void* pointer = nullptr;
      dev::TensorMap map;
    };
    size_t place;
    TensorId tensor;  // kNone: the workspace
    size_t offset;    // there
    TensorBox box;
    Device device;
    std::unique_ptr<Kept> kept;

    dev::TensorMap encoded(const void* pointer) const;
  };
  std::vector<Entry> entries_;
  std::vector<Map> maps_;
};

// By the fields of a struct. Fields are those of `args` of this very object.
template <class Args>
class KernelArgs {
 public:
  Args args{};  // what is known when a step is built

  template <class T>
  void pointer(T*& field, TensorId t, int64_t bytes_further = 0) {
    binder_.pointer(place(field), t, bytes_further);
  }
  template <class T>
  void workspace(T*& field, size_t offset) {
    binder_.workspace(place(field), offset);
  }
  void number(dev::Number& field, Lane lane, DType type, TensorId t) { binder_.number(place(field), lane, type, t); }
  // Those of generated code; `id` gives the tensor of `g` that one of its tensors is, or kNone.
  template <class Id>
  void numbers(dev::Number* fields, const Code& code, const Graph& g, const Id& id) {
    for (const NumberPlan& n : code.numbers) {
      dev::Number& field = *fields++;
      field = to_number(n.lane, n.value);
      if (TensorId t = id(n.tensor); t != kNone) number(field, n.lane, g.tensor(t).dtype, t);
    }
  }
  void real(double& field, DType type, TensorId t) { binder_.real(place(field), type, t); }
  void integer(dev::i64& field, DType type, TensorId t) { binder_.integer(place(field), type, t); }
  void map(dev::TensorMap& field, const TensorBox& box, TensorId t, const Device& d) {
    binder_.map(place(field), box, t, d);
  }
  void workspace_map(dev::TensorMap& field, const TensorBox& box, size_t offset, const Device& d) {
    binder_.workspace_map(place(field), box, offset, d);
  }
  // Strides now; then the pointer, or the value of a scalar that lies on the host. Nothing for kNone.
  void operand(dev::Operand& field, const Graph& g, TensorId t);

  Args filled(const StepArgs& s) const {
    Args now = args;
    binder_.fill(reinterpret_cast<std::byte*>(&now), s.tensors, s.workspace);
    return now;
  }

 private:
  template <class T>
  size_t place(const T& field) const {
    return static_cast<size_t>(reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&args));
  }
  Binder binder_;
};

// Strides of a tensor, without its memory.
dev::Operand operand_of(const Tensor& t);

template <class Args>
void KernelArgs<Args>::operand(dev::Operand& field, const Graph& g, TensorId t) {
  if (t == kNone) return;
  const Tensor& x = g.tensor(t);
  field = operand_of(x);
  if (x.on_host())
    binder_.bits(place(field.value), static_cast<size_t>(byte_size(x.dtype, 1)), t);
  else
    pointer(field.data, t);
}

}  // namespace tsr::cuda
