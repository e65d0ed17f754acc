// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel_check.hpp"

#include "base/error.hpp"

namespace tsr {
namespace {

// The assembler's words for losses of speed, in all versions seen.
constexpr std::string_view kLosses[] = {"Potential Performance Loss", "serialized", "setmaxnreg ignored",
                                        "'setmaxnreg' ignored"};

std::string line_around(std::string_view log, size_t at) {
  size_t start = log.rfind('\n', at) == std::string_view::npos ? 0 : log.rfind('\n', at) + 1;
  return std::string(log.substr(start, log.find('\n', at) - start));
}

}  // namespace

std::string kernel_problem(const KernelInfo& info) {
  std::string problem;
  auto add = [&](const std::string& text) { problem += (problem.empty() ? "" : "; ") + text; };
  if (info.spill_bytes > 0) add(cat(info.spill_bytes, " bytes of registers are spilled"));
  // Sine and cosine keep the digits of pi in a small frame, which only huge angles use.
  constexpr int kAngles = 40;
  if (info.stack_bytes > (info.spill_bytes ? 0 : kAngles)) add(cat(info.stack_bytes, " bytes of stack"));
  for (std::string_view words : kLosses)
    if (size_t at = info.log.find(words); at != std::string::npos) {
      add(line_around(info.log, at));
      break;
    }
  return problem;
}

}  // namespace tsr
