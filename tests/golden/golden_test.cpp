// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "engines/reference/reference.hpp"
#include "golden.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "harness/npz.hpp"

namespace tsr {

std::string GoldenCase::declare(const std::vector<std::string>& names) const {
  std::string s;
  for (const auto& [name, dims] : in)
    if (names.empty() || std::find(names.begin(), names.end(), name) != names.end())
      s += name + " = input f64" + to_string(dims) + "; ";
  return s;
}

namespace {

constexpr auto kGroups = {golden_basic, golden_softmax, golden_attention, golden_norm, golden_conv, golden_recurrent};

double largest(const NpyArray& a) {
  double m = 0;
  for (double v : a.values)
    if (std::isfinite(v)) m = std::max(m, std::fabs(v));
  return m;
}

// f64 against f64: differences are those of summation order, scaled by the largest value of the array.
void compare(const GoldenCase& c, const std::string& name, const Tensor& t, const std::byte* data,
             const NpyArray& want) {
  double tolerance = 1e-9 * std::max(1.0, largest(want));
  Dims index = Dims::filled(t.rank(), 0);
  for (int64_t i = 0; i < t.numel(); ++i, next_index(index, t.dims)) {
    double got = load<double>(t.dtype, data, t.offset(index)), w = want.values[static_cast<size_t>(i)];
    bool same = got == w || (std::isnan(got) && std::isnan(w)) || std::fabs(got - w) <= tolerance;
    ASSERT_TRUE(same) << c.id << ": " << name << to_string(index) << " is " << got << ", PyTorch says " << w;
  }
}

// Counts the cases that there was something to compare in.
void run(const nlohmann::json& row, const Npz& data, bool by_gradient, int& count) {
  GoldenCase c{row.at("id"), row.at("op"), row.at("attrs"), {}, {}};
  for (auto& [name, array] : row.at("in").items()) c.in[name] = data.at(array.get<std::string>()).dims;
  for (auto& [name, array] : row.at("out").items()) c.out[name] = data.at(array.get<std::string>()).dims;
  std::optional<std::string> text;
  for (auto group : kGroups)
    if (!text) text = group(c);
  ASSERT_TRUE(text) << c.id << ": no graph for golden operation " << c.op;
  if (by_gradient) text = golden_gradient(c, *text);
  if (!text) return;
  ++count;
  SCOPED_TRACE(c.id + ": " + *text);
  Graph g = parse_graph(*text);
  GraphBuffers buffers(g, {});
  for (TensorId t : g.inputs()) {
    if (!row.at("in").contains(g.tensor(t).name)) continue;
    const NpyArray& a = data.at(row.at("in").at(g.tensor(t).name).get<std::string>());
    ASSERT_EQ(a.values.size(), static_cast<size_t>(g.tensor(t).numel())) << g.tensor(t).name;
    for (size_t i = 0; i < a.values.size(); ++i)
      store(g.tensor(t).dtype, buffers.buffer(t).data(), static_cast<int64_t>(i), a.values[i]);
  }
  ref::evaluate_graph<double>(g, buffers.table().data());
  for (auto& [name, array] : row.at("out").items()) {
    TensorId t = g.find(name);
    if (by_gradient && (t == kNone || !g.tensor(t).stored)) continue;
    ASSERT_NE(t, kNone) << "the graph has no output " << name;
    const NpyArray& want = data.at(array.get<std::string>());
    ASSERT_EQ(g.tensor(t).numel(), static_cast<int64_t>(want.values.size())) << name;
    compare(c, name, g.tensor(t), buffers.buffer(t).data(), want);
  }
}

int run_all(bool by_gradient) {
  Npz data = read_npz(TESSERA_GOLDEN "/data.npz");
  std::ifstream index(TESSERA_GOLDEN "/index.jsonl");
  std::string line;
  int count = 0;
  while (std::getline(index, line)) run(nlohmann::json::parse(line), data, by_gradient, count);
  return count;
}

TEST(Golden, EveryCaseOfTheIndex) { EXPECT_EQ(run_all(false), 364); }

TEST(Golden, EveryGradientByThePass) { EXPECT_EQ(run_all(true), 202); }

}  // namespace
}  // namespace tsr
