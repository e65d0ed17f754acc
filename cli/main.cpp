// SPDX-License-Identifier: Apache-2.0
// The `tessera` program: chooses a command and turns every outcome into an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/settings.hpp"
#include "command.hpp"
#include "opened/opened.hpp"

namespace tsr::cli {
namespace {

// Does the caller read JSON? (The option of `bench` names a file, what follows `exec` is another program's.)
bool wants_json(int argc, char** argv) {
  std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "bench" || command == "exec") return false;
  return std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
}

int report(const std::string& message, Exit code, bool json) {
  std::cerr << "error: " << message << "\n";
  if (json) print_json({{"error", message}, {"exit_code", static_cast<int>(code)}});
  return code;
}

int report(const Error& e, bool json) {
  if (e.status() == Status::internal_error) return report(cat("internal: ", e.what()), kInternal, json);
  return report(e.what(), kBadInput, json);
}

// What was printed must have arrived: a full disk is no success.
int finish(int code) {
  std::cout.flush();
  if (std::cout.good() && std::fflush(stdout) == 0) return code;
  std::cerr << "error: the output could not be written\n";
  return kBadInput;
}

// Settings of the environment that are numbers must be numbers.
void check_settings() {
  for (const Setting& s : settings()) {
    bool number = !s.fallback.empty() && s.fallback.find_first_not_of("0123456789") == std::string_view::npos;
    std::string value = setting(s.name);
    require(!number || (value.size() < 19 && value.find_first_not_of("0123456789") == std::string::npos), s.name, "='",
            value, "': it must be a whole number >= 0");
  }
}

// CLI11 reports a mistyped command as a missing one; this names the nearest.
void suggest_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands({})) names.push_back(c->get_name());
  if (word.empty() || word[0] == '-' || std::find(names.begin(), names.end(), word) != names.end()) return;
  std::string near = word == "help" ? "--help" : nearest(word, names);
  fail(Status::bad_parameter, "there is no command '", word, "'", near.empty() ? "." : "; did you mean '" + near + "'?",
       " Commands: ", any_of_text(names));
}

int run(int argc, char** argv) {
  CLI::App app("Tessera: deep-learning primitives as graphs. Runs, explains, tests and measures graphs.", "tessera");
  app.set_version_flag("--version", "tessera " + std::string(kVersion));
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 all is well, 1 a check or test failed, 2 wrong usage or bad input, 3 internal error.\n"
      "Example:    tessera run 'x = input f32[2,3]; y = relu x; output y'");
  app.failure_message([](const CLI::App*, const CLI::Error& e) {
    return "error: " + std::string(e.what()) + "\nRun with --help for more information.\n";
  });
  Action action;
  Command commands(&app, &action);
  add_run(commands);
  add_explain(commands);
  add_test(commands);
  add_bench(commands);
  add_tune(commands);
  add_list(commands);
  add_dump(commands);
  add_compile(commands);
  add_doctor(commands);
  add_exec(commands);
  Command version = commands.add_command("version", "Print the version, as --version does");
  version.runs([] {
    std::cout << "tessera " << kVersion << "\n";
    return kOk;
  });
  version.footer("Example:  tessera version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    suggest_command(app, argc > 1 ? argv[1] : "");
    if (e.get_exit_code() != 0 && wants_json(argc, argv)) return report(e.what(), kBadInput, true);
    return app.exit(e) == 0 ? kOk : kBadInput;
  }
  check_settings();
  return action();
}

}  // namespace
}  // namespace tsr::cli

int main(int argc, char** argv) {
  using namespace tsr::cli;
  bool json = wants_json(argc, argv);
  try {
    return finish(run(argc, argv));
  } catch (const tsr::Error& e) {
    return finish(report(e, json));
  } catch (const opened::Error& e) {  // the library that was named, or what it was asked
    return finish(report(e.what(), kBadInput, json));
  } catch (const std::bad_alloc&) {
    return finish(report("out of memory", kBadInput, json));
  } catch (const std::exception& e) {
    return finish(report(tsr::cat("internal: ", e.what()), kInternal, json));
  }
}
