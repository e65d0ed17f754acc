// SPDX-License-Identifier: Apache-2.0
#include "evaluate_text.hpp"

#include "engines/reference/reference.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"

namespace tsr {

Values evaluate_text(const std::string& text, const Values& inputs) {
  Graph g = parse_graph(text);
  GraphBuffers buffers(g, {});
  auto each = [&](TensorId id, auto&& f) {
    const Tensor& t = g.tensor(id);
    Dims index = Dims::filled(t.rank(), 0);
    for (int64_t i = 0; i < t.numel(); ++i, next_index(index, t.dims))
      f(t.dtype, buffers.buffer(id).data(), t.offset(index), static_cast<size_t>(i));
  };
  for (TensorId id : g.inputs()) {
    const std::vector<double>& values = inputs.at(g.tensor(id).name);
    require(values.size() == static_cast<size_t>(g.tensor(id).numel()), "wrong number of values for ",
            g.tensor(id).name);
    each(id, [&](DType type, std::byte* data, int64_t offset, size_t i) { store(type, data, offset, values[i]); });
  }
  ref::evaluate_graph<double>(g, buffers.table().data());
  Values results;
  for (TensorId id : g.outputs())
    each(id, [&](DType type, std::byte* data, int64_t offset, size_t) {
      results[g.tensor(id).name].push_back(load<double>(type, data, offset));
    });
  return results;
}

}  // namespace tsr
