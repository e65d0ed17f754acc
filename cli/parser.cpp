// SPDX-License-Identifier: Apache-2.0
#include "parser.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <utility>

namespace tsr::cli {
namespace {

// CLI11 takes the largest number for one that is too large.
template <class T>
void check_whole(CLI::Option* option, const std::string& problem) {
  option->check([problem](const std::string& text) {
    T v = 0;
    auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (bad == std::errc::result_out_of_range) return "'" + text + "' does not fit in 64 bits";
    return bad == std::errc() && end == text.data() + text.size() ? std::string() : "'" + text + "' " + problem;
  });
}

}  // namespace

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
  CLI::Option* option = app_->add_option(name, value, text);
  check_whole<int64_t>(option, "is no whole number");
  return Option(option);
}

Option Command::add_option(const std::string& name, uint64_t& value, const std::string& text) {
  CLI::Option* option = app_->add_option(name, value, text);
  check_whole<uint64_t>(option, "is no whole number >= 0");  // otherwise -1 would become the largest number
  return Option(option);
}

Option Command::add_option(const std::string& name, double& value, const std::string& text) {
  return Option(app_->add_option(name, value, text));
}

void Command::add_flag(const std::string& name, bool& value, const std::string& text) {
  app_->add_flag(name, value, text)->disable_flag_override();  // --json=5 is no way to write it
}

void Command::positionals_at_end() { app_->positionals_at_end(); }

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::runs(Action action) {
  app_->callback([chosen = action_, action = std::move(action)] { *chosen = action; });
}

}  // namespace tsr::cli
