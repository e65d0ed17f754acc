// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

struct TransformerDescriptor : Descriptor<cudnnSpatialTransformerDescriptor_t> {
  TransformerDescriptor()
      : Descriptor(cudnnCreateSpatialTransformerDescriptor, cudnnDestroySpatialTransformerDescriptor) {}
};

double place(int i, int size) { return size == 1 ? 0 : -1 + 2.0 * i / (size - 1); }

// grid[n, h, w, r] = sum_k theta[n, r, k] (u(w), u(h), 1)[k]
Values generate(const Tensor& theta, const Tensor& grid) {
  Values v;
  for (int64_t i = 0; i < grid.count(); ++i) {
    Sizes at = grid.index(i);
    double u[] = {place(at[2], grid.dims()[2]), place(at[1], grid.dims()[1]), 1}, sum = 0;
    for (int k = 0; k < 3; ++k) sum += theta.get(theta.position({at[0], at[3], k})) * u[k];
    v.push_back(sum);
  }
  return v;
}

Values generate_gradient(const Tensor& theta, const Tensor& dgrid) {
  Values v(static_cast<size_t>(theta.count()));
  for (int64_t i = 0; i < dgrid.count(); ++i) {
    Sizes at = dgrid.index(i);
    double u[] = {place(at[2], dgrid.dims()[2]), place(at[1], dgrid.dims()[1]), 1};
    for (int k = 0; k < 3; ++k) v[static_cast<size_t>(theta.position({at[0], at[3], k}))] += dgrid.get(i) * u[k];
  }
  return v;
}

// The four elements around a place, their weights and the weights' slopes.
struct Corner {
  int h, w;
  double weight, by_h, by_w;
};

std::vector<Corner> corners(const Tensor& x, double gw, double gh) {
  double fw = (gw + 1) * (x.dims()[3] - 1) / 2, fh = (gh + 1) * (x.dims()[2] - 1) / 2;
  int w0 = static_cast<int>(std::floor(fw)), h0 = static_cast<int>(std::floor(fh));
  double w = fw - w0, h = fh - h0, sw = (x.dims()[3] - 1) / 2.0, sh = (x.dims()[2] - 1) / 2.0;
  std::vector<Corner> found;
  for (int i : {0, 1})
    for (int j : {0, 1}) {
      if (h0 + i < 0 || h0 + i >= x.dims()[2] || w0 + j < 0 || w0 + j >= x.dims()[3]) continue;
      double a = i ? h : 1 - h, b = j ? w : 1 - w;
      found.push_back({h0 + i, w0 + j, a * b, (i ? 1 : -1) * sh * b, (j ? 1 : -1) * sw * a});
    }
  return found;
}

TEST(SpatialTransformer, forward_and_backward) {
  Handle h;
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF})
    for (Layout layout : kLayouts)
      for (Factors f : kFactors) {
        const int dims[] = {2, 3, 4, 5};
        TransformerDescriptor d;
        ASSERT_OK(cudnnSetSpatialTransformerNdDescriptor(d, CUDNN_SAMPLER_BILINEAR, type, 4, dims));
        Tensor theta(type, {2, 2, 3}), grid(type, {2, 4, 5, 2}), dtheta(type, theta.dims());
        for (int64_t i = 0; i < theta.count(); ++i) theta.set(i, 0.3 * std::sin(1.7 * static_cast<double>(i)));
        ASSERT_OK(cudnnSpatialTfGridGeneratorForward(h, d, theta.data(), grid.data()));
        expect_values(grid, generate(theta, grid));
        ASSERT_OK(cudnnSpatialTfGridGeneratorBackward(h, d, grid.data(), dtheta.data()));
        expect_values(dtheta, generate_gradient(theta, grid), 64);

        grid.random(7);  // places outside, too
        for (int64_t i = 0; i < grid.count(); ++i) grid.set(i, 0.6 * grid.get(i));
        Tensor x(type, {2, 3, 6, 4}, layout), y(type, {2, 3, 4, 5}, layout), dx(type, x.dims(), layout),
            dy(type, y.dims(), layout), dgrid(type, grid.dims());
        x.random(1), y.random(2), dx.random(3), dy.random(4), dgrid.random(5);
        Values sampled, gx(static_cast<size_t>(x.count())), gg(static_cast<size_t>(grid.count()));
        for (int64_t i = 0; i < y.count(); ++i) {
          Sizes at = y.index(i);
          int64_t g = grid.position({at[0], at[2], at[3], 0});
          double sum = 0;
          for (const Corner& c : corners(x, grid.get(g), grid.get(g + 1))) {
            int64_t e = x.position({at[0], at[1], c.h, c.w});
            sum += c.weight * x.get(e);
            gx[static_cast<size_t>(e)] += c.weight * dy.get(i);
            gg[static_cast<size_t>(g)] += dy.get(i) * x.get(e) * c.by_w;
            gg[static_cast<size_t>(g) + 1] += dy.get(i) * x.get(e) * c.by_h;
          }
          sampled.push_back(sum);
        }
        Factor alpha(f.alpha, type), beta(f.beta, type), one(1, type), half(0.5, type);
        Values want = blended(f.alpha, sampled, f.beta, y.values());
        ASSERT_OK(cudnnSpatialTfSamplerForward(h, d, alpha, x, x.data(), grid.data(), beta, y, y.data()));
        expect_values(y, want, 64);
        want = blended(f.alpha, gx, f.beta, dx.values());
        Values want_grid = blended(1, gg, 0.5, dgrid.values());
        ASSERT_OK(cudnnSpatialTfSamplerBackward(h, d, alpha, x, x.data(), beta, dx, dx.data(), one, dy, dy.data(),
                                                grid.data(), half, dgrid.data()));
        expect_values(dx, want, 64);
        expect_values(dgrid, want_grid, 256);
      }
}

TEST(SpatialTransformer, mistakes) {
  Handle h;
  TransformerDescriptor d;
  Tensor x(CUDNN_DATA_FLOAT, {1, 1, 4, 4}), y(CUDNN_DATA_FLOAT, {1, 1, 2, 2}), grid(CUDNN_DATA_FLOAT, {1, 2, 2, 2}),
      other(CUDNN_DATA_FLOAT, {1, 2, 2, 2});
  float one = 1, zero = 0;
  EXPECT_TRUE(is_bad_param(cudnnSpatialTfGridGeneratorForward(h, d, x.data(), grid.data())));  // not set
  const int dims[] = {1, 1, 2, 2}, bad[] = {1, 1, 0, 2};
  EXPECT_TRUE(
      is_bad_param(cudnnSetSpatialTransformerNdDescriptor(d, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, 4, bad)));
  EXPECT_TRUE(
      is_bad_param(cudnnSetSpatialTransformerNdDescriptor(d, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, 2, dims)));
  ASSERT_OK(cudnnSetSpatialTransformerNdDescriptor(d, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, 4, dims));
  EXPECT_OK(cudnnSpatialTfSamplerForward(h, d, &one, x, x.data(), grid.data(), &zero, y, y.data()));
  EXPECT_TRUE(
      is_bad_param(cudnnSpatialTfSamplerForward(h, d, &one, x, x.data(), grid.data(), &zero, other, other.data())));
  EXPECT_TRUE(is_bad_param(cudnnSpatialTfSamplerForward(h, d, &one, x, x.data(), nullptr, &zero, y, y.data())));
  EXPECT_TRUE(
      is_bad_param(cudnnSpatialTfSamplerForward(nullptr, d, &one, x, x.data(), grid.data(), &zero, y, y.data())));
}

}  // namespace
