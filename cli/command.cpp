// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graph/text.hpp"
#include "runtime/devices.hpp"

namespace tsr::cli {
namespace fs = std::filesystem;

std::shared_ptr<const Graph> read_graph(const std::string& argument) {
  std::error_code unreadable;  // a long graph is no legal file name
  if (!fs::is_regular_file(argument, unreadable)) {
    // A bare word is a mistyped file rather than a graph.
    bool graph = argument.find_first_of("=\n") != std::string::npos;
    require(graph, "'", argument, "' is neither a file nor a graph such as 'x = input f32[2,3]; y = relu x; output y'");
    return std::make_shared<Graph>(parse_graph(argument));
  }
  std::ifstream in(argument);
  require(in.good(), "cannot read graph file '", argument, "'");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  return std::make_shared<Graph>(text.rfind("tessera-graph ", 0) == 0 ? load_graph(text) : parse_graph(text));
}

void PlanArguments::add_to(Command& command) {
  command.add_option("GRAPH", graph, "a graph in the text form, or a file that holds one").required();
  command.add_option("--device", device, "cpu, cuda, cuda:NUMBER, emulated, or a GPU to plan for such as h200")
      .show_default();
  command.add_option("--engine", engines, "only this engine, with the reference for what it declines (repeatable)")
      .one_value();
  command.add_flag("--no-fuse", no_fuse, "one step for each operation");
}

PlanOptions PlanArguments::options() const {
  PlanOptions o;
  o.fuse = !no_fuse;
  o.engines = engines;
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
