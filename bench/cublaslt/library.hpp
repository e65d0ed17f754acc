// SPDX-License-Identifier: Apache-2.0
// A libcublasLt.so opened by its path. Nothing is linked, and no header of NVIDIA's is needed. The caller makes a CUDA
// context current and owns all memory and streams.
#pragma once

#include <string>
#include <string_view>

#include "cublaslt/names.hpp"
#include "opened/opened.hpp"

namespace cublaslt {

// The functions this client calls. Statuses are ints, handles and descriptors opaque pointers.
struct Functions {
  size_t (*version)();
  const char* (*status_text)(int status);
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*create_matmul)(void** matmul, int compute, int scale_type);
  int (*destroy_matmul)(void* matmul);
  int (*set_matmul)(void* matmul, int attribute, const void* value, size_t bytes);
  int (*create_layout)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*destroy_layout)(void* layout);
  int (*set_layout)(void* layout, int attribute, const void* value, size_t bytes);
  int (*create_preference)(void** preference);
  int (*destroy_preference)(void* preference);
  int (*set_preference)(void* preference, int attribute, const void* value, size_t bytes);
  int (*suggest)(void* handle, void* matmul, void* a, void* b, void* c, void* d, void* preference, int wanted,
                 Suggestion* found, int* count);
  int (*run)(void* handle, void* matmul, const void* alpha, const void* a, void* a_layout, const void* b,
             void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
             const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream);
};

class Library {
 public:
  explicit Library(const std::string& path);
  const Functions& call() const { return functions_; }
  const std::string& path() const { return opened_.path(); }
  size_t version() const { return functions_.version(); }   // 130100 is 13.1.0
  void check(int status, std::string_view function) const;  // raises unless the status is 0

 private:
  opened::Library opened_;
  Functions functions_;
};

class Handle {
 public:
  explicit Handle(const Library& library);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();
  const Library& library() const { return library_; }
  void* raw() const { return raw_; }

 private:
  const Library& library_;
  void* raw_ = nullptr;
};

}  // namespace cublaslt
