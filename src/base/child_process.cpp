// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/cat.hpp"

namespace tsr {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void be_child(const std::function<void()>& work, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  for (int s : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGTERM}) std::signal(s, SIG_DFL);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
  int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  try {
    work();
  } catch (...) {
    _exit(1);
  }
  _exit(write(report, "", 1) == 1 ? 0 : 1);
}

// Waits until the child reports or ends. The report counts, not the exit code, which belongs to the program where it
// ignores or collects its children.
enum class Heard : uint8_t { report, end, nothing };
Heard listen(int report, Clock::time_point deadline) {
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Heard::nothing;
    pollfd p{report, POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(left)) <= 0) continue;  // a signal came, or the time is up
    char byte = 0;
    return read(report, &byte, 1) == 1 ? Heard::report : Heard::end;
  }
}

// How the child ended, where that can still be learned.
std::optional<int> collect(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return std::nullopt;
  return status;
}

}  // namespace

Trial try_in_child(const std::function<void()>& work, std::chrono::milliseconds limit) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return {Fate::unknown, cat("could not be tried: no pipe, ", strerror(errno))};
  pid_t child = fork();
  if (child == 0) be_child(work, report[1]);
  close(report[1]);
  if (child < 0) {
    close(report[0]);
    return {Fate::unknown, cat("could not be tried: no child process, ", strerror(errno))};
  }
  Heard heard = listen(report[0], Clock::now() + limit);
  close(report[0]);
  if (heard == Heard::nothing) kill(child, SIGKILL);
  std::optional<int> status = collect(child);
  if (heard == Heard::report) return {Fate::survived, ""};
  if (!status) return {heard == Heard::end ? Fate::died : Fate::unknown, "ended in an unknown way"};
  if (WIFEXITED(*status)) return {Fate::died, cat("ended with exit code ", WEXITSTATUS(*status))};
  int signal = WTERMSIG(*status);
  if (signal != SIGKILL) return {Fate::died, cat("was ended by signal ", signal, " (", strsignal(signal), ")")};
  if (heard == Heard::nothing) return {Fate::unknown, cat("was still running after ", limit.count(), " ms")};
  return {Fate::unknown, "was killed by somebody else"};
}

}  // namespace tsr
