// SPDX-License-Identifier: Apache-2.0
#include "graph/op.hpp"

#include <algorithm>

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

// Finds the `mode` field of an operation that is spelled by its mode.
class ModeField : public FieldVisitor {
 public:
  void field(std::string_view name, FieldRef ref) override {
    if (name == "mode") mode = std::get<EnumRef>(ref);
  }
  EnumRef mode;
};

class SubgraphFields : public FieldVisitor {
 public:
  void field(std::string_view, FieldRef ref) override {
    if (auto* s = std::get_if<tessera::Subgraph*>(&ref); s && **s) found.push_back(**s);
  }
  std::vector<tessera::Subgraph> found;
};

Spelled in_mode(const OpSpec& o, std::string_view mode) {
  Spelled s{&o, o.defaults, true};
  ModeField f;
  o.fields(s.options, f);
  f.mode.set(static_cast<int>(std::find(f.mode.names.begin(), f.mode.names.end(), mode) - f.mode.names.begin()));
  return s;
}

}  // namespace

std::span<const OpSpec* const> all_ops() {
  static const OpSpec* const list[] = {
#define OPERATION(name) &ops::name,
#include "graph/ops/list.inc"
#undef OPERATION
  };
  return list;
}

const OpSpec& op(std::string_view name) {
  for (const OpSpec* o : all_ops())
    if (o->name == name) return *o;
  fail(Status::internal_error, "no operation named ", name);
}

std::string spelling(const Node& n) {
  if (n.op->modes.empty()) return std::string(n.op->name);
  ModeField f;
  n.op->fields(const_cast<std::any&>(n.attrs), f);  // the visitor only reads
  return cat(n.op->mode_prefix, n.op->modes[static_cast<size_t>(f.mode.get())], n.op->mode_suffix);
}

std::optional<Spelled> find_spelling(std::string_view text) {
  for (const OpSpec* o : all_ops()) {
    if (o->modes.empty() && o->name == text) return Spelled{o, o->defaults, false};
    for (std::string_view m : o->modes)
      if (cat(o->mode_prefix, m, o->mode_suffix) == text) return in_mode(*o, m);
    for (const Alias& a : o->aliases)
      if (a.name == text) return a.mode.empty() ? Spelled{o, o->defaults, false} : in_mode(*o, a.mode);
  }
  return std::nullopt;
}

std::vector<std::string> all_spellings() {
  std::vector<std::string> names;
  for (const OpSpec* o : all_ops()) {
    if (o->modes.empty()) names.emplace_back(o->name);
    for (std::string_view m : o->modes) names.push_back(cat(o->mode_prefix, m, o->mode_suffix));
    for (const Alias& a : o->aliases) names.emplace_back(a.name);
  }
  return names;
}

std::string hint_from_elsewhere(std::string_view word, std::span<const ElsewhereName> names,
                                const std::vector<std::string>& known) {
  for (const ElsewhereName& e : names)
    if (e.name == word && std::find(known.begin(), known.end(), e.here) != known.end())
      return cat("; here it is '", e.here, "'", e.how.empty() ? "" : ", ", e.how);
  return "";
}

std::string hint_for_operation(std::string_view word) {
  for (const OpSpec* o : all_ops())
    if (o->name == word)
      return cat("; it has a name for each mode, such as '", o->mode_prefix, o->modes[0], o->mode_suffix, "'");
  std::vector<std::string> known = all_spellings();
  std::string here = hint_from_elsewhere(word, names_elsewhere(), known);
  if (!here.empty()) return here;
  std::string near = nearest(word, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

void copy_mode(const OpSpec& op, const std::any& from, std::any& to) {
  std::any copy = from;
  ModeField source, target;
  op.fields(copy, source);
  op.fields(to, target);
  target.mode.set(source.mode.get());
}

std::vector<tessera::Subgraph> subgraphs(const Node& n) {
  if (!n.op->fields) return {};
  std::any copy = n.attrs;
  SubgraphFields f;
  n.op->fields(copy, f);
  return f.found;
}

double node_flops(const Graph& g, const Node& n) {
  if (n.op->flops) return n.op->flops(g, n);
  double total = 0;
  for (TensorId t : n.out)
    if (t != kNone) total += static_cast<double>(g.tensor(t).numel());
  return total;
}

const Tensor& Infer::in(int slot) const {
  if (!has(slot))
    error("input '", n_.op->in[std::min(static_cast<size_t>(slot), n_.op->in.size() - 1)].name, "' is missing");
  return g_.tensor(n_.in[static_cast<size_t>(slot)]);
}

const Tensor& Infer::out(int slot) const { return g_.tensor(n_.out[static_cast<size_t>(slot)]); }

void Infer::default_compute() {
  bool wide = false, real = false, wide_integer = false, complex = false;
  for (TensorId t : n_.in) {
    if (t == kNone) continue;
    DType d = g_.tensor(t).dtype;
    wide = wide || d == DType::f64 || d == DType::c128;
    real = real || is_real(d) || is_boolean(d);
    complex = complex || is_complex(d);
    wide_integer = wide_integer || d == DType::i64;
  }
  if (complex)
    n_.compute = wide ? DType::c128 : DType::c64;
  else if (wide)
    n_.compute = DType::f64;
  else if (real || n_.in.empty())
    n_.compute = DType::f32;
  else
    n_.compute = wide_integer ? DType::i64 : DType::i32;
}

void Infer::output(int slot, const Dims& dims, DType type, const Tensor* like) {
  if (!wants(slot)) return;
  Tensor& t = g_.tensors_[static_cast<size_t>(n_.out[static_cast<size_t>(slot)])];
  if (!t.dtype_given) t.dtype = type;
  if (t.dims_given) {
    check(t.dims == dims, "output ", n_.op->out[static_cast<size_t>(slot)].name, " ", tsr::describe(t),
          " must have sizes ", dims);
    if (!t.strides_given) t.strides = strides_like(dims, like);
    return;
  }
  // Sizes inferred anew keep the dimension order that the tensor had before.
  Tensor old = t;
  t.dims = dims;
  bool same_rank = old.strides.size() == dims.size() && !old.strides.empty();
  if (t.strides_given) {
    check(same_rank, "output '", t.name, "': strides ", old.strides, " do not fit sizes ", dims);
    if (!(old.dims == dims)) t.strides = strides_like(dims, &old);
    return;
  }
  t.strides = strides_like(dims, same_rank && old.stored ? &old : like);
}

void Infer::check_rank(int slot, int lo, int hi) const {
  if (!has(slot)) return;
  int r = in(slot).rank();
  if (lo == hi)
    check(r == lo, describe(slot), " must have ", lo, " dimensions, it has ", r);
  else
    check(r >= lo && r <= hi, describe(slot), " must have ", lo, " to ", hi, " dimensions, it has ", r);
}

void Infer::check_dims(int slot, const Dims& wanted) const {
  if (has(slot)) check(in(slot).dims == wanted, describe(slot), " must have sizes ", wanted);
}

void Infer::check_type(int slot, std::initializer_list<DType> allowed) const {
  if (!has(slot)) return;
  std::vector<std::string> names;
  for (DType d : allowed) {
    if (in(slot).dtype == d) return;
    names.emplace_back(name(d));
  }
  error(describe(slot), " has type ", in(slot).dtype, "; allowed: ", any_of_text(names));
}

void Infer::check_integer(int slot) const { check_type(slot, {DType::i32, DType::i64}); }

void Infer::check_broadcast(int slot, const Dims& target) const {
  if (!has(slot)) return;
  auto b = broadcast(in(slot).dims, target);
  check(b && *b == target, describe(slot), " does not broadcast to ", target, ": each size must be 1 or equal");
}

void Infer::refuse(std::initializer_list<Part> parts) const {
  fail(Status::bad_parameter, label(), ": ", join_parts(parts));
}

std::string Infer::label() const {
  std::string s = spelling(n_);
  for (TensorId t : n_.out)
    if (t != kNone) return s + " '" + g_.tensor(t).name + "'";
  return s;
}

std::string Infer::input_text(int slot) const {
  size_t i = std::min(static_cast<size_t>(slot), n_.op->in.size() - 1);
  return cat("input ", n_.op->in[i].name, " ", to_text(in(slot)));
}

std::string to_text(const Tensor& t) { return cat("'", t.name, "' ", t.dtype, t.dims); }

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  int rank = std::max(a.size(), b.size());
  Dims out = Dims::filled(rank, 1);
  for (int i = 0; i < rank; ++i) {
    int ia = i - (rank - a.size()), ib = i - (rank - b.size());
    int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    if (da != db && da != 1 && db != 1) return std::nullopt;
    out[i] = da == 1 ? db : da;
  }
  return out;
}

int64_t normalize_axis(int64_t axis, int rank) {
  int64_t a = axis < 0 ? axis + rank : axis;
  require(a >= 0 && a < rank, "axis ", axis, " is not in -", rank, "..", rank - 1);
  return a;
}

Dims strides_like(const Dims& dims, const Tensor* like) {
  if (!like || like->rank() != dims.size()) return packed_strides(dims);
  int order[kMaxRank];
  for (int i = 0; i < dims.size(); ++i) order[i] = i;
  std::stable_sort(order, order + dims.size(), [&](int a, int b) { return like->strides[a] > like->strides[b]; });
  return permuted_strides(dims, order);
}

}  // namespace tsr
