// SPDX-License-Identifier: Apache-2.0
// An explanation as JSON, as a DOT drawing and as a self-contained web page. Text is in planner/explain.hpp.
#pragma once

#include "command.hpp"
#include "planner/explain.hpp"

namespace tsr::cli {

Json to_json(const Explanation& e);
std::string to_dot(const Explanation& e);
std::string to_html(const Explanation& e, const std::string& graph_text);
// The drawing of the page alone: operations, and steps as boxes around them.
std::string to_svg(const Explanation& e);
std::string escape_html(const std::string& text);

}  // namespace tsr::cli
