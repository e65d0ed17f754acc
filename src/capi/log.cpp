// SPDX-License-Identifier: Apache-2.0
#include "capi/log.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

#include "capi/status.hpp"
#include "graph/text.hpp"

namespace tsr::capi {
namespace {

struct Callback {
  unsigned mask = 0;
  void* data = nullptr;
  cudnnCallback_t function = nullptr;
};

struct Sink {
  std::mutex lock;
  std::FILE* file = nullptr;
  unsigned file_mask = 0;  // by severity, as the callback's
  Callback callback;
  std::atomic<unsigned> wanted{0};  // by anyone
};

bool is_on(const char* name) {
  const char* v = std::getenv(name);
  return v && *v && std::string_view(v) != "0";
}

std::FILE* open_destination(std::string name) {
  if (name == "stdout") return stdout;
  if (name == "stderr") return stderr;
  if (size_t at = name.find("%i"); at != std::string::npos) name.replace(at, 2, std::to_string(getpid()));
  return std::fopen(name.c_str(), "a");
}

void start_file(Sink& s) {
  const char* to = std::getenv("CUDNN_LOGDEST_DBG");
  const char* level = std::getenv("CUDNN_LOGLEVEL_DBG");
  int severity = level ? std::clamp(std::atoi(level), 0, 3) : 0;
  for (int i = 1; i <= severity; ++i) s.file_mask |= 1U << i;
  if (is_on("CUDNN_LOGERR_DBG")) s.file_mask |= CUDNN_SEV_ERROR_EN;
  if (is_on("CUDNN_LOGWARN_DBG")) s.file_mask |= CUDNN_SEV_WARNING_EN;
  if (is_on("CUDNN_LOGINFO_DBG")) s.file_mask |= CUDNN_SEV_INFO_EN;
  // Either alone prints nothing.
  if (to && *to && s.file_mask) s.file = open_destination(to);
  if (!s.file) s.file_mask = 0;
  s.wanted = s.file_mask;
}

Sink& sink() {
  static Sink* s = [] {
    auto* made = new Sink;  // never destroyed: calls may still come while the program ends
    start_file(*made);
    return made;
  }();
  return *s;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void write_file(std::FILE* f, cudnnSeverity_t severity, const std::vector<std::string>& lines) {
  static constexpr char kLarge[] = "FEWI", kSmall[] = "fewi";
  for (size_t i = 0; i < lines.size(); ++i)
    if (i == 0)
      std::fprintf(f, "%c! CuDNN (v%zu) %s\n", kLarge[severity], cudnnGetVersion(), lines[i].c_str());
    else
      std::fprintf(f, "%c!     %s\n", kSmall[severity], lines[i].c_str());
  timeval now{};
  gettimeofday(&now, nullptr);
  std::fprintf(f, "%c! Time: %lld.%06lld; Process=%d; Thread=%zx.\n\n", kSmall[severity],
               static_cast<long long>(now.tv_sec), static_cast<long long>(now.tv_usec), static_cast<int>(getpid()),
               std::hash<std::thread::id>()(std::this_thread::get_id()));
  std::fflush(f);
}

void call_back(const Callback& c, cudnnSeverity_t severity, cudnnStatus_t status,
               const std::vector<std::string>& lines) {
  std::string message;
  for (const std::string& line : lines) message += line + '\0';
  timeval now{};
  gettimeofday(&now, nullptr);
  cudnnDebug_t debug{};
  debug.cudnn_version = static_cast<unsigned>(cudnnGetVersion());
  debug.cudnnStatus = status;
  debug.time_sec = static_cast<unsigned>(now.tv_sec);
  debug.time_usec = static_cast<unsigned>(now.tv_usec);
  debug.pid = static_cast<unsigned long long>(getpid());
  debug.tid = std::hash<std::thread::id>()(std::this_thread::get_id());
  c.function(severity, c.data, &debug, message.c_str());
}

}  // namespace

bool logs(cudnnSeverity_t severity) { return sink().wanted.load(std::memory_order_relaxed) & (1U << severity); }

void log_message(cudnnSeverity_t severity, cudnnStatus_t status, const std::string& text) {
  Sink& s = sink();
  std::vector<std::string> lines = lines_of(text);
  Callback c;
  {
    std::lock_guard guard(s.lock);
    c = s.callback;
    if (s.file && (s.file_mask & (1U << severity))) write_file(s.file, severity, lines);
  }
  if (c.function && (c.mask & (1U << severity))) call_back(c, severity, status, lines);
}

void log_graph(const Graph& g) {
  if (logs(CUDNN_SEV_INFO))
    log_message(CUDNN_SEV_INFO, CUDNN_STATUS_SUCCESS, cat("graph: ", print_graph(g, {.one_line = true})));
}

std::string address(const void* p) {
  char digits[2 * sizeof p + 3];
  return {digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%p", p))};
}

}  // namespace tsr::capi

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnSetCallback(unsigned int mask, void* udata, cudnnCallback_t fptr) {
  Sink& s = sink();
  std::lock_guard guard(s.lock);
  s.callback = {fptr ? mask : 0, udata, fptr};
  s.wanted = s.file_mask | s.callback.mask;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnGetCallback(unsigned int* mask, void** udata, cudnnCallback_t* fptr) {
  return answer(TESSERA_CALL(cudnnGetCallback, mask, udata, fptr), [&] {
    Sink& s = sink();
    std::lock_guard guard(s.lock);
    given(mask, "mask") = s.callback.mask;
    given(udata, "udata") = s.callback.data;
    given(fptr, "fptr") = s.callback.function;
  });
}
