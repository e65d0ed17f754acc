// SPDX-License-Identifier: Apache-2.0
// Rows of benchmarks are graphs that can be planned; on a GPU, each product of the suite of choices in several ways.
#include <gtest/gtest.h>
#include <filesystem>

#include "graph/text.hpp"
#include "harness/candidates.hpp"
#include "harness/cases.hpp"
#include "planner/cost.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

std::vector<Case> suite(const std::string& name) { return read_cases(TESSERA_SUITES "/" + name); }

TEST(Suites, EveryRowIsAGraph) {
  for (const auto& file : std::filesystem::recursive_directory_iterator(TESSERA_SUITES))
    if (file.is_regular_file())
      for (const Case& c : read_cases(file.path().string())) EXPECT_NO_THROW(parse_graph(c.text)) << c.text;
}

TEST(Suites, ProductsHaveSeveralCandidates) {
  std::vector<Case> cases = suite("choice/products.txt");
  EXPECT_GE(cases.size(), 300u);
  Device h200 = find_device("h200");
  for (const Case& c : cases) {
    Query query(std::make_shared<const Graph>(parse_graph(c.text)), h200);
    EXPECT_GT(candidates(query).size(), 1u) << c.text;
  }
}

// By the model. What is slower than that is named here, with the reason.
TEST(Suites, ConvolutionsHaveNoCliffs) {
  constexpr double kCliff = 30;  // times the limit
  Device h200 = find_device("h200");
  for (const char* name : {"cuda/conv.txt", "cuda/conv_more.txt", "cuda/conv_nets.txt", "cuda/conv_cliffs.txt"})
    for (const Case& c : suite(name)) {
      Query query(std::make_shared<const Graph>(parse_graph(c.text)), h200);
      double limit =
          region_limits(make_region(*query.graph(), query.index(), query.index().live_nodes()), h200).seconds();
      EXPECT_LT(query.outline({}).seconds, kCliff * limit) << c.text;
    }
}

}  // namespace
}  // namespace tsr
