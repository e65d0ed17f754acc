// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

namespace tsr {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{20000};

Trial died_by(int signal) {
  return try_in_child([signal] { std::raise(signal); }, kLong);
}

TEST(ChildProcess, WorkThatEndsIsAccepted) {
  int value = 1;
  Trial t = try_in_child([&] { value = 2; }, kLong);
  EXPECT_EQ(t.fate, Fate::survived);
  EXPECT_EQ(t.how, "");
  EXPECT_EQ(value, 1) << "the work must not run in this process";
}

TEST(ChildProcess, SignalsAreNamed) {
  for (int s : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    Trial t = died_by(s);
    EXPECT_EQ(t.fate, Fate::died);
    EXPECT_NE(t.how.find("signal " + std::to_string(s) + " ("), std::string::npos) << t.how;
  }
}

#if defined(__x86_64__)
TEST(ChildProcess, AnIllegalInstruction) {
  Trial t = try_in_child([] { asm volatile("ud2"); }, kLong);
  EXPECT_EQ(t.fate, Fate::died);
  EXPECT_EQ(t.how, "was ended by signal 4 (Illegal instruction)");
}
#endif

TEST(ChildProcess, ExitCodesAndExceptions) {
  EXPECT_EQ(try_in_child([] { _exit(3); }, kLong).how, "ended with exit code 3");
  EXPECT_EQ(try_in_child([] { _exit(0); }, kLong).fate, Fate::died) << "it did not come to its end";
  EXPECT_EQ(try_in_child([] { throw std::runtime_error("no"); }, kLong).fate, Fate::died);
}

TEST(ChildProcess, WorkThatHangsIsGivenUp) {
  auto start = std::chrono::steady_clock::now();
  Trial t = try_in_child(
      [] {
        for (;;) pause();
      },
      milliseconds(100));
  EXPECT_EQ(t.fate, Fate::unknown);
  EXPECT_EQ(t.how, "was still running after 100 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLong);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(ChildProcess, SomebodyElseKillsIt) {
  EXPECT_EQ(try_in_child([] { kill(getpid(), SIGKILL); }, kLong).fate, Fate::unknown);
}

// Programs may handle signals, block them, and ignore their children.
TEST(ChildProcess, TheProgramsSignalsDoNotMatter) {
  auto* handler = std::signal(SIGILL, [](int) { _exit(0); });
  auto* children = std::signal(SIGCHLD, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGABRT);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  EXPECT_EQ(try_in_child([] {}, kLong).fate, Fate::survived);
  EXPECT_EQ(died_by(SIGILL).fate, Fate::died);
  EXPECT_EQ(died_by(SIGABRT).fate, Fate::died);
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(died_by(SIGILL).how, "was ended by signal 4 (Illegal instruction)");
  std::signal(SIGILL, handler);
  std::signal(SIGCHLD, children);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(ChildProcess, OthersMayBeBusy) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a lock of the sanitizer's own allocator stays taken in a child, where another thread had it";
#endif
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) delete[] new char[1000];
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(try_in_child([] { delete[] new char[1000]; }, kLong).fate, Fate::survived);
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace tsr
