// SPDX-License-Identifier: Apache-2.0
// Spatial transformers: affine_grid and grid_sample, forward and backward.
#include <algorithm>

#include "engines/cuda/special/sampling_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cuda {
namespace {

using Args = dev::SamplingArgs;
constexpr int kThreads = 256;

class SamplingBuilder {
 public:
  SamplingBuilder(const Region& r, const Device& d)
      : r_(r), g_(*r.graph), n_(g_.node(r.nodes[0])), d_(d), step_(std::make_unique<Launches<Args>>()) {}

  std::unique_ptr<Step> run() {
    if (n_.op == &ops::affine_grid || n_.op == &ops::affine_grid_bwd)
      affine();
    else
      sample();
    return std::move(step_);
  }

 private:
  // Tensors [n, c, (d,) h, w]: three spatial dimensions.
  void bind_image(dev::Operand& o, TensorId id) {
    step_->bind(o, g_, id);
    if (id == kNone) return;
    const Tensor& t = g_.tensor(id);
    o = {};
    o.strides[0] = t.strides[0], o.strides[1] = t.strides[1];
    for (int i = 2; i < t.rank(); ++i) o.strides[i + 5 - t.rank()] = t.strides[i];
  }

  // Grids [n, (d,) h, w, coordinates].
  void bind_grid(dev::Operand& o, TensorId id) {
    step_->bind(o, g_, id);
    if (id == kNone) return;
    const Tensor& t = g_.tensor(id);
    o = {};
    o.strides[0] = t.strides[0];
    for (int i = 1; i < t.rank(); ++i) o.strides[i + 5 - t.rank()] = t.strides[i];
  }

  void set_places(const Tensor& grid) {
    a_.spatial = grid.rank() - 2;
    a_.batch = grid.dims[0];
    a_.all_places = 1;
    for (int d = 0; d < 3; ++d) {
      int i = d + a_.spatial - 2;
      int64_t size = i < 1 ? 1 : grid.dims[i];
      a_.places[d] = dev::make_divisor(std::max<int64_t>(1, size));
      a_.all_places *= size;
    }
    a_.place_count = dev::make_divisor(std::max<int64_t>(1, a_.all_places));
  }

  void set_image(const Tensor& x) {
    a_.channels = x.dims[1];
    a_.channel_count = dev::make_divisor(std::max<int64_t>(1, a_.channels));
    a_.all_pixels = 1;
    for (int d = 0; d < 3; ++d) {
      int i = d + x.rank() - 3;
      a_.image[d] = i < 2 ? 1 : x.dims[i];
      a_.pixels[d] = dev::make_divisor(std::max<int64_t>(1, a_.image[d]));
      a_.all_pixels *= a_.image[d];
    }
  }

  void sample() {
    TensorId x = n_.in[0], grid = n_.in[1];
    bool forward = n_.op == &ops::grid_sample;
    TensorId y = forward ? n_.out[0] : n_.in[2];
    bind_image(a_.x, x), bind_image(a_.y, y), bind_grid(a_.grid, grid);
    set_places(g_.tensor(grid)), set_image(g_.tensor(x));
    const Tensor& sampled = g_.tensor(y);
    a_.channels_last = sampled.strides[1] < sampled.strides[sampled.rank() - 1];
    if (forward) {
      std::string lane = lane_of(g_, n_, {x, grid, y});
      add(instance("grid_sample", lane, type(x), type(grid), type(y)),
          {ceil_div(a_.batch * a_.channels * a_.all_places, kThreads), kThreads, 0});
      return;
    }
    TensorId dx = wanted(r_, n_.out[0]), dgrid = wanted(r_, n_.out[1]);
    std::string lane = lane_of(g_, n_, {x, grid, y, dx, dgrid});
    bind_image(a_.dx, dx), bind_grid(a_.dgrid, dgrid);
    a_.pieces = ceil_div(a_.all_pixels, dev::kPiecePixels);
    a_.channel_pieces = ceil_div(a_.channels, dev::kPieceChannels);
    int64_t shared = int64_t{dev::kPiecePixels} * dev::kPieceChannels * (lane == "double" ? 8 : 4) +
                     dev::kPieceThreads * 8 + dev::kPieceThreads / 32 * 4;
    if (dx != kNone)
      add(instance("grid_sample_dx", lane, type(grid), type(y), type(dx)),
          {a_.batch * a_.channel_pieces * a_.pieces, dev::kPieceThreads, shared});
    if (dgrid != kNone)
      add(instance("grid_sample_dgrid", lane, type(x), type(grid), type(y), type(dgrid)),
          {ceil_div(a_.batch * a_.all_places, kThreads), kThreads, 0});
  }

  void affine() {
    bool forward = n_.op == &ops::affine_grid;
    TensorId theta = forward ? n_.in[0] : n_.out[0], grid = forward ? n_.out[0] : n_.in[0];
    step_->bind(a_.theta, g_, theta);
    bind_grid(a_.grid, grid);
    set_places(g_.tensor(grid));
    std::string lane = lane_of(g_, n_, {theta, grid});
    if (forward)
      add(instance("affine_grid", lane, type(theta), type(grid)),
          {ceil_div(a_.batch * a_.all_places, kThreads), kThreads, 0});
    else
      add(instance("affine_grid_bwd", lane, type(grid), type(theta), kThreads),
          {a_.batch * a_.spatial * (a_.spatial + 1), kThreads, kThreads / 32 * 8});
  }

  std::string type(TensorId t) const { return device_type_of(g_, t); }
  void add(const std::string& body, const Grid& grid) {
    step_->add("engines/cuda/special/sampling.cuh", "SamplingArgs", body, grid, d_);
  }

  const Region& r_;
  const Graph& g_;
  const Node& n_;
  const Device& d_;
  std::unique_ptr<Launches<Args>> step_;
  Args& a_ = step_->args;
};

}  // namespace

std::unique_ptr<Step> build_sampling(const Region& r, const Device& d) { return SamplingBuilder(r, d).run(); }

}  // namespace tsr::cuda
