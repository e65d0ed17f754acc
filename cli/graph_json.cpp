// SPDX-License-Identifier: Apache-2.0
#include "graph_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/op.hpp"
#include "graph/text.hpp"

namespace tsr::cli {
namespace {

Json tensor_json(const Tensor& t) {
  Json j = {{"name", t.name},
            {"dtype", name(t.dtype)},
            {"dims", std::vector<int64_t>(t.dims.begin(), t.dims.end())},
            {"channels_last", t.rank() >= 3 && t.dims[1] > 1 && t.strides[1] == 1}};
  if (!t.is_constant()) return j;
  std::vector<double> values;
  for (int64_t i = 0; i < t.numel(); ++i) values.push_back(load<double>(t.dtype, t.constant.data(), i));
  j["value"] = values.size() == 1 ? Json(values[0]) : Json(values);
  return j;
}

}  // namespace

Json graph_json(const Graph& g) {
  Json j;
  for (const char* key : {"tensors", "results", "outputs", "nodes"}) j[key] = Json::array();
  for (TensorId t : g.outputs()) j["outputs"].push_back(g.tensor(t).name);
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    j[g.producer(t) == kNone ? "tensors" : "results"].push_back(tensor_json(g.tensor(t)));
  for (NodeId i = 0; i < g.node_count(); ++i) {
    const Node& n = g.node(i);
    Json node = {{"op", spelling(n)}, {"in", Json::object()}, {"out", Json::array()}, {"options", Json::object()}};
    for (size_t k = 0; k < n.in.size(); ++k)
      if (n.in[k] != kNone)
        node["in"][std::string(n.op->in[std::min(k, n.op->in.size() - 1)].name)] = g.tensor(n.in[k]).name;
    for (TensorId t : n.out)
      if (t != kNone) node["out"].push_back(g.tensor(t).name);
    for (const auto& [key, value] : print_options(g, n))
      if (!value.empty()) node["options"][key] = value;
    j["nodes"].push_back(std::move(node));
  }
  return j;
}

}  // namespace tsr::cli
