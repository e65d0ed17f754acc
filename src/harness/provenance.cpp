// SPDX-License-Identifier: Apache-2.0
#include "harness/provenance.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace tsr {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

std::string commit() {
  // A bundle for another machine has a file in place of the repository (scripts/gpu_bundle).
  std::error_code ignored;
  std::ifstream noted(std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "commit");
  std::string text;
  if (noted >> text) return text;
  if (std::FILE* p = popen("git -C '" TESSERA_SOURCE_DIR "' rev-parse --short HEAD 2>/dev/null", "r")) {
    char buffer[64];
    if (std::fgets(buffer, sizeof buffer, p)) text = buffer;
    pclose(p);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

}  // namespace tsr
