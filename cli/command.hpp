// SPDX-License-Identifier: Apache-2.0
// What the commands of the `tessera` program share. Each command has one file and adds itself to the parser; the chosen
// one leaves its action, which main() runs inside the one place that turns errors into messages and exit codes.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/cases.hpp"
#include "parser.hpp"
#include "planner/plan.hpp"

namespace tsr::cli {

using Json = nlohmann::ordered_json;

enum Exit { kOk = 0, kFailed = 1, kBadInput = 2, kInternal = 3 };

void add_run(Command& app);
void add_explain(Command& app);
void add_test(Command& app);
void add_bench(Command& app);
void add_tune(Command& app);
void add_list(Command& app);
void add_dump(Command& app);
void add_compile(Command& app);
void add_doctor(Command& app);
void add_exec(Command& app);

// A graph from a file or pipe of that name, from standard input for `-`, or the argument itself.
std::shared_ptr<const Graph> read_graph(const std::string& argument);

// Options that `run` and `explain` share.
struct PlanArguments {
  std::string graph, device = "cpu";
  std::vector<std::string> engines;
  std::string stages;
  bool no_fuse = false;
  void add_to(Command& command);
  PlanOptions options() const;
  Device pick_device() const;
};

// Case files: those given, or all *.txt in `folder` under the working directory or, failing that, the source tree.
std::vector<std::string> case_files(const std::vector<std::string>& given, const std::string& folder);
// The cases of one of them. What is no file may be a case itself, a graph, and so may all of a file; `-` is standard
// input.
std::vector<Case> read_case_argument(const std::string& argument);
// Does the graph or the file of a case contain the text of --filter?
bool is_wanted(const Case& c, const std::string& filter);
// Raises when there was none.
void require_cases(size_t count, const std::string& filter);

// Raises unless every engine exists and runs on the device.
void check_engines(const std::vector<std::string>& names, const Device& d);

Json number(double v);  // NaN and infinities, which JSON lacks, as strings
void print_json(const Json& j);
void write_file(const std::string& path, const std::string& content);

// A file with one JSON value on each line, each there when it was added; nothing without a path.
class JsonLines {
 public:
  explicit JsonLines(const std::string& path);
  void add(const Json& j);

 private:
  std::string path_;
  std::ofstream out_;
};

// Colours on a terminal only, and never with NO_COLOR set.
enum class Colour { red, green, bold };
bool on_terminal();
std::string paint(Colour c, const std::string& text);

}  // namespace tsr::cli
