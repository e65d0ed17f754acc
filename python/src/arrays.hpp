// SPDX-License-Identifier: Apache-2.0
// Arrays of other libraries: what a Python object says of the memory that it lends. Nothing is copied. Objects are
// asked in the order of what costs least: the buffer protocol (numpy), DLPack's table of C functions (PyTorch from 2.10
// on),
// __dlpack__, and last the two array interfaces.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "base/dims.hpp"
#include "base/dtype.hpp"
#include "dlpack.hpp"
#include "graph/graph.hpp"
#include "planner/device.hpp"

namespace tessera::python {

namespace nb = nanobind;

// What an element is, as far as its library can say it.
struct Element {
  std::optional<DType> type;  // none: a type that Tessera lacks, such as u16, or bytes without a meaning
  int bits = 0;
  bool plain = false;  // unsigned or without a meaning: it may stand for a type that the library lacks
};

// The stream of a GPU that the work of a call is put into: the caller's, or the current one of the first array's
// library.
struct Stream {
  bool known = false;
  void* handle = nullptr;
};

// What keeps lent memory alive; at most one member is set.
struct Lease {
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&&) = delete;
  ~Lease();
  std::optional<Py_buffer> buffer;
  dlpack::Managed* managed = nullptr;
  dlpack::Versioned* versioned = nullptr;
  nb::object owner;
};

// Memory that an object lends for as long as this lives. The GIL is held whenever one is made, moved or dropped.
class Array {
 public:
  // Raises, naming the type of the object, when it lends none.
  Array(nb::handle object, Stream& stream);

  void* data = nullptr;
  Element element;
  tsr::Dims dims, strides;  // strides in elements
  bool on_host = true, writable = true;
  int gpu = 0;

 private:
  bool take_buffer(nb::handle object);
  bool take_exchange(nb::handle object, Stream& stream);
  bool take_dlpack(nb::handle object, Stream& stream);
  bool take_interface(nb::handle object, const char* name, Stream& stream);
  void describe(const dlpack::Tensor& t);

  Lease lease_;
};

std::string to_text(const Array& a);  // "f32[4,64] on the host"

// Raises unless the memory will do for `t` on `device`: type, sizes, strides, place, and whether it may be written.
void check(const Array& a, const tsr::Tensor& t, bool produced, const tsr::Device& device);

// A type by its name here or in numpy and PyTorch: "f32", "float32", torch.float32.
DType dtype_of(nb::handle name);

}  // namespace tessera::python
