// SPDX-License-Identifier: Apache-2.0
// The memory layout of DLPack, by which libraries of arrays lend each other memory: the older form, the one with a
// version (1.x), and the table of C functions that a type may offer beside its Python methods.
#pragma once

#include <cstdint>

namespace tessera::python::dlpack {

enum : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kOpaque = 3, kBfloat = 4, kComplex = 5, kBool = 6 };
enum : uint8_t { kE4m3fn = 10, kE5m2 = 12, kE8m0 = 14, kE2m1 = 17 };  // the narrow floats
enum : uint64_t { kReadOnly = 1 };                                    // a flag of the form with a version

struct Device {
  int32_t type, index;
};

struct Element {
  uint8_t code, bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t rank;
  Element element;
  int64_t* dims;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*release)(Managed*);
};

struct Version {
  uint32_t major, minor;
};

struct Versioned {
  Version version;
  void* context;
  void (*release)(Versioned*);
  uint64_t flags;
  Tensor tensor;
};

struct Exchange {
  Version version;
  const Exchange* older;
  void* allocate;
  int (*lend)(void* object, Versioned** out);
  void* adopt;
  int (*describe)(void* object, Tensor* out);
  int (*current_stream)(int32_t device_type, int32_t index, void** out);
};

}  // namespace tessera::python::dlpack
