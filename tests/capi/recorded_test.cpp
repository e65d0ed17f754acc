// SPDX-License-Identifier: Apache-2.0
// Graphs as front ends send them (tests/capi/recorded): their descriptors are made through the C interface, planned by
// its heuristics, executed, and the results compared with the definitions of the same graph in text form.
#include "graph/text.hpp"
#include "harness/cases.hpp"
#include "harness/compare.hpp"
#include "recording.hpp"

namespace {

using client::Failure;

// A graph that our library refuses to run so, and why that is right.
const std::map<std::string, std::string> kRefused = {
    // The text has no words for it; peer_statistics_test.cpp fills it in.
    {"C++ batchnorm training + peer stats [9.27=9.19]", "no pointer for unique id 13, a peer's buffer"},
};

// Tensors of the text form are named by their unique ids: u5.
void run(const client::RecordedGraph& r, const tsr::Case& c, cudnnHandle_t handle) {
  tsr::Graph g = tsr::parse_graph(c.text);
  g.finalize();
  tsr::GraphBuffers actual(g, c.data);
  std::vector<void*> table = actual.table();
  std::vector<client::Place> places;
  for (tsr::TensorId t = 0; t < g.tensor_count(); ++t)
    if (void* data = table[static_cast<size_t>(t)])
      places.push_back({std::stoll(g.tensor(t).name.substr(1)), data, actual.buffer(t).size(), g.tensor(t).by_value});
  client::Recording recording(r.lines, handle);
  client::run_first_plan(recording.graph(), handle, places);
  tsr::Oracle oracle(g, c.data);
  EXPECT_EQ("", tsr::compare(g, oracle, actual));
  EXPECT_EQ("", actual.damage());
}

void run_file(const std::string& name) {
  std::vector<tsr::Case> cases = tsr::read_cases(client::recorded_path(name));
  std::vector<client::RecordedGraph> graphs = client::read_recorded(name);
  ASSERT_FALSE(cases.empty());
  ASSERT_EQ(cases.size(), graphs.size());
  client::Handle handle;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(graphs[i].title);
    ASSERT_EQ(cases[i].line, graphs[i].text_at);
    auto refused = kRefused.find(graphs[i].title);
    try {
      run(graphs[i], cases[i], handle);
      EXPECT_EQ(kRefused.end(), refused) << "this graph was expected to be refused";
    } catch (const Failure& f) {
      bool expected = refused != kRefused.end() && f.text.find(refused->second) != std::string::npos;
      EXPECT_TRUE(expected) << f.status << ": " << f.text;
    }
  }
}

TEST(Recorded, Frontend123) { run_file("frontend_1_23.txt"); }
TEST(Recorded, Frontend132) { run_file("frontend_1_32.txt"); }

}  // namespace
