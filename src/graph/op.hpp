// SPDX-License-Identifier: Apache-2.0
// What an operation is: its slots, its options, how its outputs follow from its inputs. One OpSpec drives validation,
// the text form, serialisation, documentation and the C++ API; see docs/adding-an-operation.md.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "graph/graph.hpp"
#include "tessera/options.hpp"

namespace tsr {

using tessera::Ratio;

struct Slot {
  enum Kind : uint8_t { required, optional, variadic };
  Slot(std::string_view name, Kind kind = required) : name(name), kind(kind) {}  // NOLINT: slots are listed by name
  // Of an operation that has its slots in ops/slots.hpp: under the place that it has there.
  Slot(int place, std::string_view name, Kind kind = required) : name(name), kind(kind), place(place) {}
  std::string_view name;
  Kind kind = required;
  int place = -1;
};

// A named enumeration field: an integer behind a list of spellings.
struct EnumRef {
  std::function<int()> get;
  std::function<void(int)> set;
  std::span<const std::string_view> names;
};

using FieldRef = std::variant<bool*, int64_t*, double*, std::optional<int64_t>*, std::optional<double>*, Ints*,
                              std::vector<Ratio>*, EnumRef, tessera::Subgraph*>;

// Walks over the options of a node, each with a few words that say what it means; used to print, parse and document
// them.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(std::string_view name, FieldRef ref) = 0;
  virtual void means(std::string_view) {}  // of the field before
  template <class T>
  void operator()(std::string_view name, T& value, std::string_view meaning) {
    field(name, FieldRef(&value));
    means(meaning);
  }
  template <class E>
  void operator()(std::string_view name, E& value, std::span<const std::string_view> names, std::string_view meaning) {
    field(name,
          EnumRef{[&value] { return static_cast<int>(value); }, [&value](int i) { value = static_cast<E>(i); }, names});
    means(meaning);
  }
};

class Infer;
class Gradient;

enum class Family : uint8_t {
  pointwise,
  reduction,
  matmul,
  conv,
  norm,
  softmax,
  resample,
  random,
  movement,
  quantize,
  attention,
  recurrent,
  other
};

// Another name of an operation, for those who look for it; graphs print the first name.
struct Alias {
  std::string_view name;
  std::string_view mode = {};  // the mode that it stands for, if any
};

struct OpSpec {
  std::string_view name;
  Family family = Family::other;
  std::vector<Slot> in, out;
  std::any defaults;                                             // the options struct
  void (*fields)(std::any& options, FieldVisitor& v) = nullptr;  // lists every option
  void (*infer)(Infer& ctx) = nullptr;                           // fills and checks outputs
  double (*flops)(const Graph& g, const Node& n) = nullptr;      // null: one for each output element
  // Terms that one output element accumulates; the derived tolerance grows with its square root. null: 1.
  double (*terms)(const Graph& g, const Node& n) = nullptr;
  std::string_view formula;  // for docs: the mathematics in one or two lines
  std::string_view shapes;   // for docs: sizes of inputs and outputs, allowed types
  std::string_view example;  // for docs: a graph that runs
  // Operations that are spelled by their mode (add, relu, reduce_max, layer_norm): the enumeration and its affixes.
  std::span<const std::string_view> modes = {};
  std::string_view mode_prefix = {}, mode_suffix = {};
  // Operations with sub-graph options: the tensors (type and sizes) that the sub-graph `field` receives.
  std::vector<Tensor> (*params)(const Graph& g, const Node& n, std::string_view field) = nullptr;
  // How gradients of outputs become gradients of inputs (graph/gradient.hpp); null: `no_gradient` says why not.
  void (*gradient)(Gradient& g) = nullptr;
  std::string_view no_gradient = {};
  std::vector<Alias> aliases = {};
  // What people mean who write the operation: may add nodes before it. For front ends; inference checks what came out.
  void (*complete)(Graph& g, Node& n) = nullptr;
};

// Why operations that compute gradients have no rule themselves.
inline constexpr std::string_view kSecondDerivative = "it is a gradient already, and second derivatives are not made";

// The registry, in documentation order. Defined by the one list in ops/list.cpp.
std::span<const OpSpec* const> all_ops();
const OpSpec& op(std::string_view name);  // by spec name; raises for an unknown one

// Spelling in the text form: "conv_fprop", or "relu" for pointwise{mode=relu}.
std::string spelling(const Node& n);
// Finds the operation for a spelling and the options it stands for; nullopt when there is none.
struct Spelled {
  const OpSpec* op;
  std::any options;
  bool sets_mode;  // whatever the options say
};
std::optional<Spelled> find_spelling(std::string_view text);
std::vector<std::string> all_spellings();  // aliases among them
// What to say of a word that is no operation: "; did you mean 'relu'?".
std::string hint_for_operation(std::string_view word);
// What other libraries call an operation, an option or a data type, and what to write here.
struct ElsewhereName {
  std::string_view name, here;
  std::string_view how = {};  // if the name is not all
};
std::span<const ElsewhereName> names_elsewhere();
std::span<const ElsewhereName> options_elsewhere();
std::span<const ElsewhereName> dtypes_elsewhere();
// "; here it is 'pad'" if one of them has this name and what to write is among `known`, or nothing.
std::string hint_from_elsewhere(std::string_view word, std::span<const ElsewhereName> names,
                                const std::vector<std::string>& known);
// For operations spelled by their mode: sets the mode of `to` to that of `from`.
void copy_mode(const OpSpec& op, const std::any& from, std::any& to);

// Sub-graphs among the options of a node, in field order.
std::vector<tessera::Subgraph> subgraphs(const Node& n);

double node_flops(const Graph& g, const Node& n);

// What an infer function sees. All checks raise Error with the operation, the tensor, the given and the allowed value.
class Infer {
 public:
  Infer(Graph& g, Node& n) : g_(g), n_(n) {}
  const Node& node() const { return n_; }
  const Graph& graph() const { return g_; }
  template <class Options>
  const Options& options() const {
    return attrs<Options>(n_);
  }
  template <class Options>
  Options& edit_options() {
    return *std::any_cast<Options>(&n_.attrs);
  }

  bool has(int slot) const {
    return slot < static_cast<int>(n_.in.size()) && n_.in[static_cast<size_t>(slot)] != kNone;
  }
  const Tensor& in(int slot) const;
  int in_count() const { return static_cast<int>(n_.in.size()); }
  bool wants(int slot) const {
    return slot < static_cast<int>(n_.out.size()) && n_.out[static_cast<size_t>(slot)] != kNone;
  }
  const Tensor& out(int slot) const;

  // Default compute type: f64 when an input is f64 (c128), otherwise f32; all-integer inputs give i32, or i64.
  void default_compute();
  // Output `slot` has these sizes, and this type unless the author gave one. Absent optional outputs are ignored.
  // Strides default to the order of dimensions of `like`.
  void output(int slot, const Dims& dims, DType type, const Tensor* like = nullptr);

  template <class... Parts>
  [[noreturn]] void error(const Parts&... parts) const {
    refuse({Part(parts)...});
  }
  template <class... Parts>
  void check(bool condition, const Parts&... parts) const {
    if (!condition) error(parts...);
  }
  [[noreturn]] void refuse(std::initializer_list<Part> parts) const;
  void check_rank(int slot, int lo, int hi) const;
  void check_dims(int slot, const Dims& wanted) const;  // exact sizes of an input, if present
  void check_type(int slot, std::initializer_list<DType> allowed) const;
  void check_integer(int slot) const;                        // i32 or i64, if present
  void check_broadcast(int slot, const Dims& target) const;  // each size 1 or the target's
  std::string label() const;                                 // "conv_fprop 'y'"
  std::string input_text(int slot) const;                    // "input x 'name' f32[2,3]"
  // The same in messages; refuses an input that is not there.
  auto describe(int slot) const {
    (void)in(slot);
    return Lazy{[this, slot] { return input_text(slot); }};
  }

 private:
  Graph& g_;
  Node& n_;
};

// A value for each of the spatial dimensions where one was given for all of them.
template <class T>
void fill_spatial(tessera::Each<T>& values, int spatial) {
  if (values.size() == 1 && spatial > 1) values.resize(static_cast<size_t>(spatial), T(values[0]));
}

std::string to_text(const Tensor& t);  // "'x' f32[2,3]"
// The same in messages.
inline auto describe(const Tensor& t) {
  return Lazy{[&t] { return to_text(t); }};
}
// Sizes after broadcasting, or nullopt when they do not match. Ranks are aligned at the last dimension.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);
int64_t normalize_axis(int64_t axis, int rank);  // -1 becomes rank-1; raises when out of range
// Strides for `dims` in the dimension order of `like` (same rank), otherwise packed.
Dims strides_like(const Dims& dims, const Tensor* like);

}  // namespace tsr
