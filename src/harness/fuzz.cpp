// SPDX-License-Identifier: Apache-2.0
#include "harness/fuzz.hpp"

#include <algorithm>
#include <unordered_map>

#include "graph/ragged.hpp"
#include "graph/text.hpp"
#include "harness/fuzz_kinds.hpp"

namespace tsr {
namespace {

// Grows a graph by trying operations on random tensors; what the graph refuses is dropped.
class Generator {
 public:
  explicit Generator(uint64_t seed) : draw_(seed) {}

  Graph run() {
    rank_ = pick(1, 4);
    for (int i = 0; i < rank_; ++i) base_.push_back(pick_of<int64_t>({1, 2, 3, 4, 5, 7, 8, 13, 16}));
    for (int i = 0, n = pick(1, 3); i < n; ++i) input();
    for (int i = 0, n = pick(1, 12); i < n; ++i) grow();
    outputs();
    g_.finalize();
    if (chance(15)) pack();
    return std::move(g_);
  }

 private:
  int pick(int lo, int hi) { return static_cast<int>(draw_.pick(lo, hi)); }
  bool chance(int percent) { return draw_.chance(percent); }
  template <class T>
  T pick_of(std::initializer_list<T> v) {
    return draw_.of(v);
  }

  TensorId input(bool integer = false) {
    Tensor t;
    t.name = "x" + std::to_string(count_++);
    t.dtype = integer ? DType::i32
                      : pick_of({DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16, DType::f64, DType::e4m3,
                                 DType::i8});
    for (int64_t d : base_) t.dims.push_back(chance(20) ? 1 : d);
    t.strides = random_strides(t.dims);
    t.stored = t.dtype_given = t.dims_given = t.strides_given = true;
    return g_.add_tensor(t);
  }

  // Row-major, another order of dimensions, gaps between rows, or a repeated dimension.
  Dims random_strides(const Dims& dims) {
    int order[kMaxRank];
    for (int i = 0; i < dims.size(); ++i) order[i] = i;
    if (chance(30)) std::shuffle(order, order + dims.size(), draw_.engine());
    Dims s = permuted_strides(dims, order);
    if (chance(15))
      for (int64_t& v : s) v *= 2;
    if (chance(5) && dims.size() > 1) s[pick(0, dims.size() - 1)] = 0;
    return s;
  }

  TensorId any() {
    return pick(0, 2) ? g_.tensor_count() - 1 - pick(0, std::min(g_.tensor_count() - 1, 3))
                      : pick(0, g_.tensor_count() - 1);
  }
  TensorId any_input() {
    auto ids = g_.inputs();
    return ids[static_cast<size_t>(pick(0, static_cast<int>(ids.size()) - 1))];
  }
  const std::string& name(TensorId t) { return g_.tensor(t).name; }

  void grow() {
    // Discontinuous functions only see inputs: elsewhere a rounding difference may flip them.
    static constexpr const char* kUnary[] = {"relu",      "tanh", "sigmoid", "gelu",     "swish", "softplus", "elu",
                                             "gelu_tanh", "abs",  "neg",     "identity", "erf",   "sin",      "cos"};
    static constexpr const char* kBinary[] = {"add", "sub", "mul", "min", "max", "add_square"};
    static constexpr const char* kBackward[] = {"tanh_bwd",  "sigmoid_bwd",  "gelu_bwd",
                                                "swish_bwd", "softplus_bwd", "gelu_tanh_bwd"};
    static constexpr const char* kReduce[] = {"add", "max", "min", "avg", "amax", "norm1", "norm2"};
    static constexpr const char* kCompare[] = {"cmp_eq", "cmp_gt", "cmp_le", "cmp_neq"};
    auto one = [&](auto& list) { return std::string(list[pick(0, static_cast<int>(std::size(list)) - 1)]); };
    TensorId a = any(), b = any();
    int rank = g_.tensor(a).rank();
    std::string axis = std::to_string(pick(0, std::max(0, rank - 1)));
    switch (pick(0, 24)) {
      case 0:
      case 1:
      case 2:
        return statement(one(kUnary) + " " + name(a));
      case 3:
      case 4:
      case 5:
        return statement(one(kBinary) + " " + name(a) + " " + name(b));
      case 6:
        return statement(one(kBackward) + " " + name(a) + " " + name(b));
      case 7:
        return statement("div " + name(a) + " (add (abs " + name(b) + ") 1)");
      case 8:
        return statement("reduce_" + one(kReduce) + " " + name(a) + " axes=" + axis);
      case 9:
        return statement("select " + name(a) + " " + name(b) + " (" + one(kCompare) + " " + name(any_input()) + " " +
                         name(any_input()) + ")");
      case 10:
        return statement((chance(50) ? "softmax " : "log_softmax ") + name(a) + " axes=" + axis);
      case 11:
        return statement((chance(50) ? "layer_norm " : "rms_norm ") + name(a) + " axes=" + axis + " eps=0.01");
      case 12:
        return permute(a);
      case 13:
        return statement("reshape " + name(a) + " size=" + std::to_string(g_.tensor(a).numel()) + " mode=logical");
      case 14:
        return cut(a);
      case 15:
        return statement("concat " + name(a) + " " + name(b) + " axis=" + axis);
      case 16:
        return statement("matmul " + name(a) + " " + name(b));
      case 17:
      case 18:
        return product(a);
      case 19:
        return convolution(a);
      case 20:
        return pooling(a);
      case 21:
        return statement("sdpa_fwd " + name(a) + " " + name(b) + " " + name(b) + (chance(50) ? " right=0" : ""));
      case 22:
        return statement("group_norm " + name(a) + " eps=0.01 groups=" + std::to_string(pick(2, 4)));
      case 23:
        return scaled(a);
      default:
        return statement("mul " + name(a) + " " + print_number(pick(-8, 8) / 4.0));
    }
  }

  void permute(TensorId a) {
    std::vector<int> order;
    for (int i = 0; i < g_.tensor(a).rank(); ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), draw_.engine());
    std::string perm;
    for (int i : order) perm += (perm.empty() ? "" : ",") + std::to_string(i);
    statement("transpose " + name(a) + " perm=" + perm);
  }

  // A new input for an operation that wants one of matching sizes; its name.
  std::string weight(const Dims& dims) {
    return weight(dims, pick_of({DType::f32, DType::f32, DType::f16, DType::bf16}));
  }

  std::string weight(const Dims& dims, DType type) {
    Tensor t;
    t.name = "w" + std::to_string(count_++);
    t.dtype = type;
    t.dims = dims;
    t.strides = random_strides(dims);
    t.stored = t.dtype_given = t.dims_given = t.strides_given = true;
    t.frozen = chance(20);
    g_.add_tensor(t);
    return t.name;
  }

  void product(TensorId a) {
    Dims d = g_.tensor(a).dims;
    if (d.size() < 2) return;
    int64_t inner = d[d.size() - 1], columns = pick_of<int64_t>({1, 3, 8, 17});
    for (int i = 0; i < d.size() - 2; ++i) d[i] = chance(50) ? 1 : d[i];
    d[d.size() - 2] = inner, d[d.size() - 1] = columns;
    statement("matmul " + name(a) + " " + weight(d));
  }

  void scaled(TensorId a) {
    Dims d = g_.tensor(a).dims;
    int axis = pick(0, d.size() - 1), block = pick_of({2, 4, 8});
    std::string lengths = std::to_string(block);
    for (int i = axis + 1; i < d.size(); ++i) lengths += ",1";
    d[axis] = (d[axis] + block - 1) / block;
    DType type = pick_of({DType::f32, DType::e4m3, DType::e5m3, DType::e8m0});
    statement("block_scale_dequantize " + name(a) + " " + weight(d, type) + " block=" + lengths);
  }

  void convolution(TensorId a) {
    Dims d = g_.tensor(a).dims;
    if (d.size() < 3) return;
    bool depthwise = chance(30);
    std::string pad, stride;
    Dims w = {depthwise ? d[1] : pick_of<int64_t>({1, 4, 9}), depthwise ? 1 : d[1]};
    for (int i = 2; i < d.size(); ++i) {
      w.push_back(pick(1, 3));
      pad += (i > 2 ? "," : "") + std::to_string(w[i] / 2);
      stride += (i > 2 ? "," : "") + std::to_string(pick(1, 2));
    }
    statement("conv_fprop " + name(a) + " " + weight(w) + " pad=" + pad + " stride=" + stride);
  }

  void pooling(TensorId a) {
    int spatial = g_.tensor(a).rank() - 2;
    std::string window, stride;
    for (int i = 0; i < spatial; ++i) {
      window += (i ? "," : "") + std::to_string(pick(1, 3));
      stride += (i ? "," : "") + std::to_string(pick(1, 2));
    }
    // Means of integers that lie half way between two may round either way: engines add up in different orders.
    std::string mode = pick_of<std::string>({"max_pool", "avg_pool_include", "avg_pool_exclude"});
    if (!is_real(g_.tensor(a).dtype)) mode = "max_pool";
    statement("resample " + name(a) + " mode=" + mode + " window=" + window + " stride=" + stride);
  }

  void cut(TensorId a) {
    std::string start, limit, stride;
    for (int64_t d : g_.tensor(a).dims) {
      int64_t first = d > 1 ? pick(0, static_cast<int>(d) - 1) : 0;
      const char* comma = start.empty() ? "" : ",";
      start += comma + std::to_string(first);
      limit += comma + std::to_string(d);
      stride += comma + std::to_string(pick(1, 2));
    }
    statement("slice " + name(a) + " start=" + start + " limit=" + limit + " stride=" + stride);
  }

  // Adds "NAME = expression" to a copy of the graph through the text form; keeps the copy when it is legal.
  void statement(const std::string& expression) {
    std::string text =
        print_graph(g_) + "y" + std::to_string(count_) + " = " + expression + "\noutput y" + std::to_string(count_);
    try {
      Graph next = parse_graph(text);
      if (next.tensor(next.tensor_count() - 1).numel() > 4096) return;
      next.edit(next.find("y" + std::to_string(count_))).stored = false;
      g_ = std::move(next);
      ++count_;
    } catch (const Error&) {
    }
  }

  void outputs() {
    bool any_stored = false;
    for (TensorId t = 0; t < g_.tensor_count(); ++t) {
      if (g_.producer(t) == kNone) continue;
      bool last = g_.consumers(t).empty();
      if (!last && !chance(10)) continue;
      g_.mark_output(t);
      any_stored = true;
      if (chance(30) && g_.tensor(t).dtype == DType::f32)
        g_.edit(t).dtype = pick_of({DType::f16, DType::bf16}), g_.edit(t).dtype_given = last;
      if (!last) g_.edit(t).dtype = DType::f32;
    }
    if (!any_stored) g_ = parse_graph("x = input f32[3]; y = relu x; output y");
  }

  // Makes packed sequences of some inputs and outputs, unless an operation refuses that.
  void pack() {
    Graph packed = g_;
    for (TensorId t = 0; t < g_.tensor_count(); ++t) {
      const Tensor& x = g_.tensor(t);
      if (!x.stored || x.rank() < 3 || chance(40)) continue;
      Tensor offsets = pack(packed.edit(t), g_.producer(t) != kNone);
      packed.edit(t).ragged = packed.add_tensor(std::move(offsets));
    }
    try {
      packed.finalize();
      g_ = std::move(packed);
    } catch (const Error&) {
    }
  }

  // The offsets of sequences of random lengths. Those of results must not overlap: their steps lie furthest apart.
  Tensor pack(Tensor& t, bool result) {
    if (result || chance(50)) {
      int order[kMaxRank] = {0, 2, 1};
      for (int i = 3; i < t.rank(); ++i) order[i] = i;
      t.strides = permuted_strides(t.dims, order);
      t.strides_given = t.dims_given = true;
    }
    int axis = ragged_axis(t);
    int64_t step = std::max<int64_t>(1, t.strides[axis]), at = pick(0, 2);
    t.ragged_multiplier = chance(50) ? step : 1;
    Tensor offsets;
    offsets.name = "offsets" + std::to_string(count_++);
    offsets.dtype = pick_of({DType::i32, DType::i64});
    offsets.dims = {t.dims[0] + 1}, offsets.strides = {1};
    offsets.dtype_given = offsets.dims_given = offsets.strides_given = true;
    offsets.constant.resize(static_cast<size_t>(byte_size(offsets.dtype, offsets.numel())));
    for (int64_t i = 0; i <= t.dims[0]; ++i, at += pick(0, static_cast<int>(t.dims[axis])))
      store(offsets.dtype, offsets.constant.data(), i, at * step / t.ragged_multiplier);
    return offsets;
  }

  fuzz::Draw draw_;
  Graph g_;
  Dims base_;
  int rank_ = 1, count_ = 0;
};

// The part of `g` that computes `wanted`, with the tensors in `cuts` turned into inputs.
Graph extract(const Graph& g, const std::vector<TensorId>& wanted, const std::vector<TensorId>& cuts) {
  auto has = [](const std::vector<TensorId>& v, TensorId t) { return std::find(v.begin(), v.end(), t) != v.end(); };
  std::vector<bool> needed(static_cast<size_t>(g.tensor_count()), false);
  for (TensorId t : wanted) needed[static_cast<size_t>(t)] = true;
  std::vector<NodeId> nodes;
  for (NodeId n = g.node_count() - 1; n >= 0; --n) {
    const Node& node = g.node(n);
    bool used = std::any_of(node.out.begin(), node.out.end(),
                            [&](TensorId t) { return t != kNone && needed[static_cast<size_t>(t)] && !has(cuts, t); });
    if (!used) continue;
    nodes.push_back(n);
    for (TensorId t : node_reads(g, node)) needed[static_cast<size_t>(t)] = true;
    for (TensorId t : node.out)
      if (t != kNone) needed[static_cast<size_t>(t)] = true;
  }
  std::reverse(nodes.begin(), nodes.end());
  Graph out;
  std::unordered_map<TensorId, TensorId> map;
  std::function<TensorId(TensorId)> copy = [&](TensorId t) {
    if (t == kNone) return kNone;
    auto it = map.find(t);
    if (it != map.end()) return it->second;
    Tensor x = g.tensor(t);
    x.uid = 0;
    bool produced =
        g.producer(t) != kNone && std::find(nodes.begin(), nodes.end(), g.producer(t)) != nodes.end() && !has(cuts, t);
    if (!produced && !x.is_constant()) x.stored = x.dtype_given = x.dims_given = x.strides_given = true;
    if (produced) x.stored = false;
    x.ragged = copy(x.ragged);
    return map[t] = out.add_tensor(x);
  };
  for (NodeId n : nodes) {
    Node node = g.node(n);
    for (auto* list : {&node.in, &node.captures, &node.out})
      for (TensorId& t : *list) t = copy(t);
    out.add_node(std::move(node));
  }
  for (TensorId t : wanted) out.mark_output(map.at(t));
  out.finalize();
  return out;
}

}  // namespace

Case random_case(uint64_t seed) {
  Case c;
  c.text = print_graph(Generator(seed).run());
  return c;
}

Graph shrink(const Graph& g, const std::function<bool(const Graph&)>& fails) {
  Graph best = g;
  auto attempt = [&](const std::vector<TensorId>& wanted, const std::vector<TensorId>& cuts) {
    try {
      Graph smaller = extract(best, wanted, cuts);
      if (smaller.node_count() >= best.node_count() && smaller.outputs().size() >= best.outputs().size()) return false;
      if (!fails(smaller)) return false;
      best = std::move(smaller);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (TensorId t = 0; t < best.tensor_count() && !progress; ++t)
      if (best.producer(t) != kNone)
        progress = attempt({t}, {}) || (!best.tensor(t).stored && attempt(best.outputs(), {t}));
  }
  return best;
}

void run_fuzz(int64_t count, uint64_t seed, const MakeCase& make, const RunnerOptions& o, Tally& tally,
              const std::function<bool(int64_t done)>& go_on) {
  RunnerOptions quiet = o;
  for (int64_t i = 0; i < count && go_on(i); ++i) {
    uint64_t s = seed + static_cast<uint64_t>(i);
    Case c;
    std::string first;
    quiet.on_failure = [&](const std::string& why) { first = first.empty() ? why : first; };
    Tally mine;
    try {
      c = make(s);
    } catch (const std::exception& e) {
      ++mine.failed;
      first = cat("the generator raised: ", e.what());
    }
    c.file = "fuzz";
    c.line = static_cast<int>(s);
    c.data.seed = s;
    if (mine.failed == 0) run_case(c, quiet, mine);
    tally.passed += mine.passed;
    tally.failed += mine.failed;
    tally.skipped += mine.skipped;
    for (auto& [why, n] : mine.skip_reasons) tally.skip_reasons[why] += n;
    for (auto& [name, n] : mine.by_engine) tally.by_engine[name] += n;
    for (auto& [name, n] : mine.by_op) tally.by_op[name] += n;
    if (mine.failed == 0) continue;
    if (!c.text.empty()) {
      auto run = [&](const Graph& g) {
        c.text = print_graph(g);
        Tally t;
        run_case(c, quiet, t);
        return t.failed > 0;
      };
      try {
        Graph small = shrink(parse_graph(c.text), run);
        first.clear();
        run(small);
      } catch (const Error&) {  // the text is no graph: that is the failure
      }
    }
    if (o.on_failure)
      o.on_failure(cat("seed ", s, " (repeat with the same options and --fuzz 1 --seed ", s, "), shrunk: ", first));
  }
}

}  // namespace tsr
