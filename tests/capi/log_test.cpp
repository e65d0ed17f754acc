// SPDX-License-Identifier: Apache-2.0
// What a program is told of its calls: by its callback, and in the file that CUDNN_LOGDEST_DBG names (ctest's
// `capi_log`). Every call that computes is followed by its graph on one line, which `tessera run` takes.
#include <algorithm>
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
  std::string text;                // the first line
  std::vector<std::string> lines;  // the others
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
  bool has_line(const std::string& line) const {
    return std::any_of(messages.begin(), messages.end(), [&](const Message& m) {
      return std::find(m.lines.begin(), m.lines.end(), line) != m.lines.end();
    });
  }
  std::vector<Message> messages;

 private:
  static void hear(cudnnSeverity_t severity, void* data, const cudnnDebug_t* debug, const char* text) {
    Message m{severity, debug->cudnnStatus, text, {}};
    for (text += m.text.size() + 1; *text; text += m.lines.back().size() + 1) m.lines.emplace_back(text);
    static_cast<std::vector<Message>*>(data)->push_back(std::move(m));
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

// Numbers are shown as numbers, tensors by their type and sizes, arrays by what they hold.
TEST(Log, ArgumentsAreReadable) {
  Handle handle;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 5}), y(CUDNN_DATA_FLOAT, {2, 3, 4, 5});
  Listener log(CUDNN_SEV_INFO_EN);
  int sizes[] = {2, 3, 4}, strides[] = {12, 4, 1};
  ASSERT_OK(cudnnSetTensorNdDescriptor(Tensor(CUDNN_DATA_HALF, {1}), CUDNN_DATA_HALF, 3, sizes, strides));
  float two = 2, half = 0.5;
  ASSERT_OK(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &two, x, x.data(), &half, y,
                                y.data()));
  int64_t dims[] = {2, 3, 4, 5};
  cudnnBackendDescriptor_t d = nullptr;
  ASSERT_OK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &d));
  EXPECT_OK(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims));
  EXPECT_OK(cudnnBackendDestroyDescriptor(d));
  for (const char* line :
       {"dataType=HALF", "nbDims=3", "dimA=[2,3,4]", "strideA=[12,4,1]", "mode=1",
        "xDesc=FLOAT [2,3,4,5] strides [60,20,5,1]", "alpha=2", "beta=0.5", "descriptorType=TENSOR",
        "attributeName=CUDNN_ATTR_TENSOR_DIMENSIONS", "attributeType=INT64", "arrayOfElements=[2,3,4,5]"})
    EXPECT_TRUE(log.has_line(line)) << line;
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
