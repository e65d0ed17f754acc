// SPDX-License-Identifier: Apache-2.0
// Which composites become one operation, and which near misses stay as they are. Values are compared by the case files.
#include "graph/passes/recognise.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/op.hpp"
#include "graph/passes/graph_view.hpp"
#include "graph/text.hpp"
#include "harness/cases.hpp"

namespace tsr {
namespace {

std::shared_ptr<const Graph> recognised(const std::string& text) {
  return recognise(std::make_shared<const Graph>(parse_graph(text)));
}

// Names of the operations, in order.
std::string operations(const Graph& g) {
  std::string s;
  for (NodeId n = 0; n < g.node_count(); ++n) s += (n ? " " : "") + spelling(g.node(n));
  return s;
}

const std::string kInputs =
    "q = input bf16[2,4,6,8]; kt = input bf16[2,2,8,6]:[96,48,1,8]; v = input bf16[2,2,6,8]; a = scalar f32[1,1,1,1]; "
    "b = input bf16[1,4,6,6]; k = input f32[1,4,1,1]; seed = input i64[1,1,1,1]; ";
const std::string kScores = "s0 = matmul q kt; s = mul s0 a; ";
const std::string kSoftmax = "m = reduce_max s axes=3; d = sub s m; e = exp d; l = reduce_add e axes=3; p = div e l; ";

TEST(Recognise, SpelledAttentionBecomesOneNode) {
  auto g = recognised(kInputs + kScores + kSoftmax + "o = matmul p v; output o");
  EXPECT_EQ(operations(*g), "sdpa_fwd");
  const auto& options = attrs<tessera::SdpaOptions>(g->node(0));
  ASSERT_TRUE(options.score_mod);
  EXPECT_EQ(operations(options.score_mod->graph), "mul");
  // k^T is read the other way round; nothing else about it changes.
  Graph source = parse_graph(kInputs + "z = neg a; output z");
  const Tensor &before = source.tensor(source.find("kt")), &after = g->tensor(g->find("kt"));
  EXPECT_EQ(after.uid, before.uid);
  EXPECT_EQ(after.dims, (Dims{2, 2, 6, 8}));
  EXPECT_EQ(after.strides, (Dims{96, 48, 8, 1}));
}

TEST(Recognise, StatisticsBecomeOutputs) {
  auto g = recognised(kInputs + kScores + kSoftmax +
                      "x = log l; st = add m x; o = matmul p v; output o; output st; output m; output l");
  EXPECT_EQ(operations(*g), "sdpa_fwd");
  for (std::string name : {"o", "st", "m", "l"}) EXPECT_TRUE(g->tensor(g->find(name)).stored) << name;
}

TEST(Recognise, DropoutMasksAndSink) {
  EXPECT_EQ(operations(*recognised(
                kInputs + kScores +
                "x = band_mask (add s b) -inf; p, stats:st = softmax x sink=k; r f32[2,4,6,6] = rng seed seed p=0.75; "
                "p2 = mul p r; p3 = mul p2 a; o = matmul p3 v; output o; output st")),
            "sdpa_fwd");
  EXPECT_EQ(operations(*recognised(kInputs + "w = input f32[2,4,6,6]; " + kScores +
                                   "p = softmax s; p2 = mul p a; p3 = mul p2 w; o = matmul p3 v; output o")),
            "sdpa_fwd");
}

// A mask below the diagonal, with a fill of any origin and spelled in both ways, is the operation's own; what is left
// of the work on the scores does not name it. Other masks stay.
TEST(Recognise, CausalMasksBecomeAnOption) {
  const std::string fill = "f = scalar f32[1,1,1,1]; ";
  const std::string spelled = "i = gen_index s axis=2; j = gen_index s axis=3; w = cmp_ge i j; x = select s f w; ";
  struct Row {
    std::string masks, left;
    bool causal;
  };
  for (const Row& r : {Row{fill + "x = band_mask s f; ", "mul", true}, Row{"x = band_mask s -inf; ", "mul", true},
                       Row{fill + spelled, "mul", true},
                       Row{fill + "i = gen_index s axis=2; j = gen_index s axis=3; n = cmp_lt i j; y = select f s n; "
                                  "w = cmp_ge i j; x = select y f w; ",
                           "mul gen_index gen_index cmp_lt select", true},
                       Row{"x = band_mask s -5; ", "mul band_mask", false},
                       Row{fill + "x = band_mask s f compare=cmp_gt; ", "mul band_mask", false},
                       Row{fill + "i = gen_index s axis=2; j = gen_index s axis=3; w = cmp_ge j i; x = select s f w; ",
                           "mul gen_index gen_index cmp_ge select", false}}) {
    auto g = recognised(kInputs + kScores + r.masks + "p = softmax x; o = matmul p v; output o");
    ASSERT_EQ(operations(*g), "sdpa_fwd") << r.masks;
    const auto& options = attrs<tessera::SdpaOptions>(g->node(0));
    EXPECT_EQ(options.right == 0, r.causal) << r.masks;
    EXPECT_EQ(operations(options.score_mod->graph), r.left) << r.masks;
  }
}

TEST(Recognise, KeysFromElsewhereAreTurned) {
  std::string rest = "s = matmul q turned; p = softmax s; o = matmul p v; output o";
  EXPECT_EQ(operations(*recognised(kInputs + "n = input bf16[2,2,6,8]; turned = transpose n perm=0,1,3,2; " + rest)),
            "sdpa_fwd");
  EXPECT_EQ(operations(*recognised(kInputs + "turned = relu kt; " + rest)), "relu transpose sdpa_fwd");
}

TEST(Recognise, NearMissesOfAttentionStay) {
  const std::string head = kInputs + kScores;
  const std::vector<std::string> misses = {
      kSoftmax + "o = matmul p v; output o; output s",             // stored scores
      kSoftmax + "o = matmul p v; z = neg e; output o; output z",  // another reader of an intermediate
      "p = softmax s axes=2; o = matmul p v; output o",            // another axis
      "p = softmax s axes=2,3; o = matmul p v; output o",          // two axes
      "p = log_softmax s; o = matmul p v; output o",               // not a softmax
      "p = softmax s; p2 = mul p a; o = matmul p2 v; output o",    // a factor without dropout
      "m = reduce_max s axes=3; d = sub s m; e = exp d alpha1=2; l = reduce_add e axes=3; p = div e l; o = matmul p v; "
      "output o",
      "m = reduce_max s0 axes=3; d = sub s m; e = exp d; l = reduce_add e axes=3; p = div e l; o = matmul p v; output "
      "o",
      "p e4m3 = softmax s; o = matmul p v; output o",  // probabilities of 8 bits
  };
  for (const std::string& text : misses) {
    auto source = std::make_shared<const Graph>(parse_graph(head + text));
    EXPECT_EQ(recognise(source), source) << text;
  }
}

TEST(Recognise, LengthsNeedTheirMask) {
  std::string lengths = "n = input i32[2,1,1,1]; s = matmul q kt m_override=n n_override=n; ";
  std::string mask =
      "r = gen_index s axis=2; c = gen_index s axis=3; x = select s -inf (logical_and (cmp_lt r n) (cmp_lt c n)); ";
  EXPECT_EQ(operations(*recognised(kInputs + lengths + mask +
                                   "p = softmax x; o = matmul p v m_override=n k_override=n; output o")),
            "sdpa_fwd");
  auto source = std::make_shared<const Graph>(
      parse_graph(kInputs + lengths + "p = softmax s; o = matmul p v m_override=n k_override=n; output o"));
  EXPECT_EQ(recognise(source), source);
}

const std::string kX = "e = scalar f32; x = input bf16[4,8]; g = input f32[1,8]; h = input f32[1,8]; ";

TEST(Recognise, SpelledNorms) {
  std::string layer =
      "m = reduce_avg x axes=1; d = sub x m; v = reduce_avg (mul d d) axes=1; i = rsqrt (add v 1e-5); n = mul d i; ";
  EXPECT_EQ(operations(*recognised(kX + layer + "y = add (mul n g) h; output y")), "layer_norm");
  EXPECT_EQ(operations(*recognised(kX + layer + "y = add (mul n g) h; output y; output m; output i")), "layer_norm");
  EXPECT_EQ(operations(*recognised(kX + layer + "output n")), "layer_norm");
  std::string rms = "v = reduce_avg (mul x x) axes=1; i = rsqrt (add v e); n = mul i x; ";
  EXPECT_EQ(operations(*recognised(kX + rms + "y = mul n g; output y; output i")), "rms_norm");
  EXPECT_EQ(operations(*recognised(kX + rms + "y = relu (mul n g); output y bf16")), "rms_norm relu");
}

TEST(Recognise, NearMissesOfNormsStay) {
  const std::vector<std::string> misses = {
      "m = reduce_avg x axes=1; d = sub x m; v = reduce_avg (mul d d) axes=1; i = rsqrt (add v 1e-5); n = mul d i; "
      "output n; output d",
      "v = reduce_add (mul x x) axes=1; i = rsqrt (add v 1e-5); n = mul x i; output n",
      "v = reduce_avg (mul x x) axes=1; i = rsqrt (add v 1e-5); n = mul g i; output n",
      "v = reduce_avg (mul x g) axes=1; i = rsqrt (add v 1e-5); n = mul x i; output n",
  };
  for (const std::string& text : misses) {
    auto source = std::make_shared<const Graph>(parse_graph(kX + text));
    EXPECT_EQ(recognise(source), source) << text;
  }
}

// The graph with sequences of 9 steps instead of 12, where sizes follow from those of the inputs.
std::shared_ptr<const Graph> with_other_sizes(const Graph& g) {
  std::vector<Graph::Shape> shapes;
  for (TensorId t : g.inputs()) {
    Dims dims = g.tensor(t).dims;
    std::replace(dims.begin(), dims.end(), int64_t{12}, int64_t{9});
    if (!(dims == g.tensor(t).dims)) shapes.push_back({t, dims, {}});
  }
  return std::make_shared<const Graph>(g.with_shapes(shapes));
}

void expect_the_same_with_other_sizes(const Case& c) {
  for (std::string_view fixed : {"rng", "paged_load"})
    if (c.text.find(fixed) != std::string::npos) return;
  EXPECT_EQ(operations(*recognise(with_other_sizes(parse_graph(c.text)))), operations(*recognised(c.text)))
      << c.file << ":" << c.line;
}

// Graphs as front ends send them: every forward attention of 16 bits and more becomes one node.
TEST(Recognise, RecordedForwardAttention) {
  int found = 0;
  for (const Case& c : read_cases(TESSERA_GOLDEN "/../cases/frontend.txt")) {
    Graph g = parse_graph(c.text);
    int products = 0, softmaxes = 0, narrow = 0;
    for (NodeId n = 0; n < g.node_count(); ++n) {
      std::string name = spelling(g.node(n));
      products += name == "matmul";
      softmaxes += name == "softmax" || name == "reduce_max";
      narrow += name == "block_scale_dequantize";
    }
    if (products != 2 || softmaxes != 1 || narrow) continue;
    ++found;
    EXPECT_EQ(operations(*recognised(c.text)), "sdpa_fwd") << c.file << ":" << c.line;
    expect_the_same_with_other_sizes(c);
  }
  EXPECT_GE(found, 30);
}

// The same for gradients: five products become one node. Ragged ones stay spelled out: they
// store the gradients of all heads before they are summed.
TEST(Recognise, RecordedBackwardAttention) {
  int found = 0;
  for (const Case& c : read_cases(TESSERA_GOLDEN "/../cases/frontend.txt")) {
    Graph g = parse_graph(c.text);
    int products = 0, exponentials = 0, dequantised = 0;
    for (NodeId n = 0; n < g.node_count(); ++n) {
      std::string name = spelling(g.node(n));
      products += name == "matmul";
      exponentials += name == "exp";
      dequantised += name == "block_scale_dequantize";
    }
    bool ragged = c.text.find("ragged=") != std::string::npos;
    if (products != 5 || exponentials == 0 || dequantised || ragged) continue;
    ++found;
    std::string names = " " + operations(*recognised(c.text)) + " ";
    EXPECT_NE(names.find(" sdpa_bwd "), std::string::npos) << c.file << ":" << c.line << names;
    EXPECT_EQ(names.find(" matmul "), std::string::npos) << c.file << ":" << c.line << names;
    expect_the_same_with_other_sizes(c);
  }
  EXPECT_GE(found, 20);
}

const std::string kBackward =
    "q = input bf16[2,2,6,8]; kt = input bf16[2,2,8,5]:[80,40,1,8]; vt = input bf16[2,2,8,5]:[80,40,1,8]; "
    "o = input bf16[2,2,6,8]; do = input bf16[2,2,6,8]; st = input f32[2,2,6,1]; delta = reduce_add (mul do o) axes=3; "
    "s = matmul q kt; e = exp (sub s st); pt = transpose e perm=0,1,3,2; dv = matmul pt do; dp = matmul do vt; ";

TEST(Recognise, GradientsWithAGivenMask) {
  auto g = recognised(
      "q = input bf16[2,2,6,8]; kt = input bf16[2,2,8,5]:[80,40,1,8]; vt = input bf16[2,2,8,5]:[80,40,1,8]; "
      "o = input bf16[2,2,6,8]; do = input bf16[2,2,6,8]; st = input f32[2,2,6,1]; r = input bf16[2,2,6,5]; "
      "f = scalar f32[1,1,1,1]; delta = reduce_add (mul do o) axes=3; s = matmul q kt; e = exp (sub s st); "
      "pt = transpose (mul (mul e r) f) perm=0,1,3,2; dv = matmul pt do; dp = mul (matmul do vt) r; "
      "ds = mul (mul (sub dp delta) e) f; dst = transpose ds perm=0,1,3,2; dk = matmul dst q; "
      "k = transpose kt perm=0,1,3,2; dq = matmul ds k; output dq; output dk; output dv");
  ASSERT_EQ(operations(*g), "mul reduce_add sdpa_bwd");
  const Node& n = g->node(2);
  EXPECT_EQ(g->tensor(n.in[input_slot(*n.op, "dropout_mask")]).name, "r");
  EXPECT_EQ(g->tensor(n.in[input_slot(*n.op, "dropout_scale")]).name, "f");
}

TEST(Recognise, NearMissesOfGradientsStay) {
  std::string good =
      kBackward +
      "ds = mul (sub dp delta) e; dst = transpose ds perm=0,1,3,2; dk = matmul dst q; k = transpose kt perm=0,1,3,2; "
      "dq = matmul ds k; output dq; output dk; output dv";
  EXPECT_EQ(operations(*recognised(good)), "mul reduce_add sdpa_bwd");
  // A sum of the scores' gradient is that of a bias of its sizes, wherever that was added.
  EXPECT_EQ(operations(*recognised(good + "; z = reduce_add ds axes=0; output z")), "mul reduce_add sdpa_bwd");
  for (std::string extra : {"; output e", "; output ds", "; z = neg s; output z"}) {
    auto source = std::make_shared<const Graph>(parse_graph(good + extra));
    EXPECT_EQ(recognise(source), source) << extra;
  }
}

}  // namespace
}  // namespace tsr
