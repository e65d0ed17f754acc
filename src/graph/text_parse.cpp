// SPDX-License-Identifier: Apache-2.0
// Recursive descent over a token list. Every name, type and option is resolved as soon as it is read, so that an error
// points at the text that caused it.
#include <algorithm>
#include <cmath>
#include <complex>
#include <set>
#include <unordered_map>

#include "graph/default_types.hpp"
#include "graph/gradient.hpp"
#include "graph/layouts.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "graph/text_reader.hpp"

namespace tsr {
namespace {

constexpr int kMaxDepth = 100;  // of nested expressions and sub-graphs

// What is known of the enclosing scopes while a body is read.
struct Scope {
  Graph* graph;
  Scope* outer = nullptr;
  std::vector<TensorId> captures, captured;  // ids in this graph and in the outer one
  // Tensors without a name; what the graph calls them is its own affair.
  std::unordered_map<std::string_view, TensorId> labels;
};

class Parser : TextReader {
 public:
  explicit Parser(std::string_view source) : TextReader(source) {}

  Graph graph() {
    Graph g;
    Scope scope{&g};
    while (!at_end()) {
      if (skip_separators()) continue;
      statement(scope);
      if (!at_end() && !is_separator()) error(peek(), "expected ';' or the end of the line");
    }
    located(peek(), [&] { g.finalize(); });
    return g;
  }

 private:
  [[noreturn]] void unknown_type(const Token& word) const {
    std::vector<std::string> names;
    for (const DTypeInfo& i : dtypes()) names.emplace_back(i.name);
    unknown(word, "data type", names, hint_from_elsewhere(word.text, dtypes_elsewhere(), names));
  }

  // dtype [dims] [:layout]
  bool is_type() const { return peek().kind == Token::word && find_dtype(peek().text); }
  void type(Tensor& t) {
    Token word = peek();
    // An input without a type has that of the whole graph.
    std::optional<DType> d = is("[") ? types_.types.io : std::nullopt;
    if (!d) {
      word = expect_word("a data type");
      d = find_dtype(word.text);
    }
    if (!d) unknown_type(word);
    t.dtype = *d;
    t.dtype_given = true;
    if (is("[")) {
      t.dims = bracketed();
      t.dims_given = true;
      located(word, [&] { t.strides = packed_strides(t.dims); });
    }
    if (!is(":")) return;
    take();
    Token at = peek();
    t.strides_given = true;
    if (is("[")) {
      t.strides = bracketed();
      return;
    }
    Token layout = expect_word("a layout name or [strides]");
    pending_layout_ = layout;
    if (t.dims_given) resolve_layout(t, at);
  }
  void resolve_layout(Tensor& t, const Token& at) {
    located(at, [&] {
      auto s = layout_strides(pending_layout_.text, t.dims);
      if (!s) {
        std::vector<std::string> names;
        for (const Layout& l : layouts())
          if (static_cast<int>(l.logical.size()) == t.dims.size()) names.emplace_back(l.name);
        std::string allowed =
            names.empty() ? "write the strides as :[...]" : "layouts of this rank: " + any_of_text(names);
        error(at, cat("'", pending_layout_.text, "' is no layout of ", t.dims.size(), " dimensions; ", allowed));
      }
      t.strides = *s;
    });
  }

  // --- statements
  void statement(Scope& scope) {
    Token first = peek();
    if (!is_name()) error(first, "expected a statement: NAME = ..., output NAME or with NAME ...");
    bool keyword = is_name(1);
    if (first.text == "output" && keyword) return output(scope);
    if (first.text == "with" && keyword) return with(scope);
    if (first.text == "types" && keyword && is("=", 2)) return types();
    assignment(scope);
  }

  void output(Scope& scope) {
    take();
    Token name = expect_name("the name of a tensor");
    TensorId id = lookup(scope, name);
    Graph& g = *scope.graph;
    if (g.tensor(id).stored)
      error(name, cat("'", name.text, "' is ", g.producer(id) == kNone ? "an input" : "an output already"));
    Tensor given;
    pending_layout_ = {};
    if (is_type())
      type(given);
    else if (peek().kind == Token::word)
      type(given);  // reports the nearest data type
    located(name, [&] {
      g.mark_output(id);
      Tensor& t = g.edit(id);
      if (given.dtype_given)
        t.dtype = given.dtype, t.dtype_given = true;
      else
        types_.set_output(g, id);
      if (given.dims_given) {
        require(given.dims == t.dims, "output ", describe(t), " was given sizes ", given.dims);
        t.dims_given = true;
        t.strides = given.strides;
      }
      if (given.strides_given) {
        if (!given.dims_given && pending_layout_.kind == Token::word) {
          given.dims = t.dims;
          resolve_layout(given, pending_layout_);
        }
        require(given.strides.size() == t.dims.size(), "output ", describe(t), ": ", given.strides.size(),
                " strides given");
        t.strides = given.strides;
        t.strides_given = t.dims_given = true;
      }
    });
  }

  // types io=TYPE intermediate=TYPE compute=TYPE: for what follows, where no type is given.
  void types() {
    take();
    while (peek().kind == Token::word && is("=", 1)) {
      Token key = take();
      take();
      tessera::Types& t = types_.types;
      std::optional<DType>* which = key.text == "io"             ? &t.io
                                    : key.text == "intermediate" ? &t.intermediate
                                    : key.text == "compute"      ? &t.compute
                                                                 : nullptr;
      if (!which) unknown(key, "kind of types", std::vector<std::string>{"io", "intermediate", "compute"});
      Tensor given;
      Token at = peek();
      type(given);
      if (given.dims_given || given.strides_given || !is_real(given.dtype))
        error(at, "expected a floating-point type, nothing else");
      *which = given.dtype;
    }
  }

  void with(Scope& scope) {
    take();
    Token name = expect_name("the name of a tensor");
    TensorId id = lookup(scope, name);
    located(name, [&] { tensor_options(scope, scope.graph->edit(id)); });
  }

  void tensor_options(Scope& scope, Tensor& t) {
    while (peek().kind == Token::word && is("=", 1)) {
      Token key = take();
      take();
      if (key.text == "align") {
        t.alignment = integer();
      } else if (key.text == "frozen") {
        Token v = expect_word("true or false");
        if (v.text != "true" && v.text != "false") unknown(v, "truth value", std::vector<std::string>{"true", "false"});
        t.frozen = v.text == "true";
      } else if (key.text == "ragged") {
        t.ragged = lookup(scope, expect_name("the tensor of ragged offsets"));
        if (accept("*")) t.ragged_multiplier = integer();
      } else if (key.text == "reorder") {
        t.reordering = reordering();
      } else {
        unknown(key, "tensor option", std::vector<std::string>{"align", "frozen", "ragged", "reorder"});
      }
    }
  }

  Reordering reordering() {
    Token v = expect_word("a reordering");
    const std::vector<std::string> names = {"none", "f8_128x4", "i8x32", "f16x16"};
    auto it = std::find(names.begin(), names.end(), v.text);
    if (it == names.end()) unknown(v, "reordering", names);
    return static_cast<Reordering>(it - names.begin());
  }

  struct Target {
    Token slot, name;
    Tensor tensor;
    Token layout;
  };

  Target target() {
    Target t;
    t.name = expect_name("a name");
    if (is(":") && is_name(1)) {
      take();
      t.slot = t.name;
      t.name = take();
    }
    if (accept("@")) t.tensor.uid = integer();
    pending_layout_ = {};
    if (is_type()) type(t.tensor);
    if (t.tensor.strides_given && !t.tensor.dims_given) error(t.name, "a layout needs sizes: write type[sizes]:layout");
    // Sizes of scales are whole tiles where they are reordered: the operation must know at once.
    if (t.tensor.dims_given && peek().text == "reorder") {
      take();
      expect("=");
      t.tensor.reordering = reordering();
    }
    t.tensor.name = name_of(t.name);
    return t;
  }

  void assignment(Scope& scope) {
    std::vector<Target> targets;
    do targets.push_back(target());
    while (accept(","));
    expect("=");
    Token head = peek();
    if (head.kind == Token::word && (head.text == "input" || head.text == "scalar" || head.text == "const")) {
      if (targets.size() != 1) error(head, cat("'", head.text, "' defines one tensor"));
      return declaration(scope, targets[0]);
    }
    if (head.kind != Token::word) error(head, "expected an operation, input, scalar, const or grad");
    if (head.text == "grad") return gradients(scope, targets);
    expression(scope, std::move(targets), 0);
  }

  // grad LOSS INPUT .. [seed=TENSOR]: stands for the operations that compute the gradients, one for each target.
  void gradients(Scope& scope, const std::vector<Target>& targets) {
    Token head = take();
    TensorId loss = lookup(scope, expect_name("the tensor to differentiate")), seed = kNone;
    std::vector<TensorId> inputs;
    while (is_name()) {
      Token name = take();
      if (!accept("=")) {
        inputs.push_back(lookup(scope, name));
        continue;
      }
      if (name.text != "seed") unknown(name, "option of grad", std::vector<std::string>{"seed"});
      seed = lookup(scope, expect_name("the tensor that seeds the gradient"));
    }
    if (inputs.size() != targets.size())
      error(head, cat("grad names ", inputs.size(), " inputs for ", targets.size(), " results"));
    std::vector<TensorId> results;
    located(head, [&] { results = gradient(*scope.graph, loss, inputs, seed); });
    for (size_t i = 0; i < results.size(); ++i) {
      const Target& t = targets[i];
      if (t.slot.kind == Token::word || t.tensor.uid != 0 || t.tensor.dims_given)
        error(t.name, "a gradient takes a name and a type here, nothing else");
      located(t.name, [&] {
        if (t.name.kind != Token::label) scope.graph->rename(results[i], t.tensor.name);
        label(scope, t.name, results[i]);
        if (!t.tensor.dtype_given) return;
        Tensor& d = scope.graph->edit(results[i]);
        d.dtype = t.tensor.dtype;
        d.dtype_given = true;
      });
    }
  }

  void declaration(Scope& scope, Target& target) {
    Token kind = take();
    Tensor& t = target.tensor;
    if (t.dtype_given) error(target.name, cat("write the type after '", kind.text, "'"));
    type(t);
    if (!t.dims_given) {
      if (kind.text == "input") error(peek(), "an input needs sizes: type[sizes]");
      t.dims = t.strides = Dims{1};
      t.dims_given = true;
    }
    if (kind.text == "const")
      constant(t);
    else
      t.stored = true;
    t.by_value = kind.text == "scalar";
    t.strides_given = true;
    tensor_options(scope, t);
    located(target.name, [&] { label(scope, target.name, scope.graph->add_tensor(t)); });
  }

  void constant(Tensor& t) {
    Token at = peek();
    int64_t n = 0;
    located(at, [&] { n = t.numel(); });
    if (n < 1 || n > 65536) error(at, "a constant has 1 to 65536 elements");
    t.constant.resize(static_cast<size_t>(byte_size(t.dtype, n)));
    for (int64_t i = 0; i < n; ++i) {
      if (i && !accept(",")) error(peek(), cat("expected ',': a constant of sizes ", t.dims, " has ", n, " values"));
      if (is_complex(t.dtype)) {
        double re = real();
        expect(",");
        store(t.dtype, t.constant.data(), i, std::complex<double>(re, real()));
      } else if (is_real(t.dtype)) {
        store(t.dtype, t.constant.data(), i, real());
      } else {
        Token number = peek();
        int64_t v = integer();
        store(t.dtype, t.constant.data(), i, v);
        if (load<int64_t>(t.dtype, t.constant.data(), i) != v) error(number, cat(v, " does not fit in ", t.dtype));
      }
    }
  }

  // --- names
  void label(Scope& scope, const Token& name, TensorId id) const {
    if (name.kind == Token::label && !scope.labels.emplace(name.text, id).second)
      error(name, cat("two tensors are named '", name.text, "'"));
  }

  TensorId find(const Scope& scope, const Token& name) const {
    if (name.kind != Token::label) return scope.graph->find(name_of(name));
    auto it = scope.labels.find(name.text);
    return it == scope.labels.end() ? kNone : it->second;
  }

  TensorId lookup(Scope& scope, const Token& name) {
    TensorId id = find(scope, name);
    if (id != kNone) return id;
    if (scope.outer) {
      // A name of an enclosing graph: this graph gets an input that stands for it.
      TensorId outer = lookup(*scope.outer, name);
      const Tensor& o = scope.outer->graph->tensor(outer);
      Tensor t = o;
      t.uid = 0;
      t.stored = true;
      t.ragged = kNone;
      t.constant.clear();
      t.by_value = o.by_value || o.is_constant();
      t.dtype_given = t.dims_given = t.strides_given = true;
      scope.captures.push_back(scope.graph->add_tensor(t));
      scope.captured.push_back(outer);
      label(scope, name, scope.captures.back());
      return scope.captures.back();
    }
    std::vector<std::string> names;
    for (int i = 0; i < scope.graph->tensor_count(); ++i)
      if (const std::string& n = scope.graph->tensor(i).name; !is_made_up(n)) names.push_back(n);
    unknown(name, "tensor", names);
  }

  // --- expressions
  // NAME | NUMBER | ( expression )
  bool is_operand() const { return is_name() || is_number() || is("("); }
  TensorId operand(Scope& scope, const std::vector<TensorId>& siblings, int depth) {
    if (is("(")) {
      Token open = take();
      if (depth >= kMaxDepth) error(open, cat("expressions nest deeper than ", kMaxDepth));
      while (peek().kind == Token::line_end) take();
      bool tensor = is_name() && find(scope, peek()) != kNone && (is(")", 1) || is(",", 1));  // relu(x)
      TensorId id = tensor ? lookup(scope, take()) : expression(scope, {}, depth + 1);
      while (peek().kind == Token::line_end) take();
      if (is(",")) error(peek(), "arguments are separated by spaces, without a comma: add x y");
      expect(")");
      return id;
    }
    if (is_name() && find(scope, peek()) != kNone) return lookup(scope, take());
    if (is_number()) {
      // A literal takes the type of its neighbour where that matters, f32 otherwise.
      Token at = peek();
      DType type = DType::f32;
      if (!siblings.empty() && siblings[0] != kNone) {
        DType s = scope.graph->tensor(siblings[0]).dtype;
        bool whole = at.text.find_first_not_of("-0123456789") == std::string_view::npos;
        if (s == DType::f64 || s == DType::c128) type = DType::f64;
        if (is_integer(s) && whole) type = s == DType::i64 ? DType::i64 : DType::i32;
      }
      if (is_integer(type)) {
        Tensor t = make_scalar_constant(type, 0);
        store(type, t.constant.data(), 0, integer());
        return scope.graph->add_tensor(std::move(t));
      }
      return scope.graph->add_tensor(make_scalar_constant(type, real()));
    }
    return lookup(scope, expect_name("a tensor"));
  }

  struct Body {
    Token name;
    size_t first;  // token after '{'
  };

  TensorId expression(Scope& scope, std::vector<Target> targets, int depth) {
    Token head = expect_word("an operation");
    auto spelled = find_spelling(head.text);
    if (!spelled) error(head, cat("unknown operation '", head.text, "'", hint_for_operation(head.text)));
    const OpSpec& spec = *spelled->op;
    Node n;
    n.op = &spec;
    n.attrs = spelled->options;
    std::vector<Body> bodies;
    std::set<std::string_view> options;  // that were given
    size_t position = 0;
    bool variadic = !spec.in.empty() && spec.in.back().kind == Slot::variadic;
    while (is_operand()) {
      if (peek().kind == Token::word && is("=", 1)) {
        named_argument(scope, n, head, bodies, options, depth);
        continue;
      }
      if (position >= spec.in.size() && !variadic)
        error(peek(), cat(head.text, " takes at most ", spec.in.size(), spec.in.size() == 1 ? " input" : " inputs"));
      TensorId id = operand(scope, n.in, depth);
      if (position < spec.in.size() || variadic) {
        if (n.in.size() <= position) n.in.resize(position + 1, kNone);
        if (n.in[position] != kNone) error(head, cat("input '", spec.in[position].name, "' is given twice"));
        n.in[position++] = id;
      }
    }
    // Captures are listed in the order of the options, whatever the order of the text.
    std::vector<std::string> order;
    for (auto& [name, ref] : fields_of(n).all) order.push_back(name);
    std::stable_sort(bodies.begin(), bodies.end(), [&](const Body& a, const Body& b) {
      return std::find(order.begin(), order.end(), a.name.text) < std::find(order.begin(), order.end(), b.name.text);
    });
    for (const Body& b : bodies) subgraph(scope, n, b, depth);
    return place(scope, std::move(n), std::move(targets), head);
  }

  void named_argument(Scope& scope, Node& n, const Token& head, std::vector<Body>& bodies,
                      std::set<std::string_view>& options, int depth) {
    Token key = take();
    take();
    auto once = [&] {
      if (!options.insert(key.text).second) error(key, cat("option '", key.text, "' is given twice"));
    };
    if (key.text == "compute") {
      once();
      Token v = expect_word("a data type");
      auto d = find_dtype(v.text);
      if (!d) unknown_type(v);
      n.compute = *d;
      n.compute_given = true;
      return;
    }
    if (is("{")) {
      once();
      bodies.push_back({key, position() + 1});
      skip_braces();
      return;
    }
    for (size_t i = 0; i < n.op->in.size(); ++i) {
      // An option and an input may share a name (sdpa's scale): a bare number is the option.
      if (n.op->in[i].name != key.text || n.op->in[i].kind == Slot::variadic) continue;
      if (is_number() && has_field(n, key.text)) break;
      if (n.in.size() <= i) n.in.resize(i + 1, kNone);
      if (n.in[i] != kNone) error(key, cat("input '", key.text, "' is given twice"));
      n.in[i] = operand(scope, n.in, depth);
      return;
    }
    once();
    option(n, key, head);
  }

  class Fields : public FieldVisitor {
   public:
    void field(std::string_view name, FieldRef ref) override { all.emplace_back(name, std::move(ref)); }
    std::vector<std::pair<std::string, FieldRef>> all;
  };

  static Fields fields_of(Node& n) {
    Fields f;
    if (n.op->fields) n.op->fields(n.attrs, f);
    return f;
  }
  static bool has_field(Node& n, std::string_view name) {
    for (auto& [key, ref] : fields_of(n).all)
      if (key == name) return true;
    return false;
  }

  void option(Node& n, const Token& key, const Token& head) {
    std::vector<std::string> names = {"compute"};
    for (auto& [name, ref] : fields_of(n).all) {
      bool spelled_by_mode = name == "mode" && !n.op->modes.empty();
      if (name == key.text && !spelled_by_mode) return std::visit([this](auto& r) { set(r); }, ref);
      if (!spelled_by_mode) names.push_back(name);
    }
    for (const Slot& s : n.op->in)
      if (s.kind != Slot::variadic) names.emplace_back(s.name);
    unknown(key, cat("option of ", head.text), names, hint_from_elsewhere(key.text, options_elsewhere(), names));
  }

  void set(bool* v) {
    Token t = expect_word("true or false");
    if (t.text != "true" && t.text != "false") error(t, "expected true or false");
    *v = t.text == "true";
  }
  void set(int64_t* v) { *v = integer(); }
  void set(double* v) { *v = real(); }
  void set(std::optional<int64_t>* v) { *v = integer(); }
  void set(std::optional<double>* v) { *v = real(); }
  void set(Ints* v) { *v = integers(); }
  void set(std::vector<Ratio>* v) {
    v->clear();
    if (accept("(")) return expect(")");
    do {
      Token at = peek();
      int64_t num = integer(), den = accept("/") ? integer() : 1;
      if (den <= 0) error(at, "a denominator must be positive");
      v->emplace_back(num, den);
    } while (accept(","));
  }
  void set(EnumRef& e) {
    Token t = expect_word("a name");
    auto it = std::find(e.names.begin(), e.names.end(), t.text);
    if (it == e.names.end()) {
      std::string near = nearest(t.text, e.names);
      std::vector<std::string> all(e.names.begin(), e.names.end());
      error(t, cat("'", t.text, "' is not ", any_of_text(all), near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    e.set(static_cast<int>(it - e.names.begin()));
  }
  void set(tessera::Subgraph*) { error(peek(), "expected a sub-graph: { name -> expression }"); }

  void skip_braces() {
    Token open = take();
    int depth = 1;
    while (depth > 0) {
      Token t = take();
      if (t.kind == Token::end) error(open, "this '{' is never closed");
      if (t.kind == Token::symbol) depth += t.text == "{" ? 1 : t.text == "}" ? -1 : 0;
    }
  }

  // { param ... -> statement; ...; result, ... }
  void subgraph(Scope& outer, Node& n, const Body& body, int depth) {
    if (depth >= kMaxDepth) error(body.name, cat("sub-graphs nest deeper than ", kMaxDepth));
    size_t resume = position();
    go_to(body.first);
    tessera::Subgraph* slot = nullptr;
    Fields fields = fields_of(n);
    for (auto& [name, ref] : fields.all)
      if (auto* s = std::get_if<tessera::Subgraph*>(&ref); s && name == body.name.text) slot = *s;
    if (!slot) error(body.name, cat(n.op->name, " takes no sub-graph named '", body.name.text, "'"));
    std::vector<Tensor> params;
    Node probe = n;
    located(body.name, [&] {
      probe.in.resize(std::max(probe.in.size(), n.op->in.size()), kNone);
      for (size_t i = 0; i < n.op->in.size(); ++i)
        require(probe.in[i] != kNone || n.op->in[i].kind != Slot::required, "input '", n.op->in[i].name,
                "' is missing");
      params = n.op->params(*outer.graph, probe, body.name.text);
    });
    auto s = std::make_shared<Subgraph>();
    Scope scope{&s->graph, &outer};
    while (is_name()) {
      Token name = take();
      if (s->params.size() >= params.size())
        error(name, cat("'", body.name.text, "' receives ", params.size(), " values"));
      Tensor t = params[s->params.size()];
      t.name = name_of(name);
      t.stored = t.dtype_given = t.dims_given = t.strides_given = true;
      located(name, [&] { s->params.push_back(s->graph.add_tensor(t)); });
      label(scope, name, s->params.back());
    }
    if (s->params.size() != params.size())
      error(peek(), cat("'", body.name.text, "' receives ", params.size(), " values, ", s->params.size(), " named"));
    if (peek().kind != Token::arrow) error(peek(), "expected '->'");
    take();
    skip_separators();
    while (is_assignment()) {
      assignment(scope);
      if (!skip_separators()) error(peek(), "expected ';'");
    }
    do s->results.push_back(body_result(scope, depth));
    while (accept(","));
    skip_separators();
    if (!is("}")) error(peek(), "expected '}' after the result of the sub-graph");
    Token at = peek();
    located(at, [&] {
      for (TensorId r : s->results) {
        require(s->graph.producer(r) != kNone,
                "a sub-graph must compute its result; use 'identity' to pass a value through");
        s->graph.mark_output(r);
      }
      s->graph.finalize();
    });
    s->captures = scope.captures;
    n.captures.insert(n.captures.end(), scope.captured.begin(), scope.captured.end());
    *slot = std::move(s);
    go_to(resume);
  }

  bool is_assignment() const {
    // NAME [@uid] [type] [, ...] = : look for '=' before the statement ends, but not a named argument of an expression.
    if (!is_name()) return false;
    bool typed = peek(1).kind == Token::word && find_dtype(peek(1).text);
    return is("=", 1) || is("@", 1) || is(":", 1) || (is(",", 1) && is_name(2) && assignment_later()) ||
           (typed && (is("[", 2) || is(":", 2) || is("=", 2) || is(",", 2)));
  }
  bool assignment_later() const {
    for (size_t k = 0; peek(k).kind != Token::end && peek(k).kind != Token::line_end; ++k) {
      if (is(";", k) || is("}", k)) return false;
      if (is("=", k)) return true;
    }
    return false;
  }

  TensorId body_result(Scope& scope, int depth) {
    if (peek().kind == Token::word && find(scope, peek()) == kNone && find_spelling(peek().text))
      return expression(scope, {}, depth + 1);
    return operand(scope, {}, depth + 1);
  }

  // Gives the node its output tensors and adds it; returns the first output.
  TensorId place(Scope& scope, Node n, std::vector<Target> targets, const Token& head) {
    Graph& g = *scope.graph;
    n.out.assign(n.op->out.size(), kNone);
    size_t position = 0;
    for (Target& t : targets) {
      size_t slot = position;
      if (t.slot.kind == Token::word) {
        std::vector<std::string> names;
        for (slot = 0; slot < n.op->out.size() && n.op->out[slot].name != t.slot.text; ++slot)
          names.emplace_back(n.op->out[slot].name);
        if (slot == n.op->out.size()) unknown(t.slot, cat("output of ", head.text), names);
      } else {
        ++position;
      }
      if (slot >= n.op->out.size()) error(t.name, cat(head.text, " has ", n.op->out.size(), " outputs"));
      if (n.out[slot] != kNone) error(t.name, cat("output '", n.op->out[slot].name, "' is named twice"));
      located(t.name, [&] { n.out[slot] = g.add_tensor(std::move(t.tensor)); });
      label(scope, t.name, n.out[slot]);
    }
    NodeId id = kNone;
    located(head, [&] {
      if (n.op->complete) n.op->complete(g, n);
      if (!scope.outer) types_.set_compute(g, n);
      id = g.add_node(std::move(n));
      if (!scope.outer) types_.set_results(g, id);
    });
    for (TensorId t : g.node(id).out)
      if (t != kNone) return t;
    error(head, cat(head.text, " has no output here"));
  }

  Token pending_layout_;
  DefaultTypes types_;
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser(text).graph(); }

}  // namespace tsr
