// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/emulator.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include "base/cache_folder.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "runtime/emulator/fibres.hpp"
#include "runtime/jit/sources.hpp"
#include "runtime/jit/store.hpp"

extern char** environ;

namespace tsr::emulator {
namespace {

namespace fs = std::filesystem;

std::string folder() {
  static const std::string path = [] {
    std::string p = cache_folder("emulated");
    if (p.empty()) fail(Status::not_supported, "emulated kernels need a cache folder; set TESSERA_CACHE to one");
    return p;
  }();
  return path;
}

// The device sources as files, for the compiler to include; once for each version of them.
std::string source_folder() {
  static const std::string path = [] {
    std::string p = folder() + "/source-" + hex(jit::all_sources_hash());
    for (const jit::Source& s : jit::sources()) {
      fs::path file = fs::path(p) / s.path;
      fs::create_directories(file.parent_path());
      if (!fs::exists(file)) write_file_atomically(file.string(), std::string(s.text));
    }
    return p;
  }();
  return path;
}

int run_compiler(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return 127;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

std::string compile(const std::string& text, const std::string& key) {
  // The key does not know of what every emulated kernel includes besides its own sources: how it meets this library.
  static const std::string version = hex(jit::closure_hash("device/emulated.cuh"));
  std::string library = folder() + "/" + key + "-" + version + ".so";
  std::error_code missing;
  fs::last_write_time(library, fs::file_time_type::clock::now(), missing);  // used now: trimming takes others first
  if (!missing) return library;
  const char* given = std::getenv("CXX");
  std::string compiler = given && *given ? given : "c++";
  std::string base = cat(folder(), "/", key, ".", getpid());
  std::string source = base + ".cpp", part = base + ".so", log = base + ".log";
  write_file_atomically(source, text);
  int rc = run_compiler({compiler, "-std=c++20", "-O1", "-fno-exceptions", "-shared", "-fPIC", "-w",
                         "-U_FORTIFY_SOURCE", "-ffp-contract=fast", "-I" + source_folder(), "-o", part, source},
                        log);
  std::string words = read_file(log).value_or("");
  fs::remove(log);
  if (rc != 0)
    fail(Status::internal_error, "an emulated kernel does not compile with '", compiler, "' (exit code ", rc,
         "): ", source, "\n", words.substr(0, 4000));
  fs::remove(source);
  fs::rename(part, library);
  static std::once_flag once;
  std::call_once(once, [] { jit::trim_kernels(folder()); });
  return library;
}

LoadedKernel::LoadedKernel(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail(Status::internal_error, "cannot open an emulated kernel: ", dlerror());
  enter_ = dlsym(handle, "tsr_enter");
}

std::string LoadedKernel::run(const Grid& g, const void* args) const {
  return run_fibres(g, reinterpret_cast<Enter>(enter_), args);
}

}  // namespace tsr::emulator
