// SPDX-License-Identifier: Apache-2.0
#include "evaluate.hpp"

#include "engines/reference/reference.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"

namespace tsr {

Values evaluate_text(const std::string& text, const Values& inputs) {
  Graph g = parse_graph(text);
  GraphBuffers buffers(g, {});
  for (TensorId t : g.inputs()) {
    auto it = inputs.find(g.tensor(t).name);
    require(it != inputs.end() && static_cast<int64_t>(it->second.size()) == buffers.elements(t), "no values for ",
            describe(g.tensor(t)));
    for (size_t i = 0; i < it->second.size(); ++i)
      store(g.tensor(t).dtype, buffers.buffer(t).data(), static_cast<int64_t>(i), it->second[i]);
  }
  ref::evaluate_graph<double>(g, buffers.table().data());
  Values results;
  for (TensorId t : g.outputs())
    for (int64_t i = 0; i < buffers.elements(t); ++i)
      results[g.tensor(t).name].push_back(load<double>(g.tensor(t).dtype, buffers.buffer(t).data(), i));
  return results;
}

}  // namespace tsr
