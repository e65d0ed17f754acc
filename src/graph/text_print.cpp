// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "graph/layouts.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "graph/text_tokens.hpp"

namespace tsr {
namespace {

std::string list(const Ints& v) {
  std::string s;
  for (size_t i = 0; i < v.size(); ++i) s += (i ? "," : "") + std::to_string(v[i]);
  return s.empty() ? "()" : s;
}

using Names = std::vector<std::string>;
std::string print_subgraph(const Subgraph& s, const Names& captures);

// Collects "name=value" for every option. `captures`: what the node's captures are called, for all its sub-graphs.
class FieldPrinter : public FieldVisitor {
 public:
  explicit FieldPrinter(Names captures) : captures_(std::move(captures)) {}
  void field(std::string_view name, FieldRef ref) override {
    fields.emplace_back(std::string(name), std::visit([this](auto& r) { return text(r); }, ref));
  }
  PrintedOptions fields;

 private:
  static std::string text(bool* v) { return *v ? "true" : "false"; }
  static std::string text(int64_t* v) { return std::to_string(*v); }
  static std::string text(double* v) { return print_number(*v); }
  static std::string text(std::optional<int64_t>* v) { return *v ? std::to_string(**v) : ""; }
  static std::string text(std::optional<double>* v) { return *v ? print_number(**v) : ""; }
  static std::string text(Ints* v) { return list(*v); }
  static std::string text(std::vector<Ratio>* v) {
    std::string s;
    for (const Ratio& r : *v) {
      s += (s.empty() ? "" : ",") + std::to_string(r.num);
      if (r.den != 1) s += "/" + std::to_string(r.den);
    }
    return s.empty() ? "()" : s;
  }
  static std::string text(EnumRef& e) { return std::string(e.names[static_cast<size_t>(e.get())]); }
  std::string text(tessera::Subgraph* s) {
    if (!*s) return "";
    Names mine;
    for (size_t i = 0; i < (*s)->captures.size() && next_ < captures_.size(); ++i) mine.push_back(captures_[next_++]);
    return print_subgraph(**s, mine);
  }
  Names captures_;
  size_t next_ = 0;
};

std::string strides_text(const Tensor& t) {
  std::string_view layout = layout_name(t.dims, t.strides);
  return ":" + (layout.empty() ? to_string(t.strides) : std::string(layout));
}

// What tensors are called instead of their names.
using OtherNames = std::unordered_map<TensorId, std::string>;

// In a sub-graph captures are called as they are outside, whatever they were called when the sub-graph was made. A
// tensor of its own that has such a name would hide the capture, and is written without it.
OtherNames names_inside(const Subgraph& s, const Names& captures) {
  OtherNames other;
  std::unordered_set<std::string> used(captures.begin(), captures.end());
  for (size_t i = 0; i < captures.size(); ++i) other[s.captures[i]] = captures[i];
  std::vector<TensorId> hiding;
  for (TensorId t = 0; t < s.graph.tensor_count(); ++t)
    if (!other.count(t) && !used.insert(print_name(s.graph.tensor(t).name)).second) hiding.push_back(t);
  int next = 0;
  for (TensorId t : hiding) {
    while (!used.insert(cat("%", next)).second) ++next;
    other[t] = cat("%", next);
  }
  return other;
}

class Printer {
 public:
  // Unique ids are written at the top only: bodies of sub-graphs number their tensors afresh.
  explicit Printer(const Graph& g, bool uids = true, OtherNames names = {})
      : g_(g), uids_(uids), names_(std::move(names)) {}

  // Statements of a whole graph, or of a sub-graph's body (whose params and captures are not declared).
  std::vector<std::string> statements(const Subgraph* body = nullptr) {
    std::unordered_set<TensorId> skip;
    if (body) {
      for (TensorId t : body->params) note(t), skip.insert(t);
      for (TensorId t : body->captures) note(t), skip.insert(t);
    }
    std::vector<std::string> out;
    for (int i = 0; i < g_.tensor_count(); ++i)
      if (g_.producer(i) == kNone && !skip.count(i)) out.push_back(declaration(i));
    for (int i = 0; i < g_.node_count(); ++i) out.push_back(node(g_.node(i)));
    auto with = [&](TensorId i, const std::string& options) {
      if (!options.empty()) out.push_back("with " + name_of(i) + options);
    };
    for (int i = 0; i < g_.tensor_count(); ++i)
      if (g_.producer(i) == kNone && !skip.count(i) && !offsets_come_first(i)) with(i, ragged_option(g_.tensor(i)));
    for (TensorId i : produced()) {
      const Tensor& t = g_.tensor(i);
      with(i, tensor_options(t) + (t.dims_given ? "" : reorder_option(t)) + ragged_option(t));
    }
    if (body) return out;
    for (TensorId i : produced()) {
      if (!g_.tensor(i).stored) continue;
      std::string type = g_.tensor(i).dims_given ? "" : given_type(g_.tensor(i));
      out.push_back("output " + name_of(i) + (type.empty() ? "" : " " + type));
    }
    return out;
  }

  std::string node(const Node& n) {
    std::string s;
    int last_required = -1;
    for (size_t i = 0; i < n.out.size(); ++i)
      if (n.op->out[i].kind == Slot::required) last_required = static_cast<int>(i);
    for (size_t i = 0; i < n.out.size(); ++i) {
      if (n.out[i] == kNone) continue;
      const Tensor& t = g_.tensor(n.out[i]);
      if (!s.empty()) s += ", ";
      if (static_cast<int>(i) > last_required) s += std::string(n.op->out[i].name) + ":";
      s += target_name(n.out[i]);
      // Declared sizes may decide what the operation does (a reshape, a reduction without axes): it needs them at once.
      std::string type = t.stored && !t.dims_given ? "" : given_type(t);
      if (!type.empty()) s += " " + type;
      if (t.dims_given) s += reorder_option(t);
    }
    s += " = " + spelling(n);
    // Inputs up to the first optional one by position; the others by name, a variadic tail by position again.
    bool by_name = false;
    for (size_t i = 0; i < n.in.size(); ++i) {
      const Slot& slot = n.op->in[std::min(i, n.op->in.size() - 1)];
      by_name = (by_name || slot.kind == Slot::optional) && slot.kind != Slot::variadic;
      if (n.in[i] == kNone) continue;
      std::string tensor = name_of(n.in[i]);
      s += by_name ? " " + std::string(slot.name) + "=" + tensor : " " + tensor;
    }
    auto mine = options(n), defaults = print_defaults(*n.op);
    for (size_t i = 0; i < mine.size(); ++i) {
      auto& [key, value] = mine[i];
      if (value == defaults[i].second || (key == "mode" && !n.op->modes.empty())) continue;
      s += " " + key + "=" + value;
    }
    if (n.compute_given) s += cat(" compute=", n.compute);
    return s;
  }

  std::string name_of(TensorId t) const {
    auto it = names_.find(t);
    return it == names_.end() ? print_name(g_.tensor(t).name) : it->second;
  }

  PrintedOptions options(const Node& n) const {
    if (!n.op->fields) return {};
    Names captures;
    for (TensorId t : n.captures) captures.push_back(name_of(t));
    FieldPrinter printer(std::move(captures));
    std::any attrs = n.attrs;
    n.op->fields(attrs, printer);
    return std::move(printer.fields);
  }

 private:
  // In the order of nodes and their slots, which parsing the text again keeps; ids follow the order of first mention.
  std::vector<TensorId> produced() const {
    std::vector<TensorId> ids;
    for (int i = 0; i < g_.node_count(); ++i)
      for (TensorId t : g_.node(i).out)
        if (t != kNone) ids.push_back(t);
    return ids;
  }

  // The unique id that the parser would give to the next tensor; noted so that only others are written.
  bool note(TensorId id) {
    int64_t expected = ++count_;
    while (used_.count(expected)) ++expected;
    int64_t uid = g_.tensor(id).uid;
    used_.insert(uid);
    return uid == expected;
  }

  std::string target_name(TensorId id) {
    return note(id) || !uids_ ? name_of(id) : cat(name_of(id), "@", g_.tensor(id).uid);
  }

  // Strides that the author gave are written even when packed: inference may prefer the order of an input.
  static std::string given_type(const Tensor& t) {
    std::string s;
    if (t.dtype_given || t.dims_given || t.strides_given) s = name(t.dtype);
    if (t.dims_given || t.strides_given) s += to_string(t.dims);
    if (t.strides_given) s += strides_text(t);
    return s;
  }

  static std::string tensor_options(const Tensor& t) {
    std::string s;
    if (t.alignment != 16) s += " align=" + std::to_string(t.alignment);
    if (t.frozen) s += " frozen=true";
    return s;
  }

  static std::string reorder_option(const Tensor& t) {
    static constexpr const char* kReordering[] = {"none", "f8_128x4", "i8x32", "f16x16"};
    if (t.reordering == Reordering::none) return "";
    return std::string(" reorder=") + kReordering[static_cast<int>(t.reordering)];
  }

  std::string ragged_option(const Tensor& t) const {
    if (t.ragged == kNone) return "";
    std::string s = " ragged=" + name_of(t.ragged);
    return t.ragged_multiplier == 1 ? s : s + "*" + std::to_string(t.ragged_multiplier);
  }

  // Offsets that are computed, or declared later, have no name yet where an input is declared.
  bool offsets_come_first(TensorId input) const {
    TensorId offsets = g_.tensor(input).ragged;
    return offsets == kNone || (g_.producer(offsets) == kNone && offsets < input);
  }

  static std::string constant_values(const Tensor& t) {
    std::string s;
    for (int64_t i = 0; i < t.numel(); ++i) {
      s += i ? "," : "";
      if (is_complex(t.dtype)) {
        auto v = load<std::complex<double>>(t.dtype, t.constant.data(), i);
        s += print_number(v.real()) + "," + print_number(v.imag());
      } else if (is_real(t.dtype)) {
        s += print_number(load<double>(t.dtype, t.constant.data(), i));
      } else {
        s += std::to_string(load<int64_t>(t.dtype, t.constant.data(), i));
      }
    }
    return s;
  }

  std::string declaration(TensorId id) {
    const Tensor& t = g_.tensor(id);
    std::string s = target_name(id) + " = ";
    if (t.is_constant()) return s + "const " + print_type(t) + " " + constant_values(t);
    s += (t.by_value ? "scalar " : "input ") + print_type(t) + tensor_options(t) + reorder_option(t);
    return offsets_come_first(id) ? s + ragged_option(t) : s;
  }

  const Graph& g_;
  bool uids_;
  OtherNames names_;
  int64_t count_ = 0;
  std::unordered_set<int64_t> used_;
};

std::string print_subgraph(const Subgraph& s, const Names& captures) {
  Printer printer(s.graph, false, names_inside(s, captures));
  std::string out = "{";
  for (TensorId p : s.params) out += " " + printer.name_of(p);
  out += " -> ";
  for (const std::string& line : printer.statements(&s)) out += line + "; ";
  for (size_t i = 0; i < s.results.size(); ++i) out += (i ? ", " : "") + printer.name_of(s.results[i]);
  return out + " }";
}

}  // namespace

std::string print_number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, v);
  (void)error;
  return {buffer, end};
}

void require_name(std::string_view name) {
  require(!name.empty(), "the name of a tensor is empty");
  require(!is_made_up(name), "'", name,
          "' cannot be the name of a tensor: what starts with % is made up by the library");
  for (char c : name)
    require(static_cast<unsigned char>(c) >= 32 && c != 127, "the name of a tensor, '", name,
            "', has a control character");
}

std::string print_name(std::string_view name) {
  // Words that mean something else where a name may stand.
  static constexpr std::string_view kReserved[] = {"output", "with", "types", "inf", "nan"};
  bool plain = is_word(name) && std::find(std::begin(kReserved), std::end(kReserved), name) == std::end(kReserved);
  if (plain || is_made_up(name)) return std::string(name);
  std::string s = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') s += '\\';
    s += c;
  }
  return s + "\"";
}

std::string print_type(const Tensor& t) {
  std::string s = std::string(name(t.dtype)) + to_string(t.dims);
  return t.strides == packed_strides(t.dims) ? s : s + strides_text(t);
}

std::string print_node(const Graph& g, const Node& n) { return Printer(g, false).node(n); }

PrintedOptions print_options(const Graph& g, const Node& n) { return Printer(g, false).options(n); }

PrintedOptions print_defaults(const OpSpec& op) {
  Node n;
  n.op = &op;
  n.attrs = op.defaults;
  return Printer({}, false).options(n);
}

std::string print_graph(const Graph& g, PrintStyle style) {
  std::string out;
  for (const std::string& line : Printer(g).statements()) {
    if (style.one_line && !out.empty()) out += "; ";
    out += line;
    if (!style.one_line) out += "\n";
  }
  return out;
}

std::string seal(std::string_view kind, std::string_view body) {
  return cat("tessera-", kind, " ", kVersion, " ", hex(hash_text(body)), "\n", body);
}

std::string unseal(std::string_view kind, std::string_view text) {
  auto bad = [&](const auto&... parts) { fail(Status::corrupt_data, "serialised ", kind, ": ", parts...); };
  size_t end = text.find('\n');
  std::string prefix = cat("tessera-", kind, " ");
  if (end == std::string_view::npos || text.substr(0, prefix.size()) != prefix)
    bad("the header '", prefix, "...' is missing");
  std::string_view header = text.substr(prefix.size(), end - prefix.size()), body = text.substr(end + 1);
  size_t space = header.find(' ');
  if (space == std::string_view::npos) bad("the checksum is missing");
  if (header.substr(0, space) != kVersion)
    bad("made by version ", header.substr(0, space), ", this library is version ", kVersion);
  if (header.substr(space + 1) != hex(hash_text(body)))
    bad("the checksum does not match; the text was truncated or altered");
  return std::string(body);
}

std::string save_graph(const Graph& g) { return seal("graph", print_graph(g)); }
Graph load_graph(std::string_view text) { return parse_graph(unseal("graph", text)); }

}  // namespace tsr
