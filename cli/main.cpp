// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "harness/runner.hpp"

int main(int argc, char** argv) {
  tsr::Tally tally;
  tsr::RunnerOptions o;
  o.on_failure = [](const std::string& s) { std::printf("FAIL %s\n", s.c_str()); };
  try {
    for (int i = 1; i < argc; ++i)
      for (const tsr::Case& c : tsr::read_cases(argv[i])) tsr::run_case(c, o, tally);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 2;
  }
  for (auto& [name, n] : tally.by_engine) std::printf("%s: %ld\n", name.c_str(), (long)n);
  std::printf("%ld passed, %ld failed, %ld skipped\n", (long)tally.passed, (long)tally.failed, (long)tally.skipped);
  return tally.failed ? 1 : 0;
}
