// SPDX-License-Identifier: Apache-2.0
// Runs the micro-kernels on a device and writes what they leave.
//   tessera_calibration DEVICE OUT [PREFIX]    a record to OUT, all words to OUT.words
//   tessera_calibration DEVICE --pack FOLDER   only compiles them, for a machine without a compiler
//   tessera_calibration DEVICE --compare FILE  says what differs from a record
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "record.hpp"
#include "runtime/devices.hpp"

namespace tsr::calibration {
namespace {

void pack(const Device& d, const std::string& folder) {
  std::filesystem::create_directories(folder);
  record_kernels(folder);
  for (const MicroKernel& k : micro_kernels()) get_kernel(k.program, d);
}

void write(const Device& d, const std::string& path, const std::string& prefix) {
  std::ofstream record(path), words(path + ".words");
  record << "# " << d.name << "\n";
  for (const MicroKernel& k : micro_kernels(prefix)) {
    Words result = run(k, d);
    record << line(k.name, entry(k, result)) << std::flush;
    words << line(k.name, {"", result}) << std::flush;
  }
  require(record.good() && words.good(), "'", path, "' cannot be written");
}

int compare(const Device& d, const std::string& path) {
  std::ifstream file(path);
  require(file.good(), "'", path, "' cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  Record record = parse_record(text.str());
  int different = 0, same = 0, unknown = 0;
  for (const MicroKernel& k : micro_kernels()) {
    auto it = record.find(k.name);
    if (it == record.end()) {
      ++unknown;
    } else if (std::string why = difference(k, run(k, d), it->second); !why.empty()) {
      std::cout << why << "\n";
      ++different;
    } else {
      ++same;
    }
  }
  std::cout << same << " same, " << different << " different, " << unknown << " not recorded\n";
  return different || unknown ? 1 : 0;
}

int run_program(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  require(words.size() == 2 || words.size() == 3,
          "usage: tessera_calibration DEVICE OUT [PREFIX] | DEVICE --pack FOLDER | DEVICE --compare FILE");
  Device d = find_device(words[0]);
  if (words[1] == "--pack" && words.size() == 3)
    pack(d, words[2]);
  else if (words[1] == "--compare" && words.size() == 3)
    return compare(d, words[2]);
  else
    write(d, words[1], words.size() == 3 ? words[2] : "");
  return 0;
}

}  // namespace
}  // namespace tsr::calibration

int main(int argc, char** argv) {
  try {
    return tsr::calibration::run_program(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
