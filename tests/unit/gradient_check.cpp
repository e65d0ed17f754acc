// SPDX-License-Identifier: Apache-2.0
#include "gradient_check.hpp"

#include <cmath>
#include <cstring>

#include "engines/reference/reference.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

// sum over outputs y of <dy, y>, for the outputs whose gradient the backward graph reads.
double objective(const Graph& f, GraphBuffers& fb, const Graph& b, const GraphBuffers& bb) {
  fb.poison_outputs();
  ref::evaluate_graph<double>(f, fb.table().data());
  double sum = 0;
  for (TensorId y : f.outputs()) {
    TensorId dy = b.find("d" + f.tensor(y).name);
    if (dy == kNone || b.producer(dy) != kNone) continue;
    Dims index = Dims::filled(f.tensor(y).rank(), 0);
    for (int64_t i = 0, n = f.tensor(y).numel(); i < n; ++i, next_index(index, f.tensor(y).dims)) {
      double v = load<double>(f.tensor(y).dtype, fb.buffer(y).data(), f.tensor(y).offset(index));
      double g = load<double>(b.tensor(dy).dtype, bb.buffer(dy).data(), b.tensor(dy).offset(index));
      if (std::isfinite(v)) sum += v * g;
    }
  }
  return sum;
}

}  // namespace

std::string check_gradient(const std::string& forward, const std::string& backward, const DataSpec& data) {
  Graph f = parse_graph(forward), b = parse_graph(backward);
  GraphBuffers fb(f, data), bb(b, data);
  ref::evaluate_graph<double>(f, fb.table().data());
  for (TensorId t : b.inputs()) {
    TensorId same = f.find(b.tensor(t).name);
    if (same != kNone && (f.tensor(same).stored || f.tensor(same).by_value))
      std::memcpy(bb.buffer(t).data(), fb.buffer(same).data(), bb.buffer(t).size());
  }
  ref::evaluate_graph<double>(b, bb.table().data());
  int checked = 0;
  for (TensorId dx : b.outputs()) {
    const Tensor& d = b.tensor(dx);
    TensorId x = d.name.size() > 1 && d.name[0] == 'd' ? f.find(d.name.substr(1)) : kNone;
    if (x == kNone || f.producer(x) != kNone) continue;
    const Tensor& t = f.tensor(x);
    Dims index = Dims::filled(t.rank(), 0);
    for (int64_t i = 0, n = t.numel(); i < n; ++i, next_index(index, t.dims)) {
      int64_t at = t.offset(index);
      double value = load<double>(t.dtype, fb.buffer(x).data(), at), h = 1e-5 * std::max(1.0, std::fabs(value));
      store(t.dtype, fb.buffer(x).data(), at, value + h);
      double up = objective(f, fb, b, bb);
      store(t.dtype, fb.buffer(x).data(), at, value - h);
      double down = objective(f, fb, b, bb);
      store(t.dtype, fb.buffer(x).data(), at, value);
      double slope = (up - down) / (2 * h), got = load<double>(d.dtype, bb.buffer(dx).data(), d.offset(index));
      // Central differences err by h^2 f''' / 6 + eps |f| / h: about 1e-9 of the values at hand; 1e-6 leaves room.
      double scale = std::max({1.0, std::fabs(slope), std::fabs(up)});
      if (!(std::fabs(slope - got) <= 1e-6 * scale))
        return cat(d.name, to_string(index), " is ", print_number(got), ", finite differences say ",
                   print_number(slope));
      ++checked;
    }
  }
  return checked > 0 ? "" : "the backward graph has no output that names a forward input";
}

}  // namespace tsr
