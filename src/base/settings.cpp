// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/error.hpp"

namespace tsr {
namespace {

constexpr Setting kSettings[] = {
    {"TESSERA_LOG", "1", "0 silent, 1 errors, 2 warnings, 3 plans chosen, 4 candidates and reasons, 5 everything"},
    {"TESSERA_LOG_FILE", "", "where log lines go; empty means standard error"},
    {"TESSERA_THREADS", "0", "threads of the CPU engines; 0 means one per core this process may use"},
    {"TESSERA_CACHE", "", "folder for measured constants, tuning and compiled kernels; empty means ~/.cache/tessera"},
    {"TESSERA_TUNING", "", "file of measured choices; empty means `tuning` in the cache folder"},
    {"TESSERA_KERNEL_CACHE_MB", "512", "size to which compiled kernels on disk are kept; the oldest go first"},
    {"TESSERA_KERNEL_PACK", "", "folder of kernels compiled ahead of time; empty means `kernels` beside the program"},
    {"TESSERA_CUDA_DRIVER", "", "path of the CUDA driver's library; empty means libcuda.so.1"},
    {"TESSERA_NVRTC", "", "path of NVIDIA's run-time compiler; empty means that it is searched for"},
    {"TESSERA_DEVICE", "",
     "device of the C interface's handles: cpu, cuda, cuda:NUMBER or emulated; empty means a GPU if there is one"},
    {"TESSERA_REPORT_VERSION", "0", "older version that the C interface reports, such as 91900; 0 means its own"},
    {"TESSERA_HOST_CAPABILITY", "9.0", "compute capability that the host stand-in of CUDA's runtime reports"},
    {"TESSERA_PEER_TIMEOUT", "10", "seconds that a batch norm with statistics of peers waits for each of them"},
    {"TESSERA_PLAN_CACHE", "1024", "plans kept in memory, by each handle too; the least recently used is dropped"},
    {"TESSERA_PLAN_CACHE_MB", "64", "memory of these plans, estimated; the same happens beyond it"},
};

}  // namespace

std::span<const Setting> settings() { return kSettings; }

std::string setting(std::string_view name) {
  for (const Setting& s : kSettings) {
    if (s.name != name) continue;
    const char* v = std::getenv(s.name.data());
    return v && *v ? std::string(v) : std::string(s.fallback);
  }
  fail(Status::internal_error, "no setting named ", name);
}

int64_t setting_int(std::string_view name) {
  std::string text = setting(name);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  for (const Setting& s : kSettings)
    if (s.name == name) std::from_chars(s.fallback.data(), s.fallback.data() + s.fallback.size(), value);
  if (name != "TESSERA_LOG") log_line(2, cat(name, "='", text, "' is not a whole number >= 0; using ", value));
  return value;
}

bool log_enabled(int level) {
  static const int64_t limit = setting_int("TESSERA_LOG");
  return level <= limit;
}

static std::FILE* open_log() {
  std::string path = setting("TESSERA_LOG_FILE");
  std::FILE* file = path.empty() ? stderr : std::fopen(path.c_str(), "a");
  if (file) return file;
  std::fprintf(stderr, "tessera[1] TESSERA_LOG_FILE='%s' cannot be written; lines go to standard error\n",
               path.c_str());
  return stderr;
}

void log_line(int level, const std::string& text) {
  if (!log_enabled(level)) return;
  static std::FILE* out = open_log();
  static std::mutex lock;
  std::lock_guard guard(lock);
  std::fprintf(out, "tessera[%d] %s\n", level, text.c_str());
  std::fflush(out);
}

}  // namespace tsr
