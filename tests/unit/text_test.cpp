// SPDX-License-Identifier: Apache-2.0
// The text form: round trips, positions and suggestions in messages, and that no text makes the parser do anything but
// return a graph or raise an Error.
#include "graph/text.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "expect_error.hpp"
#include "graph/op.hpp"
#include "harness/cases.hpp"

namespace tsr {
namespace {

// Printing is a fixed point, on one line and on many, and keeps the fingerprint.
void expect_round_trip(const std::string& text) {
  SCOPED_TRACE(text);
  Graph g = parse_graph(text);
  std::string printed = print_graph(g);
  Graph many = parse_graph(printed), one = parse_graph(print_graph(g, {.one_line = true}));
  EXPECT_EQ(print_graph(many), printed);
  EXPECT_EQ(print_graph(one), printed);
  EXPECT_EQ(many.fingerprint(), g.fingerprint());
  EXPECT_EQ(load_graph(save_graph(g)).fingerprint(), g.fingerprint());
}

void expect_refused(const std::string& text, std::initializer_list<std::string> words) {
  SCOPED_TRACE(text);
  expect_error([&] { parse_graph(text); }, Status::bad_parameter, words);
}

TEST(Text, RoundTrips) {
  for (const char* text : {
           "x = input f32[2,3]; y = relu x; output y",
           "o = input i32[3]; x = input f32[2,4,5] ragged=o*4; y = relu x; output y; with y ragged=o",
           "o = input i32[3]; p = add o o; x = input f32[2,4,5]; y = relu x; output y; with x ragged=p*4",
           "x = input f32[2,3]; y = relu (add (mul x 2) x); output y bf16",
           "x@100 = input bf16[2,3]; y@7 = relu x; output y",
           "x@1 = input f32[2]; y@2 = relu (neg (exp x)); z@3 = neg y; output y; output z",
           "x@2 = input bf16[2,3]; b = input f32[3]; y = add x b; output y",
           "x = input f32[2,3,4,5]:nhwc; y = relu x; output y",
           "x = input f32[2,3,4,5]:[1000,1,50,7]; y = relu x; output y f32[2,3,4,5]:[300,100,10,2]",
           "x = input f32[2,3,4,5]; y = relu x; output y f32[2,3,4,5]:nhwc",
           "x = input f32[2,3] align=4; y = relu x; with y align=64; output y",
           "c = const f32[2,2] 1,-2.5,inf,nan; x = input f32[2,2]; y = add x c; output y",
           "c = const i64[2] 9007199254740993,-1; x = input i64[2]; y = add x c; output y",
           "c = const c64[1] 1,-2; x = input c64[3]; y = mul x c; output y",
           "c = const bf16 0.1; x = input bf16[3]; y = mul x c; output y",
           "s = scalar f32; x = input f32[3]; y = mul x s; output y",
           "x = input f32[0,3]; y = relu x; output y",
           "x = input f32[]; y = relu x; output y",
           "x = input f32[2,3]; y bf16 = relu x; z = neg y; output z",
           "x = input f32[2,3]; y = relu x compute=f64 upper=6 slope=1e-3; output y",
           "x = input f32[2,3]; y = reduce_add x axes=0,-1; output y",
           "x = input f32[2,3]; y f32[2,1] = reduce_add x; output y",
           "x = input i8x4[2,8,3,3]; y = identity x; output y",
           "input_ = input f32[2]; output_ = relu input_; output output_",
           "x = input f32[3]; a = relu x; b = neg x; output a; output b f16",
           "x = input f32[3]; y = add x -1; z = sub y -inf; output z",
       })
    expect_round_trip(text);
}

TEST(Text, OneLineManyLinesAndComments) {
  Graph a = parse_graph("x = input f32[2]; y = relu (neg x); output y");
  Graph b = parse_graph("# a graph\n\n  x = input f32[2]   # the input\n;;y = relu (\n neg x\n)\n\r\noutput y;");
  EXPECT_EQ(print_graph(a), print_graph(b)) << "an operand in brackets may be spread over lines";
}

TEST(Text, BracketsHoldOperationsOrATensor) {
  Graph a = parse_graph("x = input f32[2]; y = relu(x); output y"),
        b = parse_graph("x = input f32[2]; y = relu x; output y");
  EXPECT_EQ(print_graph(a), print_graph(b));
  expect_refused("x = input f32[2]; y = relu (z); output y", {"unknown operation 'z'"});
  expect_refused("x = input f32[2]; y = add(x, x); output y", {"separated by spaces"});
}

TEST(Text, TypesOfAWholeGraph) {
  expect_round_trip("types io=bf16 intermediate=f16 compute=f64; x = input [2,3]; y = relu (add x x); output y");
  Graph g = parse_graph(
      "types io=bf16 intermediate=f16; x = input [2,3]; a = add x x; b f32 = neg a; i = argmax b; output b; output i; "
      "y = relu a; output y; output a f32");
  auto type = [&](const char* name) { return g.tensor(g.find(name)).dtype; };
  EXPECT_EQ(type("x"), DType::bf16);
  EXPECT_EQ(type("a"), DType::f32);
  EXPECT_EQ(type("b"), DType::f32);
  EXPECT_EQ(type("i"), DType::i64);
  EXPECT_EQ(type("y"), DType::bf16);
}

TEST(Text, UniqueIds) {
  Graph g = parse_graph("x@5 = input f32[2]; a = neg x; y@1 = relu a; output y");
  EXPECT_EQ(g.tensor(g.find("x")).uid, 5);
  EXPECT_EQ(g.tensor(g.find("y")).uid, 1);
  EXPECT_EQ(g.find_uid(5), g.find("x"));
  Graph h = parse_graph("x@1 = input f32[2]; y@2 = relu (neg x); output y");
  EXPECT_EQ(h.tensor(h.find("y")).uid, 2) << "inner results make way for ids that are given";
  expect_refused("x@5 = input f32[2]; y@5 = relu x; output y", {"share the unique id 5"});
}

TEST(Text, LiteralsTakeTheTypeOfTheirNeighbour) {
  Graph g =
      parse_graph("x = input i64[2]; d = input f64[2]; y = add x 9007199254740993; z = add d 0.1; output y; output z");
  for (int i = 0; i < g.tensor_count(); ++i) {
    const Tensor& t = g.tensor(i);
    if (!t.is_constant()) continue;
    if (t.dtype == DType::i64)
      EXPECT_EQ(load<int64_t>(t.dtype, t.constant.data(), 0), 9007199254740993);
    else
      EXPECT_EQ(load<double>(t.dtype, t.constant.data(), 0), 0.1);
  }
}

TEST(Text, NamesOfOtherLibrariesLeadToOperations) {
  for (const ElsewhereName& e : names_elsewhere()) {
    EXPECT_TRUE(find_spelling(e.here)) << e.name;
    EXPECT_FALSE(find_spelling(e.name)) << e.name;
  }
  for (const ElsewhereName& e : dtypes_elsewhere()) {
    EXPECT_TRUE(find_dtype(e.here)) << e.name;
    EXPECT_FALSE(find_dtype(e.name)) << e.name;
  }
  expect_refused("x = input float32[2]; y = relu x; output y", {"unknown data type 'float32'; here it is 'f32'"});
  expect_refused("x = input f32[2]; y = relu x compute=half; output y", {"'half'; here it is 'f16'"});
  expect_refused("x = input f32[2]; y = softmax x dim=0; output y", {"option of softmax 'dim'; here it is 'axes'"});
  expect_refused("x = input f32[2]; y = argmax x dim=0; output y", {"option of argmax 'dim'; here it is 'axis'"});
  expect_refused("x = input f32[2]; y = maximum x x; output y", {"'maximum'; here it is 'max'"});
}

TEST(Text, OptionsAreGivenOnce) {
  expect_refused("x = input f32[2]; y = relu x slope=1 slope=2; output y",
                 {"column 38", "option 'slope' is given twice"});
  expect_refused("x = input f32[2]; y = relu x compute=f32 compute=f64; output y", {"'compute' is given twice"});
  expect_refused(
      "x = input f32[2]; y = reduce_by x axes=0 combine={ a b -> add a b } combine={ a b -> mul a b }; output y",
      {"'combine' is given twice"});
}

TEST(Text, ConstantsFitTheirType) {
  expect_refused("x = const i8 300; y = neg x; output y", {"column 14", "300 does not fit in i8"});
  expect_refused("x = const u4[2] 1,-1; y = identity x; output y", {"column 19", "-1 does not fit in u4"});
  expect_refused("x = const bool 2; y = logical_not x; output y", {"2 does not fit in bool"});
}

TEST(Text, ErrorsPointAtTheirCause) {
  try {
    parse_graph("x = input f32[2,3]\ny = relo x\noutput y");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "line 2, column 5: unknown operation 'relo'; did you mean 'relu'?\n  y = relo x\n      ^");
  }
  expect_refused("x = input f32[2,3]; y = reduce x; output y",
                 {"unknown operation 'reduce'; it has a name for each mode, such as 'reduce_add'"});
  expect_refused("x = input f32[2,3]; y = permute x; output y",
                 {"unknown operation 'permute'; here it is 'transpose', with the option perm"});
  expect_refused("x = input f32[2,3]; y = relu xx; output y",
                 {"line 1, column 30", "unknown tensor 'xx'", "did you mean 'x'?"});
  expect_refused("x = input f33[2]; y = relu x; output y",
                 {"column 11", "unknown data type 'f33'; did you mean 'f32'?"});
  expect_refused("x = input f32[2]; y = relu x uper=3; output y",
                 {"column 30", "unknown option of relu 'uper'; did you mean 'upper'?"});
  expect_refused("x = input f32[2,3,4,5]:nhcw; y = relu x; output y", {"'nhcw' is no layout of 4 dimensions", "nhwc"});
  expect_refused("x = input f32[2] aline=4; y = relu x; output y",
                 {"unknown tensor option 'aline'; did you mean 'align'?"});
  expect_refused("x = input f32[2]; y = relu x; output y f33", {"unknown data type 'f33'"});
  expect_refused("x = input f32[2]\nb = input f32[3]\ny = add x b\noutput y", {"line 3", "do not broadcast"});
}

TEST(Text, Refusals) {
  expect_refused("", {"no output"});
  expect_refused("x = input f32[2]; y = relu x", {"no output: mark at least one tensor\n"});
  expect_refused("x = const f32[3] 1,2; y = relu x; output y", {"column 21", "a constant of sizes [3] has 3 values"});
  expect_refused("x = input f32[2]; output x", {"'x' is an input"});
  expect_refused("x = input f32[2]; y = relu x; output y; output y", {"an output already"});
  expect_refused("x = input f32[2]; x = relu x; output x", {"two tensors are named 'x'"});
  expect_refused("x = input f32; y = relu x; output y", {"an input needs sizes"});
  expect_refused("x = input f32[2,-3]; y = relu x; output y", {"negative"});
  expect_refused("x = input f32[99999999999999999999]; y = relu x; output y", {"does not fit in 64 bits"});
  expect_refused("x = input f32[4294967296,4294967296]; y = relu x; output y", {"2^63"});
  expect_refused("x = input f32[1,1,1,1,1,1,1,1,1]; y = relu x; output y", {"at most 8 dimensions, 9 given"});
  expect_refused("x = input f32[2.5]; y = relu x; output y", {"expected a whole number"});
  expect_refused("x = input f32[2; y = relu x; output y", {"expected ']'"});
  expect_refused("x = input f32[2]; y = relu (neg x; output y", {"expected ')'"});
  expect_refused("x = input f32[2]; y = relu x x; output y", {"takes 1 input"});
  expect_refused("x = input f32[2]; y = relu; output y", {"is missing"});
  expect_refused("x = input f32[2]; y = relu x upper=high; output y", {"expected a number"});
  expect_refused("x = input f32[2]; y = relu x y; output y", {"unknown tensor 'y'"});
  expect_refused("x = input f32[2]; y, z = relu x; output y", {"relu has 1 outputs"});
  expect_refused("x = input f32[2]; y = relu x $; output y", {"column 30", "no meaning"});
  expect_refused("x = input f32[2]; y = relu x; output y f32[3]", {"was given sizes [3]"});
  expect_refused("x = input f32[2] 5; y = relu x; output y", {"expected ';'"});
  expect_refused("c = const f32[2] 1; y = relu c; output y", {"expected ','"});
  expect_refused("c = const f32[0] 1; y = relu c; output y", {"1 to 65536"});
  expect_refused("x = input f32[2]; y =", {"end of the text"});
  expect_refused("= input f32[2]", {"expected a statement"});
}

TEST(Text, LongLinesShowTheirNeighbourhoodOnly) {
  std::string text = "x = input f32[2]; ";
  for (int i = 0; i < 200; ++i) text += "a" + std::to_string(i) + " = relu x; ";
  try {
    parse_graph(text + "y = relo x; output y");
    FAIL();
  } catch (const Error& e) {
    EXPECT_LT(std::string(e.what()).size(), 400u);
    EXPECT_NE(std::string(e.what()).find("y = relo x"), std::string::npos);
  }
}

std::string nested(int depth) {
  std::string text = "x = input f32[2]; y = relu ";
  for (int i = 0; i < depth; ++i) text += "(relu ";
  text += "x";
  for (int i = 0; i < depth; ++i) text += ")";
  return text + "; output y";
}

TEST(Text, DeepNesting) {
  expect_round_trip(nested(90));
  expect_refused(nested(101), {"nest deeper than 100"});
  expect_refused(nested(100000), {"nest deeper than 100"});
}

TEST(Text, Subgraphs) {
  const std::string head =
      "q = input f32[1,2,3,4]; k = input f32[1,2,5,4]; v = input f32[1,2,5,4]; w = input f32[1,1,3,5]; ";
  auto attention = [&](const std::string& body) {
    return head + "o = sdpa_fwd q k v score_mod={ " + body + " }; output o";
  };
  expect_round_trip(attention("s -> neg s"));
  expect_round_trip(attention("s -> add s w"));
  expect_round_trip(attention("s -> t = tanh (div s 3); u = mul t w; add u t"));
  expect_round_trip(attention("s ->\n t = tanh s\n mul t 2\n"));
  Graph g = parse_graph(attention("s -> add (mul s w) w"));
  EXPECT_EQ(g.node(0).captures, std::vector<TensorId>{g.find("w")}) << "a captured tensor is captured once";
  expect_refused(attention("s -> neg r"), {"unknown tensor 'r'"});
  expect_refused(attention("s t -> neg s"), {"receives 1 values"});
  expect_refused(attention("-> neg w"), {"receives 1 values, 0 named"});
  expect_refused(attention("s -> s"), {"must compute its result"});
  expect_refused(attention("s neg s"), {"receives 1 values"});
  expect_refused(attention("s -> relo s"), {"relo"});
  expect_refused(head + "o = sdpa_fwd q k v score_mod={ s -> neg s; output o", {"never closed"});
  expect_refused(head + "o = sdpa_fwd q k v score_mad={ s -> neg s }; output o", {"no sub-graph named 'score_mad'"});
  expect_refused(head + "o = relu q alpha={ s -> neg s }; output o", {"takes no sub-graph"});
}

TEST(Text, AltersAreNoticed) {
  std::string text = save_graph(parse_graph("x = input f32[2]; y = relu x; output y"));
  auto refuse = [](const std::string& s, const std::string& word) {
    expect_error([&] { load_graph(s); }, Status::corrupt_data, {word});
  };
  refuse(text.substr(0, text.size() - 3), "truncated or altered");
  std::string changed = text;
  changed[text.find("relu")] = 'R';
  refuse(changed, "truncated or altered");
  std::string other = text;
  other.replace(text.find(' ') + 1, 1, "9");
  refuse(other, "version 9");
  refuse("", "header");
  refuse("tessera-plan" + text.substr(text.find(' ')), "header");
}

TEST(Text, Numbers) {
  EXPECT_EQ(print_number(0.1), "0.1");
  EXPECT_EQ(print_number(-INFINITY), "-inf");
  EXPECT_EQ(print_number(NAN), "nan");
  EXPECT_EQ(std::stod(print_number(1.0 / 3)), 1.0 / 3);
}

// Whatever is done to the text of a good graph, the parser returns a graph that round-trips, or raises an Error.
TEST(Text, MutatedGraphsNeverDoHarm) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_CASES))
    for (const Case& c : read_cases(entry.path().string())) texts.push_back(c.text);
  ASSERT_FALSE(texts.empty());
  const std::string pieces[] = {"(",        ")",
                                "[",        "]",
                                "{",        "}",
                                "->",       "=",
                                ",",        ";",
                                ":",        "@",
                                "*",        "/",
                                "-",        "#",
                                "\n",       "\"",
                                "1e999",    "-1",
                                "0",        "9223372036854775807",
                                "nan",      "inf",
                                "f32",      "i8x4",
                                "input",    "output",
                                "with",     "const",
                                "scalar",   "x",
                                "y",        "relu",
                                "matmul",   "reduce_add",
                                "axes=",    "compute=",
                                "ragged=",  "align=0",
                                "reorder=", "nhwc",
                                "\x80",     std::string(1, '\0')};
  std::mt19937 random(20240607);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  int64_t tried = 0, parsed = 0;
  for (; std::chrono::steady_clock::now() < end; ++tried) {
    std::string t = texts[below(texts.size())];
    for (size_t k = 1 + below(4); k > 0; --k) {
      size_t at = below(t.size() + 1);
      switch (below(5)) {
        case 0:
          t.insert(at, pieces[below(std::size(pieces))]);
          break;
        case 1:
          t.erase(at, 1 + below(8));
          break;
        case 2:
          if (at < t.size()) t[at] = static_cast<char>(below(256));
          break;
        case 3:
          t.insert(at, t.substr(below(t.size() + 1), below(20)));
          break;
        default: {
          const std::string& other = texts[below(texts.size())];
          t = t.substr(0, at) + other.substr(below(other.size() + 1));
        }
      }
    }
    try {
      Graph g = parse_graph(t);
      ++parsed;
      std::string printed = print_graph(g);
      ASSERT_EQ(print_graph(parse_graph(printed)), printed) << t;
    } catch (const Error& e) {
      ASSERT_NE(static_cast<int>(e.status()), static_cast<int>(Status::internal_error)) << t << "\n" << e.what();
    } catch (const std::exception& e) {
      FAIL() << t << "\n" << e.what();
    }
  }
  EXPECT_GT(parsed, 0);
  EXPECT_GT(tried, 1000);
}

}  // namespace
}  // namespace tsr
