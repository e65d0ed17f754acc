// SPDX-License-Identifier: Apache-2.0
// What a program is told of its calls: by its callback, and in the file that CUDNN_LOGDEST_DBG names (ctest's
// `capi_log`). Every call that computes is followed by its graph on one line, which `tessera run` takes.
#include <cstdlib>
#include <fstream>

#include "backend_client.hpp"
#include "graph/text.hpp"
#include "planner/plan.hpp"

using namespace client;

namespace {

struct Message {
  cudnnSeverity_t severity;
  cudnnStatus_t status;
  std::string text;
};

// Listens while it lives.
class Listener {
 public:
  explicit Listener(unsigned mask) { EXPECT_OK(cudnnSetCallback(mask, &messages, hear)); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { cudnnSetCallback(0, nullptr, nullptr); }
  std::vector<std::string> graphs() const {
    std::vector<std::string> found;
    const std::string mark = "graph: ";
    for (const Message& m : messages)
      if (m.text.rfind(mark, 0) == 0) found.push_back(m.text.substr(mark.size()));
    return found;
  }
  std::vector<Message> messages;

 private:
  static void hear(cudnnSeverity_t severity, void* data, const cudnnDebug_t* debug, const char* text) {
    static_cast<std::vector<Message>*>(data)->push_back({severity, debug->cudnnStatus, text});
  }
};

cudnnStatus_t soften(const Handle& h, Tensor& x, Tensor& y) {
  float one = 1, zero = 0;
  return cudnnSoftmaxForward(h, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x, x.data(), &zero, y,
                             y.data());
}

void expect_runs(const std::string& graph) {
  SCOPED_TRACE(graph);
  EXPECT_EQ(graph.find('\n'), std::string::npos);
  tsr::Graph parsed = tsr::parse_graph(graph);
  EXPECT_EQ(tsr::print_graph(parsed, {.one_line = true}), graph);
  EXPECT_TRUE(tsr::make_plan(std::make_shared<const tsr::Graph>(std::move(parsed)), tsr::cpu_device()));
}

}  // namespace

TEST(Log, EveryCallThatComputesTellsItsGraph) {
  Handle handle;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 5}), y(CUDNN_DATA_FLOAT, {2, 3, 4, 5});
  Listener log(CUDNN_SEV_INFO_EN);
  for (int i = 0; i < 3; ++i) ASSERT_OK(soften(handle, x, y));
  std::vector<std::string> graphs = log.graphs();
  ASSERT_EQ(graphs.size(), 3U);
  for (const std::string& g : graphs) {
    EXPECT_NE(g.find("softmax"), std::string::npos) << g;
    expect_runs(g);
  }
  EXPECT_EQ(log.messages[0].text, "function cudnnSoftmaxForward() called");
  EXPECT_EQ(log.messages[0].severity, CUDNN_SEV_INFO);
}

TEST(Log, EveryExecutedPlanTellsItsGraph) {
  Handle handle;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 5}), y(CUDNN_DATA_FLOAT, {2, 3, 4, 5});
  Part graph = operation_graph(
      handle, {pointwise(CUDNN_POINTWISE_TANH_FWD, CUDNN_DATA_FLOAT, tensor(7, CUDNN_DATA_FLOAT, {2, 3, 4, 5}), nullptr,
                         tensor(8, CUDNN_DATA_FLOAT, {2, 3, 4, 5}))});
  Part plan = best_plan(graph);
  Listener log(CUDNN_SEV_INFO_EN);
  for (int i = 0; i < 2; ++i) ASSERT_OK(execute(handle, plan, {{7, x.data()}, {8, y.data()}}));
  ASSERT_EQ(log.graphs().size(), 2U);
  EXPECT_NE(log.graphs()[0].find("tanh"), std::string::npos);
  for (const std::string& g : log.graphs()) expect_runs(g);
}

TEST(Log, ErrorsComeWithTheirStatus) {
  Handle handle;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3}), y(CUDNN_DATA_FLOAT, {2, 4});
  Listener log(CUDNN_SEV_ERROR_EN);
  cudnnStatus_t status = soften(handle, x, y);
  EXPECT_TRUE(is_bad_param(status));
  ASSERT_EQ(log.messages.size(), 1U);
  EXPECT_EQ(log.messages[0].severity, CUDNN_SEV_ERROR);
  EXPECT_EQ(log.messages[0].status, status);
  EXPECT_EQ(log.messages[0].text, last_error());
}

TEST(Log, TheFileHoldsWhatTheCallbackHears) {
  const char* path = std::getenv("CUDNN_LOGDEST_DBG");
  if (!path) GTEST_SKIP() << "no log file";
  Handle handle;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 5}), y(CUDNN_DATA_FLOAT, {2, 3, 4, 5});
  std::ifstream file(path);
  file.seekg(0, std::ios::end);  // other runs' lines come first
  ASSERT_OK(soften(handle, x, y));
  std::vector<std::string> graphs;
  const std::string mark = ") graph: ";
  for (std::string line; std::getline(file, line);)
    if (size_t at = line.find(mark); line.rfind("I! CuDNN (v", 0) == 0 && at != std::string::npos)
      graphs.push_back(line.substr(at + mark.size()));
  ASSERT_EQ(graphs.size(), 1U);
  expect_runs(graphs[0]);
}
