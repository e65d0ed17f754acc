// SPDX-License-Identifier: Apache-2.0
// The gradient of every operation against finite differences of the oracle, in f64.
#include "graph/gradient.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engines/reference/reference.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"

namespace tsr {
namespace {

// A graph that computes `l`, of any sizes; the gradient is checked for these inputs.
struct Case {
  std::string text;
  std::vector<std::string> inputs;
  std::map<std::string, std::string> data = {};
};

double dot(const Graph& g, const GraphBuffers& b, TensorId x, TensorId y) {
  double sum = 0;
  Dims index = Dims::filled(g.tensor(x).rank(), 0);
  for (int64_t i = 0, n = g.tensor(x).numel(); i < n; ++i, next_index(index, g.tensor(x).dims)) {
    auto value = [&](TensorId t) {
      return load<double>(g.tensor(t).dtype, b.buffer(t).data(), g.tensor(t).offset(index));
    };
    sum += value(x) * value(y);
  }
  return sum;
}

// Central differences of <seed, l> with respect to every element of every input.
void check(const Case& c) {
  SCOPED_TRACE(c.text);
  Graph forward = parse_graph(c.text + "; output l");
  std::string targets, names;
  for (const std::string& x : c.inputs) targets += (targets.empty() ? "d_" : ", d_") + x, names += " " + x;
  std::string text = c.text + "; seed = input f64" + to_string(forward.tensor(forward.find("l")).dims) + "; " +
                     targets + " = grad l" + names + " seed=seed";
  for (const std::string& x : c.inputs) text += "; output d_" + x;
  Graph back = parse_graph(text);
  EXPECT_EQ(parse_graph(print_graph(back)).fingerprint(), back.fingerprint());
  Graph g = parse_graph(text + "; output l");
  GraphBuffers buffers(g, {.by_name = c.data});
  auto run = [&] {
    ref::evaluate_graph<double>(g, buffers.table().data());
    return dot(g, buffers, g.find("l"), g.find("seed"));
  };
  for (const std::string& name : c.inputs) {
    run();
    TensorId x = g.find(name), dx = g.find("d_" + name);
    const Tensor &t = g.tensor(x), &d = g.tensor(dx);
    ASSERT_TRUE(d.dims == t.dims) << d.name << to_string(d.dims);
    std::vector<double> got;
    Dims index = Dims::filled(t.rank(), 0);
    for (int64_t i = 0; i < t.numel(); ++i, next_index(index, t.dims))
      got.push_back(load<double>(d.dtype, buffers.buffer(dx).data(), d.offset(index)));
    index = Dims::filled(t.rank(), 0);
    for (int64_t i = 0; i < t.numel(); ++i, next_index(index, t.dims)) {
      std::byte* data = buffers.buffer(x).data();
      double value = load<double>(t.dtype, data, t.offset(index)), h = 1e-5 * std::max(1.0, std::fabs(value));
      store(t.dtype, data, t.offset(index), value + h);
      double up = run();
      store(t.dtype, data, t.offset(index), value - h);
      double down = run();
      store(t.dtype, data, t.offset(index), value);
      double slope = (up - down) / (2 * h), scale = std::max({1.0, std::fabs(slope), std::fabs(up)});
      ASSERT_LE(std::fabs(slope - got[static_cast<size_t>(i)]), 1e-6 * scale)
          << "d_" << name << to_string(index) << " is " << got[static_cast<size_t>(i)] << ", differences say " << slope;
    }
  }
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> c;
    for (const char* op : {"add", "sub", "mul", "min", "max", "add_square"})
      c.push_back({cat("x = input f64[2,3]; b = input f64[2,3]; l = ", op, " x b alpha1=0.5 alpha2=-2"), {"x", "b"}});
    for (const char* op : {"div", "mod", "floor_mod", "pow", "atan2"})
      c.push_back({cat("x = input f64[2,1,3]; b = input f64[4,1]; l = ", op, " x b alpha2=1.5"),
                   {"x", "b"},
                   {{"x", "positive"}, {"b", "positive"}}});
    for (const char* op : {"sqrt", "rsqrt", "log", "reciprocal"})
      c.push_back({cat("x = input f64[7]; l = ", op, " x alpha1=2"), {"x"}, {{"x", "positive"}}});
    for (const char* op :
         {"abs", "cos", "exp", "neg", "sin", "tan", "erf", "identity", "tanh", "sigmoid", "gelu", "gelu_tanh",
          "softplus beta=2", "swish beta=1.5", "elu alpha=0.7", "relu slope=0.1", "relu lower=-0.2 upper=0.4"}) {
      std::string name = std::string(op).substr(0, std::string(op).find(' ')),
                  options = std::string(op).substr(name.size());
      c.push_back({cat("x = input f64[3,5]; l = ", name, " x alpha1=0.6", options), {"x"}});
    }
    c.push_back(
        {"x = input f64[2,3]; b = input f64[1,3]; t = cmp_gt x b; l = select x b t alpha1=2 alpha2=3", {"x", "b"}});
    // The same tensor in several places; a tensor that the loss does not need; seeds that stay narrow.
    c.push_back({"x = input f64[2,3]; z = input f64[4]; y = mul x x; l = add (mul y x) (exp x)", {"x", "z"}});
    c.push_back({"x = input f64[2,3]; b = input f64[3]; s = reduce_add (add x b); l = mul s s", {"x", "b"}});
    c.push_back({"x = input f64[2,1]; b = input f64[1,3]; l = reduce_avg (add x b)", {"x", "b"}});
    c.push_back({"x = input f64[4,1,3]:[1,9,4]; l = mul x 2", {"x"}});
    for (const char* mode : {"add", "mul", "min", "max", "amax", "avg", "norm1", "norm2", "mul_no_zeros"})
      for (const char* axes : {"", " axes=1", " axes=0,2"})
        c.push_back({cat("x = input f64[2,3,2]; l = reduce_", mode, " x", axes), {"x"}});
    c.push_back({"x = input f64[2,4]; l = reduce_mul x axes=1", {"x"}, {{"x", "values:0,1,2,3,4,5,6,7"}}});
    c.push_back({"x = input f64[4,6]; l f64[2,2] = reduce_add x", {"x"}});
    c.push_back({"x = input f64[4,6]; l f64[4,2] = reduce_avg x", {"x"}});
    c.push_back({"a = input f64[2,3,4]; b = input f64[2,4,5]; l = matmul a b", {"a", "b"}});
    c.push_back({"a = input f64[4,1,2,3]; b = input f64[2,3,3,2]; l = matmul a b", {"a", "b"}});
    c.push_back(
        {"a = input f64[2,3,4]; b = input f64[1,4,5]; m = const i32[2] 2,3; k = const i32[1] 3; "
         "n = const i32[2] 4,1; l = matmul a b m n k padding_value=7",
         {"a", "b"}});
    for (const char* o :
         {"", " mode=scatter token_index=index", " mode=scatter token_index=index token_ks=ks top_k=1"}) {
      bool weight = std::string(o).empty();
      c.push_back(
          {cat("t = input f64[1,5,3]; w = input f64[2,3,4]; offset = const i32[2,1,1] 0,2; ",
               "index = const i32[1,5,1] 3,0,4,1,2; ks = const i32[1,5,1] 0,0,0,0,0; l = moe_matmul t w offset", o),
           weight ? std::vector<std::string>{"t", "w"} : std::vector<std::string>{"t"}});
    }
    c.push_back(
        {"t = input f64[1,4,3]; w = input f64[2,3,2]; offset = const i32[2,1,1] 0,1; index = const i32[1,4,1] "
         "1,0,0,1; ks = const i32[1,4,1] 0,1,0,1; l = moe_matmul t w offset index ks mode=scatter top_k=2",
         {"t"}});
    for (const char* o : {"", " pad=1,2 stride=2,1 dilation=1,2", " stride=3,3 mode=convolution alpha=0.5"})
      c.push_back({cat("x = input f64[2,4,7,6]; w = input f64[4,2,3,2]; l = conv_fprop x w", o), {"x", "w"}});
    c.push_back({"x = input f64[1,2,5]; w = input f64[3,2,3]; c = input f64[1,3,3]; l = conv_fprop x w c beta=2",
                 {"x", "w", "c"}});
    c.push_back({"dy = input f64[2,4,3,3]; w = input f64[4,2,3,2]; l = conv_dgrad dy w stride=2,1 size=8,4 groups=2",
                 {"dy", "w"}});
    c.push_back(
        {"dy = input f64[2,4,3]; x = input f64[2,2,6]; l = conv_wgrad dy x stride=2 size=2 alpha=3", {"dy", "x"}});
    for (const char* o : {"", " activation=silu", " reversed=true"})
      c.push_back({cat("x = input f64[2,3,5]; w = input f64[3,2]; b = input f64[3]; l = causal_conv1d x w b", o),
                   {"x", "w", "b"}});
    c.push_back(
        {"x = input f64[1,2,3,5]; p = input f64[2,3,2]; m = input f64[2,4]; s = input f64[2]; "
         "y, l = b2b_causal_conv1d x p m s",
         {"x", "p", "m", "s"}});
    for (const char* o : {"layer_norm x s b", "layer_norm x s b phase=inference", "rms_norm x s", "rms_norm x bias=b",
                          "layer_norm x s b zero_centered=true eps=0.1", "layer_norm x bias=b"})
      c.push_back({cat("x = input f64[3,2,4]; s = input f64[1,2,4]; b = input f64[2,4]; l = ", o),
                   {"x", std::string(o).find(" s") == std::string::npos ? "b" : "s"}});
    c.push_back({"x = input f64[3,2,4]; s = input f64[3,1,4]; b = input f64[3,1,4]; l = ada_layer_norm x s b",
                 {"x", "s", "b"}});
    for (const char* o : {"batch_norm x s b", "instance_norm x s b", "group_norm x s b groups=2"})
      c.push_back(
          {cat("x = input f64[3,4,2,2]; s = input f64[1,4,1,1]; b = input f64[1,4,1,1]; l = ", o), {"x", "s", "b"}});
    for (const char* v : {"variance", "inv_variance"})
      c.push_back(
          {cat("x = input f64[3,2,2]; s = input f64[1,2,1]; b = input f64[1,2,1]; m = input f64[1,2,1]; v = input "
               "f64[1,2,1]; l = batch_norm x s b mean=m ",
               v, "=v phase=inference"),
           {"x", "s", "b"},
           {{"v", "positive"}}});
    c.push_back(
        {"x = input f64[2,3,4]; s, q = gen_stats x; scale = input f64[1,3,1]; bias = input f64[1,3,1]; "
         "a, b, mean, inv = bn_finalize s q scale bias count=8; l = add (mul x a) (mul b (add mean inv))",
         {"x", "scale", "bias"}});
    c.push_back(
        {"x = input f64[2,3]; scale = input f64[1,3]; bias = input f64[1,3]; m = input f64[1,3]; v = input f64[1,3]; "
         "a, b = bn_finalize scale=scale bias=bias running_mean=m running_var=v phase=inference; l = add (mul x a) b",
         {"x", "scale", "bias", "m", "v"},
         {{"v", "positive"}}});
    c.push_back({"x = input f64[2,6,2]; l = lrn x n=3 alpha=0.5", {"x"}});
    c.push_back({"x = input f64[1,2,4,3]; m = input f64[1,2,4,3]; l = divisive_norm x m n=3 alpha=0.5", {"x", "m"}});
    for (const char* op : {"softmax", "log_softmax"}) {
      c.push_back({cat("x = input f64[2,3,4]; l = ", op, " x axes=1,2"), {"x"}});
      c.push_back({cat("x = input f64[2,3,4]; s = input f64[1,3,1]; y, stats = ", op,
                       " x sink=s stats_log2=true; l = add y stats"),
                   {"x", "s"}});
    }
    c.push_back({"x = input f64[3,4]; y, l = softmax x", {"x"}});
    std::string qkv = "q = input f64[2,4,3,5]; k = input f64[2,2,4,5]; v = input f64[2,2,4,3]; ";
    c.push_back({qkv + "l = sdpa_fwd q k v scale=0.4 right=0 align=bottom_right", {"q", "k", "v"}});
    c.push_back(
        {qkv + "b = input f64[1,4,1,4]; s = input f64[1,4,1,1]; l = sdpa_fwd q k v bias=b sink=s stats_log2=false",
         {"q", "k", "v", "b", "s"}});
    c.push_back(
        {qkv + "sq = const i32[2,1,1,1] 3,1; sk = const i32[2,1,1,1] 2,4; seed0 = const i64 7; off = const i64 1; "
               "l = sdpa_fwd q k v seq_len_q=sq seq_len_kv=sk dropout=0.3 dropout_seed=seed0 dropout_offset=off",
         {"q", "k", "v"}});
    c.push_back({qkv + "b = input f64[1,4,1,1]; l = sdpa_fwd q k v scale=0.4 "
                       "score_mod={ s -> capped = mul (tanh (div s 3)) 3; add capped b }",
                 {"q", "k", "v"}});
    c.push_back({"x = input f64[1,2,3,6]; f = input f64[1,1,3,2]; l = rope x f rope_dim=4 scale=0.5", {"x"}});
    c.push_back({"x = input f64[1,2,3,4]; f = input f64[1]; l = band_mask x f", {"x", "f"}});
    for (const char* o :
         {"mode=max_pool window=3,2 stride=2,2 pad=1,0", "mode=avg_pool_include window=2,2 stride=1,2 pad=1,1",
          "mode=avg_pool_exclude window=3,3 stride=2,2 pad=1,1", "mode=nearest stride=1/2,1/2 window=1,1",
          "mode=bilinear stride=1/2,2/3 size=9,7"})
      c.push_back({cat("x = input f64[1,2,5,5]; l = resample x ", o), {"x"}});
    c.push_back({"t = input f64[2,2,3]; l = affine_grid t size=2,1,3,4", {"t"}});
    c.push_back(
        {"x = input f64[1,2,4,3]; p = input f64[1,3,2,2]; l = grid_sample x p", {"x", "p"}, {{"p", "range:-0.9,0.9"}}});
    c.push_back({"x = input f64[4,5]; l = dropout x p=0.4 seed=3", {"x"}});
    c.push_back({"x = input f64[2,3,4]; l = mul (reshape x size=4,-1) 2", {"x"}});
    c.push_back({"x = input f64[2,3,4]:[12,1,3]; y f64[4,6] = reshape x mode=view; l = exp y", {"x"}});
    c.push_back({"x = input f64[2,3,4]; y f64[2,4,3]:[12,1,4] = reshape x mode=view; l = exp y", {"x"}});
    c.push_back({"x = input f64[2,3,4]; l = reshape x size=6,4 mode=logical", {"x"}});
    c.push_back({"x = input f64[2,3,4]; l = transpose x perm=2,0,1", {"x"}});
    c.push_back({"x = input f64[5,7]; l = slice x start=1,2 limit=4,7 stride=1,2", {"x"}});
    c.push_back({"x = input f64[5,7]; l = slice x start=0,1 limit=5,6 stride=2,3", {"x"}});
    c.push_back({"x = input f64[5]; y = slice x start=2 limit=2; l = concat x y axis=0", {"x"}});
    c.push_back({"a = input f64[2,3]; b = input f64[2,1]; l = concat a b a axis=1", {"a", "b"}});
    c.push_back({"x = input f64[2,6]; s = input f64[2,2]; l = block_scale_dequantize x s block=4", {"x"}});
    std::string rnn = "x = input f64[3,2,2]; h = input f64[2,2,3]; c = input f64[2,2,3]; lengths = const i32[2] 3,2; ";
    c.push_back({rnn + "w = input f64[120]; y, hn, cn = rnn_fwd x w h c lengths mode=lstm hidden=3 bidirectional=true "
                       "bias=none; l = add (reduce_add (exp y)) (reduce_add (mul hn cn))",
                 {"x", "w", "h", "c"}});
    c.push_back({"x = input f64[3,2,2]; w = input f64[63]; l = rnn_fwd x w mode=gru hidden=3 bias=both", {"x", "w"}});
    c.push_back(
        {"x = input f64[4,2,3]; labels = const i32[2,2] 1,2,2,1; n = const i32[2] 2,1; t = const i32[2] 4,3; "
         "l = ctc_loss x labels n t",
         {"x"}});
    c.push_back({"t = input f64[5,3]; i = const i32[2,2] 0,4,7,0; l = exp (gather t i)", {"t"}});
    c.push_back({"t = input f64[2,5,3]; i = const i64[2] 4,1; l = exp (gather t i axis=1)", {"t"}});
    c.push_back({"t = input f64[2,3]; i = const i32[2,2] 0,2,1,1; l = exp (gather t i axis=1 mode=elements)", {"t"}});
    c.push_back(
        {"u = input f64[4,3]; x = input f64[3,3]; i = const i32[4] 0,2,0,5; l = exp (scatter_add u i x)", {"u", "x"}});
    c.push_back(
        {"u = input f64[2,2]; i = const i32[2,2] 0,2,1,1; "
         "l = exp (scatter_add u i axis=1 mode=elements size=3)",
         {"u"}});
    for (const char* axis : {"0", "1"})
      c.push_back({cat("x = input f64[3,5]; l = exp (top_k x k=2 axis=", axis, ")"), {"x"}});
    for (const char* o : {"axis=0", "axis=1 reverse=true", "axis=1 exclusive=true"})
      c.push_back({cat("x = input f64[3,4]; l = exp (cumsum x ", o, ")"), {"x"}});
    c.push_back({"x = input f64[3,5]; t = const i32[3,1] 4,0,-1; l = exp (cross_entropy x t)", {"x"}});
    c.push_back({"x = input f64[3,5]; t = const i64[1,5] 2,0,1,1,7; l = cross_entropy x t axis=0", {"x"}});
    c.push_back({"a = input f64[2,3,4]; b = input f64[4,2]; l = exp (matmul a b)", {"a", "b"}});
    for (const char* mode : {"sum", "mean", "max", "min"})
      c.push_back(
          {cat("offsets = const i32[4] 0,2,2,5; indices = const i32[5] 0,1,3,0,2; node = input f64[4,2]; edge = input "
               "f64[5,3]; own = input f64[3,2]; l = gnn_agg offsets indices node edge own mode=",
               mode),
           {"node", "edge", "own"}});
    return c;
  }();
  return all;
}

TEST(Gradient, FiniteDifferences) {
  for (const Case& c : cases()) check(c);
}

// Every spelling is in the cases above, has no rule and says why, or is flat.
TEST(Gradient, EveryOperation) {
  std::set<std::string> checked;
  for (const Case& c : cases()) {
    Graph g = parse_graph(c.text + "; output l");
    for (NodeId n = 0; n < g.node_count(); ++n) checked.insert(spelling(g.node(n)));
  }
  const std::set<std::string> flat = {"ceil",   "floor",  "cmp_eq",      "cmp_neq",    "cmp_gt",      "cmp_ge",
                                      "cmp_lt", "cmp_le", "logical_and", "logical_or", "logical_not", "gen_index"};
  for (const std::string& name : all_spellings()) {
    const OpSpec& op = *find_spelling(name)->op;
    EXPECT_NE(op.gradient == nullptr, op.no_gradient.empty()) << name << " needs a rule or a reason for having none";
    bool derivative = op.name == "pointwise" && name.size() > 4 && name.substr(name.size() - 4) == "_bwd";
    // An alias is checked under the operation's own name.
    Node n;
    n.op = &op;
    n.attrs = find_spelling(name)->options;
    bool seen = checked.count(name) > 0 || checked.count(spelling(n)) > 0;
    if (op.gradient && !flat.count(name) && !derivative) EXPECT_TRUE(seen) << name << " is not checked";
  }
}

std::string error_of(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Gradient, ErrorsNameOperationAndTensor) {
  auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << text << "\n" << error_of(text);
  };
  expect("x = input f32[4]; y = cmp_gt x 0; l f32 = reduce_add y; dx = grad l x; output dx",
         "'l' depends on 'x' only through cmp_gt 'y', whose result is bool");
  expect("x = input f32[4]; y = floor x; l = reduce_add y; dx = grad l x; output dx",
         "only through floor 'y', which is flat");
  expect("x = input i32[4]; l = reduce_add (mul x 0.5); dx = grad l x; output dx", "'x' i32[4] has no gradient");
  expect("x = input f32[4]; y = exp x; dx = grad y x; output dx", "has 4 elements; give it one, or a seed");
  expect("x = input f32[4]; y = exp x; s = input f32[3]; dx = grad y x seed=s; output dx",
         "the sizes of the loss 'y' f32[4]");
  expect("x = input f32[2,3]; d = input f32[2,3]; y = softmax_bwd x d; l = reduce_add y; dd = grad l d; output dd",
         "softmax_bwd 'y' has no derivative here: it is a gradient already");
  expect("x = input f32[4]; d = input f32[4]; y = relu_bwd x d; l = reduce_add y; dd = grad l d; output dd",
         "second derivatives are not made");
  expect("x = input f32[1,1,2,4]; f = input f32[1,1,2,2]; y = rope x f; l = reduce_add y; df = grad l f; output df",
         "rope 'y' has no derivative with respect to its input freqs 'f' f32[1,1,2,2]: angles count as constants");
  expect("x = input f32[4]; y, s:s = softmax x; output y", "");
  expect("x = input f32[2,4]; y, max:m = softmax x; l = reduce_add m; dx = grad l x; output dx",
         "depends on output max of softmax 'y'");
  expect("x = input f32[4]; l = reduce_add x; dx, dz = grad l x; output dx", "grad names 1 inputs for 2 results");
}

TEST(Gradient, TypesAndOrderFollowTheInput) {
  Graph g = parse_graph(
      "x = input bf16[2,4,5,5]:nhwc; w = input bf16[4,4,3,3]:nhwc; s = input e4m3[1]; y = conv_fprop x w; "
      "l = reduce_add (mul (mul y y) s); dx, dw, ds = grad l x w s; output dx; output dw; output ds; output l");
  EXPECT_EQ(print_type(g.tensor(g.find("dx"))), print_type(g.tensor(g.find("x"))));
  EXPECT_EQ(print_type(g.tensor(g.find("dw"))), print_type(g.tensor(g.find("w"))));
  EXPECT_EQ(g.tensor(g.find("ds")).dtype, DType::f32);
}

TEST(Gradient, ARefusedGradientLeavesTheGraphAsItWas) {
  Graph g = parse_graph(
      "x = input f32[2,4]; s = input f32[1,4]; y = layer_norm x s; z = floor y; l = reduce_add z; output l");
  std::string before = print_graph(g);
  EXPECT_THROW(gradient(g, g.find("l"), {g.find("x")}), Error);
  EXPECT_EQ(print_graph(g), before);
}

TEST(Gradient, OtherSizes) {
  Graph g = parse_graph(
      "x = input f32[4,3]; w = input f32[3,2]; b = input f32[2]; l = reduce_avg (exp (add (matmul x w) b)); "
      "dw, db = grad l w b; output l; output dw; output db");
  Graph other = g.with_shapes({{g.find("x"), {7, 3}, {}}});
  EXPECT_EQ(to_string(other.tensor(other.find("db")).dims), "[2]");
}

}  // namespace
}  // namespace tsr
