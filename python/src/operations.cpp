// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "api/state.hpp"
#include "graph/pointwise_modes.hpp"
#include "graph/text.hpp"

namespace tessera::python {
namespace {

using tsr::cat;
using tsr::fail;
using tsr::FieldRef;
using tsr::OpSpec;
using tsr::require;
using tsr::Slot;

// --- signatures

std::string type_text(const bool*) { return "bool"; }
std::string type_text(const int64_t*) { return "int"; }
std::string type_text(const double*) { return "float"; }
std::string type_text(const std::optional<int64_t>*) { return "int | None"; }
std::string type_text(const std::optional<double>*) { return "float | None"; }
std::string type_text(const Ints*) { return "int | collections.abc.Sequence[int]"; }
std::string type_text(const std::vector<Ratio>*) { return "int | collections.abc.Sequence[int | fractions.Fraction]"; }
std::string type_text(const Subgraph*) { return "collections.abc.Callable[..., Tensor] | None"; }
std::string type_text(const tsr::EnumRef& e) {
  std::string s;
  for (std::string_view n : e.names) s += cat(s.empty() ? "" : ", ", "'", n, "'");
  return "typing.Literal[" + s + "]";
}

std::string value_text(const bool* v) { return *v ? "True" : "False"; }
std::string value_text(const int64_t* v) { return cat(*v); }
// Infinity has no literal.
std::string value_text(const double* v) { return std::isfinite(*v) ? tsr::print_number(*v) : "..."; }
std::string value_text(const std::optional<int64_t>*) { return "None"; }
std::string value_text(const std::optional<double>*) { return "None"; }
std::string value_text(const Ints* v) {
  std::string s;
  for (int64_t i : *v) s += cat(i, ",");
  return "(" + s + ")";
}
std::string value_text(const std::vector<Ratio>*) { return "()"; }
std::string value_text(const Subgraph*) { return "None"; }
std::string value_text(const tsr::EnumRef& e) { return cat("'", e.names[static_cast<size_t>(e.get())], "'"); }

struct Option {
  std::string_view name;
  std::string type, value;
};

class OptionLister : public tsr::FieldVisitor {
 public:
  void field(std::string_view name, FieldRef ref) override {
    options.push_back({name, std::visit([](const auto& r) { return type_text(r); }, ref),
                       std::visit([](const auto& r) { return value_text(r); }, ref)});
  }
  std::vector<Option> options;
};

// An operation under one of its spellings.
struct Spelling {
  const OpSpec* op;
  std::string name;
  std::any defaults;
  size_t inputs;          // of its slots; fewer than the operation has for pointwise modes
  std::string_view mode;  // for pointwise: what it computes
};

std::vector<Option> options_of(const Spelling& s) {
  OptionLister lister;
  std::any copy = s.defaults;
  if (s.op->fields) s.op->fields(copy, lister);
  // The spelling says the mode.
  if (!s.op->modes.empty()) std::erase_if(lister.options, [](const Option& o) { return o.name == "mode"; });
  return lister.options;
}

bool has_slot(const Spelling& s, std::string_view name) {
  for (size_t i = 0; i < s.inputs; ++i)
    if (s.op->in[i].name == name) return true;
  return false;
}

bool one_output(const OpSpec& op) { return op.out.size() == 1; }

// As Python would write it. An option that is also an input, such as the scale of attention, takes either.
std::string signature(const Spelling& s, bool method) {
  std::string text = cat("def ", s.name, "(");
  std::vector<Option> options = options_of(s);
  auto option = [&](std::string_view name) -> const Option* {
    for (const Option& o : options)
      if (o.name == name) return &o;
    return nullptr;
  };
  bool needed = true;  // Python wants what has no default first; the first optional input ends that
  for (size_t i = 0; i < s.inputs; ++i) {
    const Slot& slot = s.op->in[i];
    const Option* same = option(slot.name);
    bool required = slot.kind != Slot::optional || s.mode.size();
    text += i ? ", " : "";
    text += i == 0 && method ? "self" : std::string(slot.name);
    if (i == 0 && method) continue;
    text += slot.kind == Slot::variadic ? ": collections.abc.Sequence[Tensor]" : ": Tensor | float";
    needed = needed && required;
    if (!needed) text += same ? cat(" = ", same->value) : " | None = None";
  }
  text += s.inputs ? ", *" : "*";
  for (const Option& o : options)
    if (!has_slot(s, o.name)) text += cat(", ", o.name, ": ", o.type, " = ", o.value);
  bool several = !one_output(*s.op);
  if (several)
    text += ", wanted: str | collections.abc.Sequence[str] = ()";
  else if (text.ends_with(", *"))
    text.resize(text.size() - 3);
  return text + (several ? ") -> Outputs" : ") -> Tensor");
}

std::string documentation(const Spelling& s) {
  std::string text = cat(s.mode.size() ? s.mode : s.op->formula, "\n\n", s.op->shapes, "\n");
  if (!one_output(*s.op)) {
    text += "\nOutputs:";
    for (const Slot& o : s.op->out) text += cat(" ", o.name, o.kind == Slot::optional ? " (when wanted)" : "");
    text += "\n";
  }
  return text + cat("\nIn the text form:\n\n", s.op->example, "\n");
}

// --- calls

// Values of Python become options.
class OptionSetter : public tsr::FieldVisitor {
 public:
  OptionSetter(const std::string& op, nb::dict& given) : op_(op), given_(given) {}
  void field(std::string_view name, FieldRef ref) override {
    nb::str key(name.data(), name.size());
    if (!given_.contains(key)) return;
    nb::object value = given_[key];
    if (nb::isinstance<Tensor>(value)) return;  // an input of the same name
    name_ = name;
    std::visit([&](auto& r) { set(r, value); }, ref);
    nb::del(given_[key]);
  }

 private:
  template <class T>
  T read(nb::handle value, const char* wanted) const {
    T result;
    if (!nb::try_cast<T>(value, result))
      fail(Status::bad_parameter, op_, ": option ", name_, " was given ", nb::cast<std::string>(nb::repr(value)),
           "; it takes ", wanted);
    return result;
  }
  void set(bool* to, nb::handle v) const { *to = read<bool>(v, "True or False"); }
  void set(int64_t* to, nb::handle v) const { *to = read<int64_t>(v, "a whole number"); }
  void set(double* to, nb::handle v) const {
    if (!v.is(Py_Ellipsis)) *to = read<double>(v, "a number");
  }
  void set(std::optional<int64_t>* to, nb::handle v) const {
    if (v.is_none())
      to->reset();
    else
      *to = read<int64_t>(v, "a whole number or None");
  }
  void set(std::optional<double>* to, nb::handle v) const {
    if (v.is_none())
      to->reset();
    else
      *to = read<double>(v, "a number or None");
  }
  void set(Ints* to, nb::handle v) const {
    int64_t one = 0;
    *to = nb::try_cast<int64_t>(v, one) ? Ints{one} : read<Ints>(v, "whole numbers");
  }
  void set(std::vector<Ratio>* to, nb::handle v) const {
    to->clear();
    auto add = [&](nb::handle r) {
      constexpr const char* kWanted = "whole numbers or fractions";
      if (!nb::hasattr(r, "numerator")) read<int64_t>(r, kWanted);
      to->emplace_back(nb::cast<int64_t>(r.attr("numerator")), nb::cast<int64_t>(r.attr("denominator")));
    };
    if (nb::isinstance<nb::sequence>(v))
      for (nb::handle r : nb::borrow<nb::sequence>(v)) add(r);
    else
      add(v);
  }
  void set(const tsr::EnumRef& to, nb::handle v) const {
    auto word = read<std::string>(v, "one of its names");
    for (size_t i = 0; i < to.names.size(); ++i)
      if (to.names[i] == word) return to.set(static_cast<int>(i));
    fail(Status::bad_parameter, op_, ": option ", name_, " was given '", word, "'; allowed are ",
         tsr::any_of_text(std::vector<std::string>(to.names.begin(), to.names.end())));
  }
  // A function of Python that takes and returns tensors.
  void set(Subgraph* to, nb::handle v) const {
    to->reset();
    if (v.is_none()) return;
    require(PyCallable_Check(v.ptr()), op_, ": option ", name_, " takes a function of tensors");
    auto result = [](const nb::object& r) {
      require(nb::isinstance<Tensor>(r), "the function of a sub-graph must return a tensor");
      return nb::cast<Tensor>(r);
    };
    auto f = nb::borrow(v);
    if (name_ == "combine" || name_ == "score_mod_bwd")
      *to = subgraph([&](Tensor a, Tensor b) { return result(f(a, b)); });
    else
      *to = subgraph([&](Tensor a) { return result(f(a)); });
  }

  const std::string& op_;
  nb::dict& given_;
  std::string_view name_;
};

std::vector<std::string> words(const std::string& op, nb::handle value) {
  std::string one;
  if (nb::try_cast(value, one)) return {one};
  std::vector<std::string> list;
  require(nb::try_cast(value, list), op, ": wanted takes the name of an output, or several");
  return list;
}

// Inputs by slot, from those by position and those by name; names that were used are removed.
std::vector<nb::object> inputs_by_slot(const Spelling& s, nb::args args, nb::dict& given) {
  bool variadic = s.inputs == 1 && s.op->in[0].kind == Slot::variadic;
  std::vector<nb::object> values;
  require(args.size() <= s.inputs, s.name, " takes at most ", s.inputs, " inputs, ", args.size(),
          " given; options are given by name");
  if (variadic) {
    nb::str key(s.op->in[0].name.data(), s.op->in[0].name.size());
    require(args.size() == 1 || given.contains(key), s.name, " takes a list of tensors");
    nb::object list = args.size() ? nb::object(args[0]) : nb::object(given[key]);
    if (args.size() == 0) nb::del(given[key]);
    require(nb::isinstance<nb::sequence>(list), s.name, " takes a list of tensors");
    for (nb::handle t : list) values.push_back(nb::borrow(t));
    return values;
  }
  for (nb::handle a : args) values.push_back(nb::borrow(a));
  values.resize(s.inputs, nb::none());
  OptionLister options;
  std::any copy = s.defaults;
  if (s.op->fields) s.op->fields(copy, options);
  for (size_t i = 0; i < s.inputs; ++i) {
    std::string_view name = s.op->in[i].name;
    nb::str key(name.data(), name.size());
    bool also_option =
        std::any_of(options.options.begin(), options.options.end(), [&](const Option& o) { return o.name == name; });
    if (given.contains(key) && (!also_option || nb::isinstance<Tensor>(nb::object(given[key])))) {
      require(values[i].is_none(), s.name, ": input '", name, "' is given twice");
      values[i] = given[key];
      nb::del(given[key]);
    } else if (also_option && !values[i].is_none() && !nb::isinstance<Tensor>(values[i])) {
      given[key] = values[i];  // a number in the place of the input: the option
      values[i] = nb::none();
    }
  }
  return values;
}

nb::object call_operation(const Spelling& s, nb::args args, nb::kwargs kwargs) {
  nb::dict given;
  given.update(kwargs);
  std::vector<std::string> wanted;  // the names of optional outputs
  if (!one_output(*s.op) && given.contains("wanted")) {
    wanted = words(s.name, given["wanted"]);
    nb::del(given["wanted"]);
  }
  std::vector<nb::object> values = inputs_by_slot(s, args, given);
  std::any options = s.defaults;
  OptionSetter setter(s.name, given);
  if (s.op->fields) s.op->fields(options, setter);
  for (auto [key, value] : given) {
    std::vector<std::string> known;
    for (const Option& o : options_of(s)) known.emplace_back(o.name);
    for (size_t i = 0; i < s.inputs; ++i) known.emplace_back(s.op->in[i].name);
    auto name = nb::cast<std::string>(key);
    std::string near = tsr::nearest(name, known);
    fail(Status::bad_parameter, s.name, " has no input or option named '", name, "'",
         near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  const Tensor* neighbour = nullptr;
  for (const nb::object& v : values)
    if (!neighbour && nb::isinstance<Tensor>(v)) neighbour = nb::inst_ptr<Tensor>(v);
  require(neighbour != nullptr, s.name, ": an operation needs at least one tensor");
  std::vector<Tensor> inputs;
  for (const nb::object& v : values) inputs.push_back(v.is_none() ? Tensor() : to_tensor(v, *neighbour));
  bool some = !wanted.empty() ||
              std::any_of(s.op->out.begin(), s.op->out.end(), [](const Slot& o) { return o.kind == Slot::required; });
  require(some, s.name, ": all outputs are optional; name some in wanted");
  Results results = call(s.name, inputs, s.op->fields ? options : std::any(), {}, Wanted(wanted.begin(), wanted.end()));
  if (one_output(*s.op)) return nb::cast(Tensor(results));
  std::vector<std::pair<std::string, Tensor>> outputs;
  for (const Slot& o : s.op->out)
    if (o.kind == Slot::required || std::find(wanted.begin(), wanted.end(), o.name) != wanted.end())
      outputs.emplace_back(o.name, results[o.name]);
  return nb::cast(Outputs(std::move(outputs)));
}

std::vector<Spelling> spellings() {
  std::vector<Spelling> list;
  for (const OpSpec* op : tsr::all_ops()) {
    auto add = [&](const std::string& name, std::string_view mode) {
      Spelling s{op, name, tsr::find_spelling(name)->options, op->in.size(), {}};
      if (op->name == "pointwise") {
        auto at = std::find(op->modes.begin(), op->modes.end(), mode) - op->modes.begin();
        const tsr::PointwiseInfo& i = tsr::pointwise_infos()[static_cast<size_t>(at)];
        s.inputs = static_cast<size_t>(i.arity), s.mode = i.formula;
      }
      list.push_back(std::move(s));
    };
    if (op->modes.empty()) add(std::string(op->name), {});
    for (std::string_view m : op->modes) add(cat(op->mode_prefix, m, op->mode_suffix), m);
    for (const tsr::Alias& a : op->aliases) add(std::string(a.name), a.mode);
  }
  return list;
}

}  // namespace

Tensor to_tensor(nb::handle value, const Tensor& neighbour) {
  if (nb::isinstance<Tensor>(value)) return *nb::inst_ptr<Tensor>(value);
  double number = 0;
  require(nb::try_cast(value, number), "an operation was given ", nb::cast<std::string>(nb::repr(value)),
          "; it takes tensors of a graph and numbers");
  return scalar_like(neighbour, number);
}

void add_operations(nb::module_& m, nb::handle tensor_class) {
  for (const Spelling& s : spellings()) {
    auto body = [s](nb::args args, nb::kwargs kwargs) { return call_operation(s, args, kwargs); };
    std::string text = documentation(s), plain = signature(s, false), method = signature(s, true);
    std::string first = text.substr(0, text.find('\n'));  // the function has the rest
    m.def(s.name.c_str(), body, nb::sig(plain.c_str()), text.c_str());
    bool on_tensor = s.inputs > 0 && s.op->in[0].kind == Slot::required;
    if (on_tensor)
      nb::cpp_function_def(body, nb::scope(tensor_class), nb::name(s.name.c_str()), nb::is_method(),
                           nb::sig(method.c_str()), first.c_str());
  }
}

}  // namespace tessera::python
