// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graph/text.hpp"
#include "runtime/devices.hpp"

namespace tsr::cli {
namespace fs = std::filesystem;

namespace {

// Is the argument a graph, and not the name of something that holds one?
bool is_graph(const std::string& argument) {
  std::error_code unreadable;  // a long graph is no legal file name
  fs::file_status there = fs::status(argument, unreadable);
  if (argument == "-" || (fs::exists(there) && !fs::is_directory(there))) return false;
  // A bare word is a mistyped file rather than a graph.
  bool graph = argument.find_first_of("=\n") != std::string::npos;
  require(graph, "'", argument, "' is neither a file nor a graph such as 'x = input f32[2,3]; y = relu x; output y'");
  return true;
}

// All of a file or a pipe, or of standard input, without a byte-order mark.
std::string read_text(const std::string& name) {
  std::ifstream file;
  if (name != "-") {
    file.open(name);
    require(file.good(), "cannot read '", name, "'");
  }
  std::istream& in = name == "-" ? std::cin : file;
  std::string text((std::istreambuf_iterator<char>(in)), {});
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.substr(0, kMark.size()) == kMark ? text.substr(kMark.size()) : text;
}

// Lines after the first continue the case.
std::string as_one_case(const std::string& graph) {
  std::string text;
  for (char c : graph) text += c == '\n' ? "\n " : std::string(1, c);
  return text;
}

}  // namespace

std::shared_ptr<const Graph> read_graph(const std::string& argument) {
  if (is_graph(argument)) return std::make_shared<Graph>(parse_graph(argument));
  std::string text = read_text(argument);
  return std::make_shared<Graph>(text.rfind("tessera-graph ", 0) == 0 ? load_graph(text) : parse_graph(text));
}

std::vector<Case> read_case_argument(const std::string& argument) {
  bool given = is_graph(argument);
  std::string text = given ? argument : read_text(argument), file = given ? "graph" : argument;
  if (text.rfind("tessera-graph ", 0) == 0) text = print_graph(load_graph(text)), given = true;
  std::vector<Case> cases = parse_cases(text, file);
  // A first line that is no whole graph begins one, a statement a line.
  bool begun = !cases.empty() && cases[0].error.empty() && cases[0].text.find("output") == std::string::npos;
  return given || begun ? parse_cases(as_one_case(text), file) : cases;
}

bool is_wanted(const Case& c, const std::string& filter) {
  return c.text.find(filter) != std::string::npos || c.file.find(filter) != std::string::npos;
}

void require_cases(size_t count, const std::string& filter) {
  require(count > 0,
          filter.empty() ? "there is no case in what was given" : cat("no case matches the filter '", filter, "'"));
}

void check_engines(const std::vector<std::string>& names, const Device& d) {
  std::vector<std::string> known;
  for (const Engine* e : all_engines())
    if (e->info().device == d.kind) known.emplace_back(e->info().name);
  for (const std::string& name : names) {
    const Engine* e = find_engine(name);
    require(e, "there is no engine named '", name, "'; engines of ", d.name, ": ", any_of_text(known));
    require(e->info().device == d.kind, "engine ", name, " does not run on the device ", d.name,
            "; engines that do: ", any_of_text(known));
  }
}

void PlanArguments::add_to(Command& command) {
  command.add_option("GRAPH", graph, "a graph in the text form, or a file that holds one; - is standard input")
      .required();
  command.add_option("--device", device, "cpu, cuda, cuda:NUMBER, emulated, or a GPU to plan for such as h200")
      .show_default();
  command.add_option("--engine", engines, "only this engine, with the reference for what it declines (repeatable)")
      .one_value();
  command.add_option("--stages", stages, "in stages of this name where there are, such as winograd");
  command.add_flag("--no-fuse", no_fuse, "one step for each operation");
}

PlanOptions PlanArguments::options() const {
  PlanOptions o;
  o.fuse = !no_fuse;
  o.stages = stages;
  o.engines = engines;
  check_engines(engines, pick_device());
  return o;
}

Device PlanArguments::pick_device() const { return find_device(device); }

std::vector<std::string> case_files(const std::vector<std::string>& given, const std::string& folder) {
  if (!given.empty()) return given;
  for (const fs::path& root : {fs::path("."), fs::path(TESSERA_SOURCE_DIR)}) {
    std::vector<std::string> files;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(root / folder, missing))
      if (entry.path().extension() == ".txt") files.push_back(entry.path().lexically_normal().string());
    std::sort(files.begin(), files.end());
    if (!files.empty()) return files;
  }
  fail(Status::bad_parameter, "there are no case files in '", folder, "'; name the files, or run in the source tree");
}

Json number(double v) {
  if (std::isfinite(v)) return v;
  return print_number(v);
}

void print_json(const Json& j) { std::cout << j.dump(2, ' ', false, Json::error_handler_t::replace) << "\n"; }

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  require(out.good(), "cannot write '", path, "'");
}

JsonLines::JsonLines(const std::string& path) : path_(path) {
  if (path.empty()) return;
  out_.open(path);
  require(out_.good(), "cannot write '", path, "'");
}

void JsonLines::add(const Json& j) {
  if (!out_.is_open()) return;
  out_ << j.dump() << std::endl;
  require(out_.good(), "cannot write '", path_, "'");
}

bool on_terminal() {
  static const bool answer = isatty(STDOUT_FILENO) == 1;
  return answer;
}

std::string paint(Colour c, const std::string& text) {
  static const bool plain = !on_terminal() || std::getenv("NO_COLOR");
  if (plain) return text;
  const char* code = c == Colour::red ? "31" : c == Colour::green ? "32" : "1";
  return cat("\033[", code, "m", text, "\033[0m");
}

}  // namespace tsr::cli
