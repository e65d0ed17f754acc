// SPDX-License-Identifier: Apache-2.0
#include "runtime/jit/nvrtc.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "base/settings.hpp"
#include "base/trace.hpp"
#include "runtime/jit/sources.hpp"

namespace tsr::jit {
namespace {

namespace fs = std::filesystem;
using Program = struct ProgramTag*;

struct Functions {
  const char* (*GetErrorString)(int) = nullptr;
  int (*Version)(int*, int*) = nullptr;
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*CompileProgram)(Program, int, const char* const*) = nullptr;
  int (*DestroyProgram)(Program*) = nullptr;
  int (*GetCUBINSize)(Program, size_t*) = nullptr;
  int (*GetCUBIN)(Program, char*) = nullptr;
  int (*GetPTXSize)(Program, size_t*) = nullptr;
  int (*GetPTX)(Program, char*) = nullptr;
  int (*GetProgramLogSize)(Program, size_t*) = nullptr;
  int (*GetProgramLog)(Program, char*) = nullptr;
};

struct Opened {
  Nvrtc about;
  Functions f;
};

// NVRTC comes with the toolkit or in one of Python's nvidia packages.
std::vector<std::string> candidates() {
  if (std::string given = setting("TESSERA_NVRTC"); !given.empty()) return {given};
  std::vector<std::string> out = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::vector<fs::path> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* v = std::getenv(name); v && *v) folders.emplace_back(fs::path(v) / "lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  std::vector<fs::path> python;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* v = std::getenv(name); v && *v) python.emplace_back(fs::path(v) / "lib");
  if (const char* home = std::getenv("HOME"); home && *home) python.emplace_back(fs::path(home) / ".local/lib");
  python.emplace_back("/usr/local/lib");
  python.emplace_back("/usr/lib");
  std::error_code ignored;
  for (const fs::path& lib : python)
    for (const auto& version : fs::directory_iterator(lib, ignored)) {
      if (version.path().filename().string().rfind("python3", 0) != 0) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        for (const auto& part : fs::directory_iterator(version.path() / packages / "nvidia", ignored))
          folders.push_back(part.path() / "lib");
    }
  for (const fs::path& folder : folders)
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      if (fs::exists(folder / name, ignored)) out.push_back((folder / name).string());
  return out;
}

Opened open() {
  Opened o;
  void* handle = nullptr;
  for (const std::string& path : candidates()) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) continue;
    o.about.path = path;
    break;
  }
  if (!handle) {
    o.about.missing =
        "NVIDIA's run-time compiler (libnvrtc) was not found; install the CUDA toolkit or Python's "
        "nvidia-cuda-nvrtc, or set TESSERA_NVRTC to its path";
    return o;
  }
  auto get = [&](auto& f, const char* symbol) {
    f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(handle, symbol));
    if (!f && o.about.missing.empty()) o.about.missing = cat("'", o.about.path, "' has no ", symbol);
  };
  get(o.f.GetErrorString, "nvrtcGetErrorString");
  get(o.f.Version, "nvrtcVersion");
  get(o.f.CreateProgram, "nvrtcCreateProgram");
  get(o.f.CompileProgram, "nvrtcCompileProgram");
  get(o.f.DestroyProgram, "nvrtcDestroyProgram");
  get(o.f.GetCUBINSize, "nvrtcGetCUBINSize");
  get(o.f.GetCUBIN, "nvrtcGetCUBIN");
  get(o.f.GetPTXSize, "nvrtcGetPTXSize");
  get(o.f.GetPTX, "nvrtcGetPTX");
  get(o.f.GetProgramLogSize, "nvrtcGetProgramLogSize");
  get(o.f.GetProgramLog, "nvrtcGetProgramLog");
  if (o.about) o.f.Version(&o.about.major, &o.about.minor);
  return o;
}

const Opened& opened() {
  static const Opened o = open();
  return o;
}

constexpr std::array kFlags = {"--std=c++20", "-default-device", "--ptxas-options=--verbose"};

class Handle {
 public:
  explicit Handle(const std::string& text) {
    std::vector<const char*> names, texts;
    for (const Source& s : sources()) names.push_back(s.path.data()), texts.push_back(s.text.data());
    int r = opened().f.CreateProgram(&program_, text.c_str(), "kernel.cu", static_cast<int>(names.size()), texts.data(),
                                     names.data());
    if (r != 0) fail(Status::internal_error, "nvrtcCreateProgram failed: ", opened().f.GetErrorString(r));
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { opened().f.DestroyProgram(&program_); }
  Program get() const { return program_; }

  std::string result(int (*size)(Program, size_t*), int (*content)(Program, char*)) const {
    size_t n = 0;
    size(program_, &n);
    std::string s(n, '\0');
    if (n) content(program_, s.data());
    return s;
  }

 private:
  Program program_ = nullptr;
};

}  // namespace

const Nvrtc& nvrtc() { return opened().about; }

std::string_view compile_flags() {
  static const std::string text = [] {
    std::string s;
    for (const char* f : kFlags) s += cat(f, ' ');
    return s;
  }();
  return text;
}

Compiled compile_cuda(const std::string& text, const std::string& target, Form form) {
  TraceRange range("compile a kernel");
  const Functions& f = opened().f;
  if (!nvrtc()) fail(Status::not_supported, "a kernel must be compiled, but ", nvrtc().missing);
  Handle program(text);
  std::string arch = "--gpu-architecture=" + target;
  std::vector<const char*> flags(kFlags.begin(), kFlags.end());
  flags.push_back(arch.c_str());
  int r = f.CompileProgram(program.get(), static_cast<int>(flags.size()), flags.data());
  std::string log = program.result(f.GetProgramLogSize, f.GetProgramLog);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (r != 0)
    fail(Status::internal_error, "a kernel does not compile for ", target, ": ", f.GetErrorString(r), "\n", log);
  if (form == Form::ptx) {
    std::string ptx = program.result(f.GetPTXSize, f.GetPTX);
    while (!ptx.empty() && ptx.back() == '\0') ptx.pop_back();
    return {ptx, log};
  }
  return {program.result(f.GetCUBINSize, f.GetCUBIN), log};
}

}  // namespace tsr::jit
