// SPDX-License-Identifier: Apache-2.0
// The `tessera` program: chooses a command and turns every outcome into an exit code.
#include <CLI/CLI.hpp>
#include <iostream>

#include "base/settings.hpp"
#include "command.hpp"
#include "cudnn/backend.hpp"

namespace tsr::cli {
namespace {

int report(const Error& e) {
  bool internal = e.status() == Status::internal_error || e.status() == Status::out_of_memory;
  std::cerr << "error: " << (e.status() == Status::internal_error ? "internal: " : "") << e.what() << "\n";
  return internal ? kInternal : kBadInput;
}

// CLI11 reports a mistyped command as a missing one; this names the nearest.
void suggest_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands({})) names.push_back(c->get_name());
  if (word.empty() || word[0] == '-' || std::find(names.begin(), names.end(), word) != names.end()) return;
  std::string near = nearest(word, names);
  fail(Status::bad_parameter, "there is no command '", word, "'", near.empty() ? "" : "; did you mean '" + near + "'?",
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    suggest_command(app, argc > 1 ? argv[1] : "");
    return app.exit(e) == 0 ? kOk : kBadInput;
  }
  return action();
}

}  // namespace
}  // namespace tsr::cli

int main(int argc, char** argv) {
  using namespace tsr::cli;
  try {
    return run(argc, argv);
  } catch (const tsr::Error& e) {
    return report(e);
  } catch (const cudnn::Error& e) {  // the library that was named, or what it was asked
    std::cerr << "error: " << e.what() << "\n";
    return kBadInput;
  } catch (const std::bad_alloc&) {
    std::cerr << "error: out of memory\n";
  } catch (const std::exception& e) {
    std::cerr << "error: internal: " << e.what() << "\n";
  }
  return kInternal;
}
