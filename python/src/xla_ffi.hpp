// SPDX-License-Identifier: Apache-2.0
// The memory layout of XLA's foreign-function interface, version 0.3, as far as a handler needs it: what JAX's
// compiled programs call. Every structure begins with its size, so that those of later versions may be longer. The test
// test_jax.py compares it with the header that jaxlib ships.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::python::xla {

inline constexpr int kMajor = 0, kMinor = 3;
inline constexpr int kMetadata = 1;  // type of an extension
inline constexpr int kExecute = 3;   // a stage
inline constexpr int kString = 4;    // type of an attribute
enum ErrorCode : int { kInvalidArgument = 3, kResourceExhausted = 8, kUnimplemented = 12, kInternal = 13 };

struct Error;
struct Context;

struct Extension {
  size_t size;
  int type;
  Extension* next;
};

struct Version {
  size_t size;
  Extension* extension;
  int major, minor;
};

struct Buffer {
  size_t size;
  Extension* extension;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

struct Bytes {
  const char* data;
  size_t size;
};

struct Buffers {  // arguments, and results
  size_t size;
  Extension* extension;
  int64_t count;
  int* types;
  Buffer** list;
};

struct Attributes {
  size_t size;
  Extension* extension;
  int64_t count;
  int* types;
  Bytes** names;
  void** list;
};

struct ErrorCreate {
  size_t size;
  Extension* extension;
  const char* message;
  int code;
};

struct StreamGet {
  size_t size;
  Extension* extension;
  Context* context;
  void* stream;
};

struct OrdinalGet {
  size_t size;
  Extension* extension;
  Context* context;
  int32_t ordinal;
};

struct Api {
  size_t size;
  Extension* extension;
  Version version;
  const void* internal;
  Error* (*error_create)(ErrorCreate*);
  void* before_stream[3];
  Error* (*stream_get)(StreamGet*);
  void* before_ordinal[12];
  Error* (*ordinal_get)(OrdinalGet*);
};

struct CallFrame {
  size_t size;
  Extension* extension;
  const Api* api;
  Context* context;
  int stage;
  Buffers arguments, results;
  Attributes attributes;
};

struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
  int64_t state_type;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

}  // namespace tessera::python::xla
