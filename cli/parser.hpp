// SPDX-License-Identifier: Apache-2.0
// The parser of the command line as commands see it. CLI11, which does the work, is known to parser.cpp and main.cpp
// alone: its headers cost every file that includes them several seconds of compilation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tsr::cli {

using Action = std::function<int()>;

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& show_default();
  Option& one_value();  // a list takes one value each time the option is given, not all words that follow
  Option& one_of(const std::vector<std::string>& allowed);
  Option& check(std::function<std::string(const std::string&)> problem);  // empty when the value is right

 private:
  CLI::Option* option_;
};

// The program, or a command of it. `action` becomes what the chosen command runs.
class Command {
 public:
  Command(CLI::App* app, Action* action) : app_(app), action_(action) {}
  Command add_command(const std::string& name, const std::string& text);
  // Names without dashes are positional.
  Option add_option(const std::string& name, std::string& value, const std::string& text);
  Option add_option(const std::string& name, std::vector<std::string>& values, const std::string& text);
  Option add_option(const std::string& name, int64_t& value, const std::string& text);
  Option add_option(const std::string& name, uint64_t& value, const std::string& text);
  Option add_option(const std::string& name, double& value, const std::string& text);
  void add_flag(const std::string& name, bool& value, const std::string& text);
  void positionals_at_end();  // what looks like an option behind the first positional belongs to it
  void footer(const std::string& text);
  void runs(Action action);

 private:
  CLI::App* app_;
  Action* action_;
};

}  // namespace tsr::cli
