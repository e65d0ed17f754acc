// SPDX-License-Identifier: Apache-2.0
// The text form of graphs; docs/text-form.md holds the grammar. print_graph(parse_graph(s)) is a fixed point, and
// parse_graph(print_graph(g)) gives a graph with the same fingerprint.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace tsr {

// Raises Error with line, column, a caret line and, where there is one, the nearest valid spelling.
Graph parse_graph(std::string_view text);

struct PrintStyle {
  bool one_line = false;
};
std::string print_graph(const Graph& g, PrintStyle style = {});

// One tensor's type as the text form writes it: bf16[2,3,4,4]:nhwc
std::string print_type(const Tensor& t);
std::string print_number(double v);                     // shortest text that reads back the same
std::string print_node(const Graph& g, const Node& n);  // its statement, without unique ids
// Options as pairs of name and value in the order of the operation's fields; an absent optional value is empty.
std::vector<std::pair<std::string, std::string>> print_options(const OpSpec& op, std::any options);

// Graph text with a header line of version and checksum; load raises Status::corrupt_data for anything altered.
std::string save_graph(const Graph& g);
Graph load_graph(std::string_view text);
std::string seal(std::string_view kind, std::string_view body);    // "tessera-<kind> <version> <checksum>\n<body>"
std::string unseal(std::string_view kind, std::string_view text);  // the body, checked

}  // namespace tsr
