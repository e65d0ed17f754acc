// SPDX-License-Identifier: Apache-2.0
// Small kernels for tests of the emulated GPU, written as the body of a function that sees `a` (the arguments), `s` (32
// kB of shared memory, then barriers `b`) and `t`, the thread. Mistakes are reported by lines of the body: "body:3".
#pragma once

#include <string>

#include "runtime/kernel.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr {

struct BodyArgs {
  dev::TensorMap map;
  const void* in;
  void* out;
};

inline Program body_program(const std::string& body, const std::string& before = "") {
  Program p;
  p.include = "device/ptx/all.cuh";
  p.generated = before +
                "namespace tsr::dev {\nstruct Args { TensorMap map; const u32* in; u32* out; };\n"
                "inline void test(const Args& a) {\nchar* s = shared_memory();\n"
                "u64* b = reinterpret_cast<u64*>(s + 32768); int t = threadIdx.x;\n#line 1 \"body\"\n" +
                body + "\n}\n}";
  p.args = "tsr::dev::Args";
  p.body = "tsr::dev::test";
  p.threads = 128;
  return p;
}

inline constexpr int64_t kBodyShared = 32768 + 256;

}  // namespace tsr
