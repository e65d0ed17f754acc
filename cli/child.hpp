// SPDX-License-Identifier: Apache-2.0
// Questions that are better asked in another process: answering them loads libraries.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace tsr::cli {

// What f writes to standard output in a child process.
template <class F>
std::string output_of_child(const F& f) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return {};
  pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]), close(pipe_ends[1]);
    f();
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; child > 0 && (n = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(pipe_ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return text;
}

}  // namespace tsr::cli
