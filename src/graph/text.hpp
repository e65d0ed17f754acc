// SPDX-License-Identifier: Apache-2.0
// The text form of graphs; docs/text-form.md holds the grammar. print_graph(parse_graph(s)) is a fixed point, and
// parse_graph(print_graph(g)) gives a graph with the same fingerprint.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace tsr {

// Raises Error with line, column, a caret line and, where there is one, the nearest valid spelling.
Graph parse_graph(std::string_view text);

struct PrintStyle {
  bool one_line = false;
};
std::string print_graph(const Graph& g, PrintStyle style = {});

// Names that the library makes up, '%' and a number. Nobody can give such a name: in a text, %7 stands for a tensor of
// that text which has no name.
inline bool is_made_up(std::string_view name) { return name.starts_with('%'); }
// Raises for what cannot be the name of a tensor: the empty name, made-up names, control characters.
void require_name(std::string_view name);
std::string print_name(std::string_view name);  // in quotes unless it is a plain word

// One tensor's type as the text form writes it: bf16[2,3,4,4]:nhwc
std::string print_type(const Tensor& t);
std::string print_number(double v);                     // shortest text that reads back the same
std::string print_node(const Graph& g, const Node& n);  // its statement, without unique ids
// Options as pairs of name and value in the order of the operation's fields; an absent optional value is empty.
using PrintedOptions = std::vector<std::pair<std::string, std::string>>;
PrintedOptions print_options(const Graph& g, const Node& n);
PrintedOptions print_defaults(const OpSpec& op);

// Graph text with a header line of version and checksum; load raises Status::corrupt_data for anything altered.
std::string save_graph(const Graph& g);
Graph load_graph(std::string_view text);
std::string seal(std::string_view kind, std::string_view body);    // "tessera-<kind> <version> <checksum>\n<body>"
std::string unseal(std::string_view kind, std::string_view text);  // the body, checked

}  // namespace tsr
