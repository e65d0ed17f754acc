// SPDX-License-Identifier: Apache-2.0
// NVIDIA's run-time compiler, opened at run time. It needs no GPU.
#pragma once

#include <string>
#include <string_view>

namespace tsr::jit {

struct Nvrtc {
  std::string path, missing;  // where it was found; or why there is none
  int major = 0, minor = 0;
  explicit operator bool() const { return missing.empty(); }
  std::string version() const { return std::to_string(major) + "." + std::to_string(minor); }
};
const Nvrtc& nvrtc();

struct Compiled {
  std::string code;  // a cubin, or PTX text
  std::string log;   // the compiler's and the assembler's words, resources included
};

enum class Form { cubin, ptx };

// Compiles a translation unit whose includes are the built-in sources, for an architecture such as sm_90a. Raises with
// the compiler's log when it fails.
Compiled compile_cuda(const std::string& text, const std::string& target, Form form = Form::cubin);
// What decides about the result besides the text: part of the key of a compiled kernel.
std::string_view compile_flags();

}  // namespace tsr::jit
