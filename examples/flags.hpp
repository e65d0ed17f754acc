// SPDX-License-Identifier: Apache-2.0
// What all examples share: flags, a clock, and errors that become messages.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <tessera/tessera.hpp>
#include <vector>

namespace model {

using namespace tessera;

// Given as --name value.
class Flags {
 public:
  Flags(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i];
      if (name.rfind("--", 0) != 0 || i + 1 >= argc) fail("expected --name value, got '" + name + "'");
      given_[name.substr(2)] = argv[++i];
    }
    if (given_.count("threads")) set_thread_count(static_cast<int>(integer("threads", 1)));
  }
  double number(const std::string& name, double fallback) {
    std::string value = text(name, "");
    if (value.empty()) return fallback;
    char* end = nullptr;
    double number = std::strtod(value.c_str(), &end);
    if (*end) fail("--" + name + " must be a number, it is '" + value + "'");
    return number;
  }
  int64_t integer(const std::string& name, int64_t fallback) {
    double value = number(name, static_cast<double>(fallback));
    if (value != std::floor(value) || std::fabs(value) > 1e15) fail("--" + name + " must be a whole number");
    return static_cast<int64_t>(value);
  }
  std::string text(const std::string& name, const std::string& fallback) {
    known_.push_back(name);
    auto it = given_.find(name);
    return it == given_.end() ? fallback : it->second;
  }
  // After all flags were asked for.
  void refuse_others() const {
    for (const auto& [name, value] : given_) {
      std::string all;
      bool known = false;
      for (const std::string& k : known_) known = known || k == name, all += " --" + k;
      if (!known) fail("unknown flag --" + name + "; there are" + all);
    }
  }

 private:
  [[noreturn]] static void fail(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(2);
  }
  std::map<std::string, std::string> given_;
  std::vector<std::string> known_{"threads"};
};

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs the program; what went wrong becomes a message and exit code 2.
inline int guarded(int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 2;
  }
}

}  // namespace model
