// SPDX-License-Identifier: Apache-2.0
// How graphs of ours are said in cuDNN's terms. Numbers of operations are those that cudnn-frontend sends for the same
// attention.
#include <gtest/gtest.h>
#include <cstring>
#include <stdexcept>

#include "cudnn/from_graph.hpp"
#include "graph/text.hpp"

namespace {

using cudnn::Attr;
using cudnn::Choice;
using cudnn::DataType;
using cudnn::Description;
using cudnn::Ints;
using cudnn::Kind;
using cudnn::Node;
using cudnn::PointwiseMode;
using cudnn::Tensor;
using cudnn::Uids;

Description describe(const std::string& text, int64_t version = 91900) {
  tsr::Graph g = tsr::parse_graph(text);
  g.finalize();
  return cudnn::from_graph(g, version);
}

template <class T>
T get(const Node& n, Attr name) {
  const cudnn::Value* v = n.find(name);
  if (!v) throw std::runtime_error("attribute " + std::to_string(static_cast<int>(name)) + " is not set");
  return std::get<T>(*v);
}

template <class Enum>
bool is(const Node& n, Attr name, Enum value) {
  const cudnn::Value* v = n.find(name);
  return v && std::holds_alternative<Choice>(*v) && std::get<Choice>(*v) == Choice(value);
}

Node part(const Node& n, Attr name) { return get<std::vector<Node>>(n, name).at(0); }

const Tensor& tensor(const Description& d, const Node& n, Attr name) {
  static const Tensor none;
  const Tensor* t = d.graph.find(get<Uids>(n, name).uids.at(0));
  EXPECT_TRUE(t);
  return t ? *t : none;
}

float value(const Tensor& t) {
  float v = 0;
  EXPECT_EQ(t.value.size(), sizeof v);
  std::memcpy(&v, t.value.data(), sizeof v);
  return v;
}

// Operations by the numbers of their descriptors, pointwise ones by "p" and the number of their mode.
std::string words(const std::vector<Node>& nodes) {
  std::string s;
  for (const Node& n : nodes) {
    if (n.kind == Kind::operation_pointwise) {
      auto mode = get<Choice>(part(n, Attr::operation_pointwise_pw_descriptor), Attr::pointwise_mode).value;
      s += "p" + std::to_string(mode) + " ";
    } else {
      s += std::to_string(static_cast<int>(n.kind)) + " ";
    }
  }
  return s;
}

TEST(CudnnFromGraph, Pointwise) {
  Description d =
      describe("x = input bf16[4,8]; b = input f32[8]; y = add x b alpha2=3; z = relu y upper=6; output z bf16");
  ASSERT_EQ(d.peer_reason, "");
  EXPECT_EQ(words(d.graph.operations), "p0 p100 ");
  const Node &add = d.graph.operations[0], &relu = d.graph.operations[1];
  EXPECT_EQ(get<float>(add, Attr::operation_pointwise_alpha2), 3);
  // Three dimensions at least, filled up in front.
  EXPECT_EQ(tensor(d, add, Attr::operation_pointwise_xdesc).dims, (Ints{1, 4, 8}));
  EXPECT_EQ(tensor(d, add, Attr::operation_pointwise_xdesc).strides, (Ints{32, 8, 1}));
  EXPECT_EQ(tensor(d, add, Attr::operation_pointwise_bdesc).dims, (Ints{1, 1, 8}));
  EXPECT_EQ(tensor(d, add, Attr::operation_pointwise_xdesc).type, DataType::bfloat16);
  EXPECT_TRUE(tensor(d, add, Attr::operation_pointwise_ydesc).is_virtual);
  EXPECT_FALSE(tensor(d, relu, Attr::operation_pointwise_ydesc).is_virtual);
  Node mode = part(relu, Attr::operation_pointwise_pw_descriptor);
  EXPECT_TRUE(is(mode, Attr::pointwise_math_prec, DataType::float_));
  EXPECT_EQ(get<double>(mode, Attr::pointwise_relu_upper_clip), 6);
}

TEST(CudnnFromGraph, BackwardModesHaveTheirOwnAttributes) {
  Description d = describe("x = input f32[2,3,4]; dy = input f32[2,3,4]; dx = swish_bwd x dy beta=2; output dx");
  const Node& n = d.graph.operations.at(0);
  EXPECT_TRUE(n.find(Attr::operation_pointwise_dydesc) && n.find(Attr::operation_pointwise_dxdesc));
  EXPECT_FALSE(n.find(Attr::operation_pointwise_bdesc) || n.find(Attr::operation_pointwise_ydesc));
  EXPECT_EQ(get<double>(part(n, Attr::operation_pointwise_pw_descriptor), Attr::pointwise_swish_beta), 2);
}

TEST(CudnnFromGraph, ModesAndNumbers) {
  struct Row {
    const char* text;
    int mode;
  };
  for (Row r : {Row{"sub x b", 9}, Row{"sqrt x", 4}, Row{"reciprocal x", 22}, Row{"atan2 x b", 23}, Row{"gelu x", 104},
                Row{"gelu_tanh x", 107}, Row{"gelu_tanh_bwd x b", 207}, Row{"tanh_bwd x b", 201}, Row{"erf x", 20}}) {
    Description d = describe(std::string("x = input f32[2,3,4]; b = input f32[2,3,4]; y = ") + r.text + "; output y");
    EXPECT_EQ(words(d.graph.operations), "p" + std::to_string(r.mode) + " ") << r.text;
  }
}

TEST(CudnnFromGraph, ScalarsAreByValueAndKnown) {
  Description d = describe("x = input f32[2,3,4]; y = mul x 0.5; output y");
  const Tensor& half = tensor(d, d.graph.operations.at(0), Attr::operation_pointwise_bdesc);
  EXPECT_TRUE(half.by_value);
  EXPECT_EQ(half.dims, (Ints{1, 1, 1}));
  EXPECT_EQ(value(half), 0.5f);
}

TEST(CudnnFromGraph, AxesMoveWithTheDimensions) {
  Description d = describe("x = input f32[3,4]; y = gen_index x axis=1; output y");
  Node mode = part(d.graph.operations.at(0), Attr::operation_pointwise_pw_descriptor);
  EXPECT_EQ(get<Ints>(mode, Attr::pointwise_axis), Ints{2});
  d = describe("x = input f32[2,5]; y = slice x start=0,1; output y", 92200);
  EXPECT_EQ(get<Ints>(d.graph.operations.at(0), Attr::operation_slice_start_indices), (Ints{0, 0, 1}));
  EXPECT_EQ(get<Ints>(d.graph.operations.at(0), Attr::operation_slice_limit_indices), (Ints{1, 2, 5}));
}

TEST(CudnnFromGraph, MatmulAndMeans) {
  Description d = describe("a = input f16[4,8]; b = input f16[8,2]; c = matmul a b; output c f16");
  const Node& n = d.graph.operations.at(0);
  EXPECT_EQ(n.kind, Kind::operation_matmul);
  EXPECT_TRUE(is(part(n, Attr::operation_matmul_desc), Attr::matmul_comp_type, DataType::float_));
  EXPECT_EQ(tensor(d, n, Attr::operation_matmul_bdesc).dims, (Ints{1, 8, 2}));
  // A sum of terms that are divided: there are no engines for means.
  d = describe("x = input f32[2,3,4]; y = reduce_avg x axes=2; output y");
  EXPECT_EQ(words(d.graph.operations), "p1 22 ");
  EXPECT_EQ(value(tensor(d, d.graph.operations[0], Attr::operation_pointwise_bdesc)), 0.25f);
}

TEST(CudnnFromGraph, ReductionsAreChannelsLast) {
  struct Row {
    const char* axes;
    Ints x, strides, y;
  };
  for (const Row& r :
       {Row{"2", {6, 4, 1, 1}, {4, 1, 4, 4}, {6, 1, 1, 1}}, Row{"1,2", {2, 12, 1, 1}, {12, 1, 12, 12}, {2, 1, 1, 1}},
        Row{"0", {1, 12, 2, 1}, {24, 1, 12, 12}, {1, 12, 1, 1}}, Row{"1", {2, 4, 3, 1}, {12, 1, 4, 4}, {2, 4, 1, 1}},
        Row{"0,1,2", {6, 4, 1, 1}, {4, 1, 4, 4}, {1, 1, 1, 1}}}) {
    SCOPED_TRACE(r.axes);
    Description d =
        describe(std::string("x = input f32[2,3,4]; y = reduce_max (mul x 2) axes=") + r.axes + "; output y");
    const Node& n = d.graph.operations.at(1);
    EXPECT_EQ(tensor(d, n, Attr::operation_reduction_xdesc).dims, r.x);
    EXPECT_EQ(tensor(d, n, Attr::operation_reduction_xdesc).strides, r.strides);
    EXPECT_EQ(tensor(d, n, Attr::operation_reduction_ydesc).dims, r.y);
  }
}

TEST(CudnnFromGraph, Convolutions) {
  Description d = describe(
      "x = input f16[2,8,9,9]:nhwc; w = input f16[4,8,3,3]:nhwc; y = conv_fprop x w stride=2,1 pad=1,0; output y f16");
  const Node& n = d.graph.operations.at(0);
  Node conv = part(n, Attr::operation_convolution_forward_conv_desc);
  EXPECT_EQ(get<Ints>(conv, Attr::convolution_filter_strides), (Ints{2, 1}));
  EXPECT_EQ(get<Ints>(conv, Attr::convolution_post_paddings), (Ints{1, 0}));
  EXPECT_EQ(get<Ints>(conv, Attr::convolution_spatial_dims), Ints{2});
  EXPECT_TRUE(is(conv, Attr::convolution_conv_mode, cudnn::ConvMode::cross_correlation));
  EXPECT_EQ(tensor(d, n, Attr::operation_convolution_forward_x).strides, (Ints{648, 1, 72, 8}));
  // One place becomes two, the first of size 1; a bias follows.
  d = describe(
      "x = input f16[2,8,9]; w = input f16[4,8,3]; b = input f16[4,1]; y = add (conv_fprop x w pad=1) b; output y f16");
  const Node& narrow = d.graph.operations.at(0);
  conv = part(narrow, Attr::operation_convolution_forward_conv_desc);
  EXPECT_EQ(get<Ints>(conv, Attr::convolution_pre_paddings), (Ints{0, 1}));
  EXPECT_EQ(tensor(d, narrow, Attr::operation_convolution_forward_w).dims, (Ints{4, 8, 1, 3}));
  EXPECT_EQ(tensor(d, d.graph.operations.at(1), Attr::operation_pointwise_bdesc).dims, (Ints{1, 4, 1, 1}));
  d = describe(
      "dy = input f32[1,2,3,3]; x = input f32[1,4,6,6]; dw = conv_wgrad dy x pad=1,1 stride=2,2 size=3,3; output dw");
  EXPECT_EQ(tensor(d, d.graph.operations.at(0), Attr::operation_convolution_bwd_filter_dw).dims, (Ints{2, 4, 3, 3}));
}

TEST(CudnnFromGraph, Norms) {
  Description d = describe(
      "x = input bf16[3,4,8]; s = input f32[1,1,8]; b = input f32[1,1,8]; y, mean, inv_variance = layer_norm x s b "
      "eps=0.5;"
      "output y bf16; output mean; output inv_variance");
  const Node& n = d.graph.operations.at(0);
  EXPECT_TRUE(is(n, Attr::operation_norm_fwd_mode, cudnn::NormMode::layer));
  EXPECT_TRUE(is(n, Attr::operation_norm_fwd_phase, cudnn::NormPhase::training));
  EXPECT_EQ(tensor(d, n, Attr::operation_norm_fwd_xdesc).dims, (Ints{12, 8, 1, 1}));
  EXPECT_EQ(tensor(d, n, Attr::operation_norm_fwd_scale_desc).dims, (Ints{1, 8, 1, 1}));
  EXPECT_EQ(tensor(d, n, Attr::operation_norm_fwd_mean_desc).dims, (Ints{12, 1, 1, 1}));
  EXPECT_EQ(value(tensor(d, n, Attr::operation_norm_fwd_epsilon_desc)), 0.5f);
  // Batch norm stores its statistics even if nobody wants them.
  d = describe(
      "x = input f32[2,3,4,4]; s = input f32[1,3,1,1]; b = input f32[1,3,1,1]; y = batch_norm x s b; output y");
  EXPECT_TRUE(tensor(d, d.graph.operations.at(0), Attr::operation_norm_fwd_mean_desc).scratch);
  d = describe(
      "x = input f32[2,3,4,4]; m = input f32[1,3,1,1]; v = input f32[1,3,1,1];"
      "y = batch_norm x mean=m variance=v phase=inference; output y");
  EXPECT_EQ(words(d.graph.operations), "p0 p17 p9 p1 ");
  d = describe("x = input f32[4,8]; y = rms_norm x; output y");
  EXPECT_TRUE(is(d.graph.operations.at(0), Attr::operation_norm_fwd_phase, cudnn::NormPhase::inference));
}

TEST(CudnnFromGraph, Pooling) {
  Description d = describe(
      "x = input f16[1,2,6,6]; y, index:i i8 = resample x mode=max_pool window=3,3 stride=2,2 pad=1,1; output y; "
      "output i");
  const Node& n = d.graph.operations.at(0);
  Node window = part(n, Attr::operation_resample_fwd_desc);
  EXPECT_TRUE(is(window, Attr::resample_mode, cudnn::ResampleMode::maxpool));
  EXPECT_TRUE(is(window, Attr::resample_padding_mode, cudnn::PaddingMode::neg_inf_pad));
  EXPECT_EQ(get<std::vector<cudnn::Fraction>>(window, Attr::resample_strides),
            (std::vector<cudnn::Fraction>{{2, 1}, {2, 1}}));
  EXPECT_EQ(tensor(d, n, Attr::operation_resample_fwd_idxdesc).type, DataType::int8);
}

TEST(CudnnFromGraph, Softmax) {
  const char* text = "x = input f32[3,5]; y, stats:s = softmax x; output y; output s";
  EXPECT_EQ(words(describe(text, 91900).graph.operations), "22 p9 p13 22 p15 p0 p6 ");
  EXPECT_EQ(words(describe(text, 92100).graph.operations), "45 ");
  EXPECT_EQ(words(describe("x = input f32[3,5]; y = log_softmax x axes=0; output y", 92100).graph.operations),
            "22 p9 p13 22 p15 p9 ");
}

const std::string kForward = "q = input bf16[2,4,16,8]; k = input bf16[2,4,16,8]; v = input bf16[2,4,16,8];";

std::string forward(const std::string& arguments, const std::string& inputs = "") {
  return kForward + inputs + "o, stats = sdpa_fwd q k v scale=0.125 " + arguments + "; output o; output stats";
}

TEST(CudnnFromGraph, AttentionAsOneOperation) {
  Description d = describe(forward(""), 91900);
  const Node& n = d.graph.operations.at(0);
  ASSERT_EQ(words(d.graph.operations), "41 ");
  EXPECT_EQ(tensor(d, n, Attr::operation_sdpa_fwd_kdesc).dims, (Ints{2, 4, 16, 8}));
  EXPECT_EQ(tensor(d, n, Attr::operation_sdpa_fwd_statsdesc).dims, (Ints{2, 4, 16, 1}));
  EXPECT_EQ(value(tensor(d, n, Attr::operation_sdpa_fwd_scaledesc)), 0.125f);

  d = describe(forward("right=0 left=3 align=bottom_right"), 92700);
  const Node& masked = d.graph.operations.at(0);
  ASSERT_EQ(words(d.graph.operations), "41 ");
  EXPECT_FALSE(masked.find(Attr::operation_sdpa_fwd_statsdesc));  // it travels with the softmax
  EXPECT_TRUE(part(masked, Attr::operation_sdpa_fwd_softmax_desc).find(Attr::operation_softmax_stats_desc));
  Node inner = part(masked, Attr::operation_sdpa_fwd_subgraph);
  EXPECT_EQ(words(get<std::vector<Node>>(inner, Attr::operationgraph_ops)), "44 44 ");
  EXPECT_TRUE(d.graph.find(get<Ints>(masked, Attr::operation_sdpa_fwd_subgraph_output_uid).at(0))->is_virtual);

  d = describe(forward("score_mod={ s -> mul (tanh (div s 30)) 30 }"), 92700);
  inner = part(d.graph.operations.at(0), Attr::operation_sdpa_fwd_subgraph);
  EXPECT_EQ(words(get<std::vector<Node>>(inner, Attr::operationgraph_ops)), "p6 p101 p1 ");

  // A length for queries goes with one for keys; the caller uploads it.
  d = describe(kForward + "n = input i32[2]; o = sdpa_fwd q k v seq_len_kv=n; output o", 92700);
  const Tensor& lengths = tensor(d, d.graph.operations.at(0), Attr::operation_sdpa_fwd_seq_len_qdesc);
  EXPECT_EQ(lengths.value.size(), 2 * sizeof(int32_t));
  EXPECT_FALSE(lengths.by_value);
}

TEST(CudnnFromGraph, AttentionSpelledOut) {
  Description causal = describe(forward("right=0"), 91900);
  EXPECT_EQ(words(causal.graph.operations), "19 p1 p501 p501 p303 p601 22 p9 p13 22 p15 p0 p6 19 ");
  // Keys are transposed by their description.
  EXPECT_EQ(tensor(causal, causal.graph.operations[0], Attr::operation_matmul_bdesc).dims, (Ints{2, 4, 8, 16}));
  EXPECT_EQ(tensor(causal, causal.graph.operations[13], Attr::operation_matmul_adesc).type, DataType::bfloat16);
  struct Row {
    const char *arguments, *inputs;
    size_t old, current;  // operations for 9.19 and 9.27
  };
  const char* lengths = "lq = input i32[2,1,1,1]; lk = input i32[2,1,1,1];";
  const char* stream = "s = input i64[1,1,1,1]; f = input i64[1,1,1,1];";
  for (Row r : {Row{"right=0 align=bottom_right", "", 16, 1}, Row{"right=5", "", 15, 1},
                Row{"right=0 left=4", "", 19, 1}, Row{"right=0 seq_len_q=lq seq_len_kv=lk", lengths, 20, 1},
                Row{"right=0 left=4 align=bottom_right seq_len_q=lq seq_len_kv=lk", lengths, 29, 1},
                Row{"bias=b", "b = input bf16[1,4,16,16];", 11, 1}, Row{"right=0 alibi=true", "", 19, 1},
                Row{"dropout=0.1 dropout_seed=s dropout_offset=f", stream, 13, 7}}) {
    SCOPED_TRACE(r.arguments);
    EXPECT_EQ(describe(forward(r.arguments, r.inputs), 91900).graph.operations.size(), r.old);
    EXPECT_EQ(describe(forward(r.arguments, r.inputs), 92700).graph.operations.size(), r.current);
  }
}

TEST(CudnnFromGraph, AttentionOfEightBits) {
  std::string text =
      "q = input e4m3[2,4,16,16]; k = input e4m3[2,4,16,16]; v = input e4m3[2,4,16,16]; d = input f32[1,1,1,1];"
      "o, stats, amax_s:s, amax_o:a = sdpa_fwd q k v scale=0.25 descale_q=d descale_k=d descale_v=d descale_s=d "
      "scale_s=d "
      "scale_o=d; output o; output stats; output s; output a";
  EXPECT_EQ(words(describe(text, 91900).graph.operations), "19 p1 p1 p1 22 p9 p13 22 p15 p0 p6 22 p1 19 p1 p1 p1 22 ");
  EXPECT_EQ(words(describe(text, 92700).graph.operations), "41 ");
}

TEST(CudnnFromGraph, AttentionGradients) {
  struct Row {
    const char *arguments, *inputs;
    size_t old, current;
    const char *heads = "4", *outputs = "dq, dk, dv";
  };
  const char* lengths = "lq = input i32[2,1,1,1]; lk = input i32[2,1,1,1];";
  const char* stream = "s = input i64[1,1,1,1]; f = input i64[1,1,1,1];";
  for (Row r : {Row{"", "", 18, 18}, Row{"right=0", "", 22, 19}, Row{"right=0", "", 24, 21, "2"},
                Row{"right=0 seq_len_q=lq seq_len_kv=lk", lengths, 28, 25},
                Row{"right=0 dropout=0.1 dropout_seed=s dropout_offset=f", stream, 27, 24},
                Row{"bias=b", "b = input bf16[1,4,16,16];", 19, 19, "4", "dq, dk, dv, dbias"},
                Row{"right=0 left=4 align=bottom_right", "", 29, 20},
                Row{"right=0 sink=z", "z = input f32[1,4,1,1];", 26, 23, "4", "dq, dk, dv, dsink:dsink"}}) {
    SCOPED_TRACE(r.arguments);
    std::string names = r.outputs, heads = r.heads;
    std::string text = "q = input bf16[2,4,16,8]; k = input bf16[2," + heads + ",16,8]; v = input bf16[2," + heads +
                       ",16,8]; o = input bf16[2,4,16,8]; do = input bf16[2,4,16,8]; stats = input f32[2,4,16,1];" +
                       r.inputs + names + " = sdpa_bwd q k v o do stats scale=0.125 " + r.arguments +
                       "; output dq; output dk; output dv";
    for (const char* extra : {"dbias", "dsink"})
      if (names.find(extra) != std::string::npos) text += std::string("; output ") + extra;
    Description old = describe(text, 91900);
    EXPECT_EQ(old.peer_reason, "");
    EXPECT_EQ(old.graph.operations.size(), r.old);
    EXPECT_EQ(describe(text, 92700).graph.operations.size(), r.current);
    size_t scratch = 0;
    for (const Tensor& t : old.graph.tensors) scratch += t.scratch;
    EXPECT_EQ(scratch, names.find("dbias") == std::string::npos ? 2u : 1u);
  }
}

// What nothing writes may be described twice.
TEST(CudnnFromGraph, TwoDescriptionsOfTheSameMemory) {
  Description d = describe("a = input f32[3,3]; y = matmul (transpose a perm=1,0) a; output y", 91900);
  ASSERT_EQ(d.peer_reason, "");
  int again = 0;
  for (const Tensor& t : d.graph.tensors) again += t.same_as.has_value();
  EXPECT_EQ(again, 1);
}

TEST(CudnnFromGraph, ReasonsInsteadOfDescriptions) {
  EXPECT_EQ(describe("x = input f32[1,6,2,2]; y = lrn x; output y").peer_reason, "cuDNN's graph interface has no lrn");
  EXPECT_EQ(describe("x = input f32[2,3,4]; y = slice x start=0,0,1; output y", 91900).peer_reason,
            "slice needs cuDNN 9.22");
  EXPECT_EQ(describe("x = input f32[2,0,4]; y = relu x; output y").peer_reason,
            "'x' is empty; cuDNN's tensors have elements");
  EXPECT_EQ(
      describe("x = input f32[3,3]; a = relu x; y = matmul (transpose a perm=1,0) a; output y", 91900).peer_reason,
      "'a' would need two descriptions, and cuDNN knows one for each tensor");
}

}  // namespace
