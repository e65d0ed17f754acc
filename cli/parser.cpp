// SPDX-License-Identifier: Apache-2.0
#include "parser.hpp"

#include <CLI/CLI.hpp>
#include <utility>

namespace tsr::cli {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::one_value() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& allowed) {
  option_->check(CLI::IsMember(allowed));
  return *this;
}

Option& Option::check(std::function<std::string(const std::string&)> problem) {
  option_->check(std::move(problem));
  return *this;
}

Command Command::add_command(const std::string& name, const std::string& text) {
  return Command(app_->add_subcommand(name, text), action_);
}

Option Command::add_option(const std::string& name, std::string& value, const std::string& text) {
  return Option(app_->add_option(name, value, text));
}

Option Command::add_option(const std::string& name, std::vector<std::string>& values, const std::string& text) {
  return Option(app_->add_option(name, values, text));
}

Option Command::add_option(const std::string& name, int64_t& value, const std::string& text) {
  return Option(app_->add_option(name, value, text));
}

Option Command::add_option(const std::string& name, uint64_t& value, const std::string& text) {
  CLI::Option* option = app_->add_option(name, value, text);
  // Otherwise -1 would become the largest number.
  option->check([](const std::string& v) {
    bool whole = !v.empty() && v.find_first_not_of("0123456789") == std::string::npos;
    return whole ? std::string() : "'" + v + "' is no whole number >= 0";
  });
  return Option(option);
}

Option Command::add_option(const std::string& name, double& value, const std::string& text) {
  return Option(app_->add_option(name, value, text));
}

void Command::add_flag(const std::string& name, bool& value, const std::string& text) {
  app_->add_flag(name, value, text);
}

void Command::positionals_at_end() { app_->positionals_at_end(); }

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::runs(Action action) {
  app_->callback([chosen = action_, action = std::move(action)] { *chosen = action; });
}

}  // namespace tsr::cli
