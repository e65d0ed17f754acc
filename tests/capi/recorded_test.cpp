// SPDX-License-Identifier: Apache-2.0
// Graphs as front ends send them (tests/capi/recorded): their descriptors are made through the C interface, planned by
// its heuristics, executed, and the results compared with the definitions of the same graph in text form.
#include <cstring>
#include <optional>
#include <set>

#include "graph/text.hpp"
#include "harness/cases.hpp"
#include "harness/compare.hpp"
#include "harness/runner.hpp"
#include "recording.hpp"

namespace {

using client::Failure;
using client::RecordedGraph;

// A graph that our library refuses to run so, and why that is right.
const std::map<std::string, std::string> kRefused = {
    // The text has no words for their buffers; peer_statistics_test.cpp fills them in.
    {"C++ batchnorm training + peer stats [9.27=9.19]", "peer"},
};

// What programs do with a graph; the results are the same.
struct Way {
  const char* name;
  int64_t alignment = 16;           // that descriptors promise, and pointers have
  bool in_place = false;            // outputs in the memory of inputs
  int64_t planned = 1, actual = 1;  // the planned batch in relation to that at execution
  bool all_sizes = false;           // those of virtual tensors are told, too
  bool in_child_graph = false;
};
const std::vector<Way> kWays = {
    {.name = "as recorded"},
    {.name = "aligned to elements", .alignment = 1},
    {.name = "in place", .in_place = true},
    {.name = "planned for a smaller batch", .actual = 2},
    {.name = "planned for a smaller batch, all sizes told", .actual = 2, .all_sizes = true},
    {.name = "planned for a larger batch", .planned = 2},
    {.name = "planned for a larger batch, all sizes told", .planned = 2, .all_sizes = true},
    {.name = "in a child graph", .in_child_graph = true},
};

// One graph in text form, what it must give, and the memory of one execution.
class Run {
 public:
  Run(const RecordedGraph& r, const tsr::Case& c, cudnnHandle_t handle)
      : recorded_(r), data_(c.data), handle_(handle), g_(tsr::parse_graph(c.text)) {
    g_.finalize();
    oracle_.emplace(g_, data_);
  }

  // False where the way does not apply to the graph.
  bool operator()(const Way& way) {
    if (way.in_child_graph && !client::CudaGraph::exist()) return false;
    tsr::Overlays shared;
    if (way.in_place) shared = tsr::find_overlays(g_, 0);
    if (way.in_place && shared.empty()) return false;
    client::Manner how{.in_child_graph = way.in_child_graph};
    std::unique_ptr<client::Piece> plan = plan_for(way, how);
    if (!plan) return false;
    for (tsr::TensorId t = 0; t < g_.tensor_count(); ++t) g_.edit(t).alignment = way.alignment;
    g_.finalize();
    tsr::GraphBuffers actual(g_, data_);
    std::vector<void*> table = actual.table();
    for (auto [out, in] : shared) table[static_cast<size_t>(out)] = table[static_cast<size_t>(in)];
    std::vector<client::Place> places;  // tensors of the text form are named by their unique ids: u5
    for (tsr::TensorId t = 0; t < g_.tensor_count(); ++t)
      if (void* data = table[static_cast<size_t>(t)])
        places.push_back(
            {std::stoll(g_.tensor(t).name.substr(1)), data, actual.buffer(t).size(), g_.tensor(t).by_value});
    client::run_plan(*plan, handle_, places, how);
    for (auto [out, in] : shared)
      std::memcpy(actual.buffer(out).data(), actual.buffer(in).data(), actual.buffer(out).size());
    EXPECT_EQ("", tsr::compare(g_, *oracle_, actual));
    EXPECT_EQ("", actual.damage());
    return true;
  }

 private:
  // Null where no batch is found.
  std::unique_ptr<client::Piece> plan_for(const Way& way, client::Manner& how) const {
    if (way.planned == way.actual) {
      client::Recording recording(client::aligned_to(recorded_.lines, way.alignment), handle_);
      return client::first_plan(recording.graph(), handle_);
    }
    // The first sizes that several tensors have are tried as the batch: a graph with others there may not be legal.
    how.sizes = client::sizes_of(recorded_.lines, way.all_sizes);
    std::set<int64_t> first;
    for (const client::Resized& r : how.sizes)
      if (r.dims.front() > 1 && r.dims.front() % way.actual == 0) first.insert(r.dims.front());
    for (int64_t batch : first) try {
        client::Recording recording(client::with_batch(recorded_.lines, batch, batch * way.planned / way.actual),
                                    handle_);
        return client::first_plan(recording.graph(), handle_);
      } catch (const Failure&) {
      }
    return nullptr;
  }

  const RecordedGraph& recorded_;
  const tsr::DataSpec& data_;
  cudnnHandle_t handle_;
  tsr::Graph g_;
  std::optional<tsr::Oracle> oracle_;
};

void run_file(const std::string& name) {
  std::vector<tsr::Case> cases = tsr::read_cases(client::recorded_path(name));
  std::vector<RecordedGraph> graphs = client::read_recorded(name);
  ASSERT_FALSE(cases.empty());
  ASSERT_EQ(cases.size(), graphs.size());
  client::Handle handle;
  std::vector<Way> ways = client::choices(kWays, {kWays[0]});
  std::map<std::string, size_t> applied;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(graphs[i].title);
    ASSERT_EQ(cases[i].line, graphs[i].text_at);
    auto refused = kRefused.find(graphs[i].title);
    Run run(graphs[i], cases[i], handle);
    for (const Way& way : ways) {
      SCOPED_TRACE(way.name);
      try {
        if (!run(way)) continue;
        ++applied[way.name];
        EXPECT_EQ(kRefused.end(), refused) << "this graph was expected to be refused";
      } catch (const Failure& f) {
        // Of plans that compute something on the host.
        if (client::Gpu::is_real() && f.status == CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API) continue;
        // Of virtual tensors whose sizes must be told, or are told otherwise than they are.
        if (way.planned != way.actual && client::is_bad_param(f.status)) continue;
        bool expected = refused != kRefused.end() && f.text.find(refused->second) != std::string::npos;
        EXPECT_TRUE(expected) << f.status << ": " << f.text;
      }
    }
  }
  for (const Way& way : ways)
    if (!way.in_child_graph || client::CudaGraph::exist()) {
      EXPECT_GT(applied[way.name], cases.size() / 3) << way.name;
    }
}

TEST(Recorded, Frontend123) { run_file("frontend_1_23.txt"); }
TEST(Recorded, Frontend132) { run_file("frontend_1_32.txt"); }

}  // namespace
