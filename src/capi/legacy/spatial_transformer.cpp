// SPDX-License-Identifier: Apache-2.0
// Spatial transformers: grids of places from affine matrices, and bilinear samples of a tensor at those places.
#include "capi/call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;
using tsr::Dims;

struct cudnnSpatialTransformerStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Dims dims;  // of the result: n, c and the spatial sizes; none before it is set
};

namespace {

enum : int64_t { kTheta = 1, kGrid, kX, kY, kDx, kDy, kDgrid };

const cudnnSpatialTransformerStruct& ready(const cudnnSpatialTransformerDescriptor_t desc) {
  const cudnnSpatialTransformerStruct& d = given(desc, "stDesc");
  demand(!d.dims.empty(), CUDNN_STATUS_BAD_PARAM, "stDesc has not been set");
  return d;
}

int64_t spatial(const cudnnSpatialTransformerStruct& d) { return d.dims.size() - 2; }

Shape theta_of(const cudnnSpatialTransformerStruct& d) {
  return packed_shape(d.type, {d.dims[0], spatial(d), spatial(d) + 1});
}

// The places of a result with these sizes.
Shape grid_of(const cudnnSpatialTransformerStruct& d, const Dims& result) {
  Dims dims{result[0]};
  for (int i = 2; i < result.size(); ++i) dims.push_back(result[i]);
  dims.push_back(spatial(d));
  return packed_shape(d.type, dims);
}

// Spatial sizes are those of y: there are clients whose stDesc has those of x.
void check_images(const cudnnSpatialTransformerStruct& d, const Named& x, const Named& y) {
  const Dims &from = x.shape.dims, &to = y.shape.dims;
  bool fits = from.size() == d.dims.size() && to.size() == d.dims.size() && to[0] == d.dims[0] && from[0] == to[0] &&
              from[1] == to[1];
  demand(fits, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, x.name, " is ", x.shape, ", ", y.name, " is ", y.shape,
         ", stDesc has ", d.dims, ": dimensions, batches and channels must be equal");
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreateSpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t* stDesc) {
  return answer(TESSERA_CALL(cudnnCreateSpatialTransformerDescriptor, stDesc), [&] { create(stDesc, "stDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroySpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t stDesc) {
  return answer(TESSERA_CALL(cudnnDestroySpatialTransformerDescriptor, stDesc), [&] { delete stDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t stDesc,
                                                                 cudnnSamplerType_t samplerType,
                                                                 cudnnDataType_t dataType, const int nbDims,
                                                                 const int dimA[]) {
  auto entry = TESSERA_CALL(cudnnSetSpatialTransformerNdDescriptor, stDesc, samplerType, dataType, nbDims,
                            numbers(dimA, nbDims));
  return answer(entry, [&] {
    cudnnSpatialTransformerStruct& d = given(stDesc, "stDesc");
    demand_enumerator(samplerType, CUDNN_SAMPLER_BILINEAR, "samplerType");
    (void)from_data_type(dataType);
    demand(nbDims == 4 || nbDims == 5, nbDims > 5 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM, "nbDims is ",
           nbDims, ", allowed are 4 and 5");
    given(dimA, "dimA");
    Dims dims;
    for (int i = 0; i < nbDims; ++i) {
      demand(dimA[i] > 0, CUDNN_STATUS_BAD_PARAM, "dimA[", i, "] is ", dimA[i], ", sizes are positive");
      dims.push_back(dimA[i]);
    }
    d = {dataType, dims};
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                             const cudnnSpatialTransformerDescriptor_t stDesc,
                                                             const void* theta, void* grid) {
  return answer(TESSERA_CALL(cudnnSpatialTfGridGeneratorForward, handle, stDesc, theta, grid), [&] {
    const cudnnSpatialTransformerStruct& d = ready(stDesc);
    Call c(handle, "cudnnSpatialTfGridGeneratorForward");
    c.key(d.dims).input(kTheta, theta_of(d), theta, "theta").output(kGrid, grid_of(d, d.dims), grid, "grid");
    c.run([&](Maker& m) {
      m.add(tsr::ops::affine_grid, {m[kTheta]}, {m.result(kGrid)}, tessera::GridOptions{.size = d.dims.to_vector()},
            m.compute(kGrid));
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                              const cudnnSpatialTransformerDescriptor_t stDesc,
                                                              const void* dgrid, void* dtheta) {
  return answer(TESSERA_CALL(cudnnSpatialTfGridGeneratorBackward, handle, stDesc, dgrid, dtheta), [&] {
    const cudnnSpatialTransformerStruct& d = ready(stDesc);
    Call c(handle, "cudnnSpatialTfGridGeneratorBackward");
    c.input(kGrid, grid_of(d, d.dims), dgrid, "dgrid").output(kTheta, theta_of(d), dtheta, "dtheta");
    c.run([&](Maker& m) {
      m.add(tsr::ops::affine_grid_bwd, {m[kGrid]}, {m.result(kTheta)}, tsr::ops::affine_grid_bwd.defaults,
            m.compute(kTheta));
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSpatialTfSamplerForward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc,
                                                       const void* alpha, const cudnnTensorDescriptor_t xDesc,
                                                       const void* x, const void* grid, const void* beta,
                                                       cudnnTensorDescriptor_t yDesc, void* y) {
  return answer(TESSERA_CALL(cudnnSpatialTfSamplerForward, handle, stDesc, alpha, xDesc, x, grid, beta, yDesc, y), [&] {
    const cudnnSpatialTransformerStruct& d = ready(stDesc);
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc");
    check_images(d, {xs, "xDesc"}, {ys, "yDesc"});
    Call c(handle, "cudnnSpatialTfSamplerForward");
    Blend blend(c, alpha, beta, ys.type);
    c.input(kX, xs, x, "x").input(kGrid, grid_of(d, ys.dims), grid, "grid").output(kY, ys, y, "y");
    c.run([&](Maker& m) {
      m.blend(blend, kY,
              m.add(tsr::ops::grid_sample, {m[kX], m[kGrid]}, {m.target(blend, kY)}, tsr::ops::grid_sample.defaults,
                    m.compute(kY))[0]);
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                                        cudnnSpatialTransformerDescriptor_t stDesc, const void* alpha,
                                                        const cudnnTensorDescriptor_t xDesc, const void* x,
                                                        const void* beta, const cudnnTensorDescriptor_t dxDesc,
                                                        void* dx, const void* alphaDgrid,
                                                        const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                        const void* grid, const void* betaDgrid, void* dgrid) {
  auto entry = TESSERA_CALL(cudnnSpatialTfSamplerBackward, handle, stDesc, alpha, xDesc, x, beta, dxDesc, dx,
                            alphaDgrid, dyDesc, dy, grid, betaDgrid, dgrid);
  return answer(entry, [&] {
    const cudnnSpatialTransformerStruct& d = ready(stDesc);
    const Shape &xs = given(xDesc, "xDesc"), &dxs = given(dxDesc, "dxDesc"), &dys = given(dyDesc, "dyDesc");
    check_images(d, {xs, "xDesc"}, {dys, "dyDesc"});
    demand_equal_sizes({xs, "xDesc"}, {dxs, "dxDesc"});
    Call c(handle, "cudnnSpatialTfSamplerBackward");
    Blend images(c, alpha, beta, dxs.type), places(c, alphaDgrid, betaDgrid, d.type, 1);
    c.input(kX, xs, x, "x").input(kDy, dys, dy, "dy").input(kGrid, grid_of(d, dys.dims), grid, "grid");
    c.output(kDx, dxs, dx, "dx").output(kDgrid, grid_of(d, dys.dims), dgrid, "dgrid");
    c.run([&](Maker& m) {
      auto r =
          m.add(tsr::ops::grid_sample_bwd, {m[kX], m[kGrid], m[kDy]}, {m.target(images, kDx), m.target(places, kDgrid)},
                tsr::ops::grid_sample_bwd.defaults, m.compute(kDx));
      m.blend(images, kDx, r[0]);
      m.blend(places, kDgrid, r[1]);
    });
  });
}
