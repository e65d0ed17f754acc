// SPDX-License-Identifier: Apache-2.0
// Case files: a case starts in the first column, indented lines continue it. `<a|b>` expands to one case for each
// choice,
// `<T=a|b>` names the choice and `<T>` repeats it. After `#!` come directives:
//   NAME=KIND     data of tensor NAME (see buffers.hpp); all=KIND for all others
//   error="text"  the graph must be refused with a message that contains the text
//   peer=NAME     in benchmarks: the peer that the row's ratio compares with
#pragma once

#include <string>
#include <vector>

#include "harness/buffers.hpp"

namespace tsr {

struct Case {
  std::string text;  // the graph
  DataSpec data;
  std::string error;  // expected refusal
  std::string peer;   // benchmarks: what the result is compared with
  std::string file;
  int line = 0;
};

std::vector<Case> read_cases(const std::string& path);
std::vector<Case> parse_cases(const std::string& content, const std::string& file);
std::vector<std::string> expand(const std::string& text);

}  // namespace tsr
