// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

struct ReduceDescriptor : Descriptor<cudnnReduceTensorDescriptor_t> {
  ReduceDescriptor() : Descriptor(cudnnCreateReduceTensorDescriptor, cudnnDestroyReduceTensorDescriptor) {}
};

constexpr cudnnReduceTensorOp_t kOps[] = {
    CUDNN_REDUCE_TENSOR_ADD,   CUDNN_REDUCE_TENSOR_MUL,   CUDNN_REDUCE_TENSOR_MIN,
    CUDNN_REDUCE_TENSOR_MAX,   CUDNN_REDUCE_TENSOR_AMAX,  CUDNN_REDUCE_TENSOR_AVG,
    CUDNN_REDUCE_TENSOR_NORM1, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS};

// The elements of a that belong to each element of c, in order.
std::vector<Values> gather(const Tensor& a, const Tensor& c) {
  std::vector<Values> of(static_cast<size_t>(c.count()));
  for (int64_t i = 0; i < a.count(); ++i) {
    Sizes at = a.index(i);
    for (size_t d = 0; d < at.size(); ++d)
      if (c.dims()[d] == 1) at[d] = 0;
    of[static_cast<size_t>(c.position(at))].push_back(a.get(i));
  }
  return of;
}

double reduce(cudnnReduceTensorOp_t op, const Values& v, size_t& place) {
  double sum = 0, product = 1, nonzero = 1, norm1 = 0, norm2 = 0;
  size_t least = 0, most = 0, largest = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    sum += v[i], product *= v[i], norm1 += std::fabs(v[i]), norm2 += v[i] * v[i];
    if (v[i] != 0) nonzero *= v[i];
    if (v[i] < v[least]) least = i;
    if (v[i] > v[most]) most = i;
    if (std::fabs(v[i]) > std::fabs(v[largest])) largest = i;
  }
  place = op == CUDNN_REDUCE_TENSOR_MIN ? least : op == CUDNN_REDUCE_TENSOR_MAX ? most : largest;
  switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL:
      return product;
    case CUDNN_REDUCE_TENSOR_MIN:
      return v[least];
    case CUDNN_REDUCE_TENSOR_MAX:
      return v[most];
    case CUDNN_REDUCE_TENSOR_AMAX:
      return std::fabs(v[largest]);
    case CUDNN_REDUCE_TENSOR_AVG:
      return sum / static_cast<double>(v.size());
    case CUDNN_REDUCE_TENSOR_NORM1:
      return norm1;
    case CUDNN_REDUCE_TENSOR_NORM2:
      return std::sqrt(norm2);
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return nonzero;
    default:
      return sum;
  }
}

uint64_t index_at(const Memory& bytes, size_t width, size_t i) {
  uint64_t v = 0;
  std::memcpy(&v, bytes.host() + i * width, width);
  return v;
}

void check(cudnnHandle_t h, cudnnReduceTensorOp_t op, cudnnDataType_t type, Layout layout, const Sizes& from,
           const Sizes& to, Factors f, cudnnReduceTensorIndices_t want_indices, cudnnIndicesType_t index_type) {
  ReduceDescriptor d;
  cudnnDataType_t compute = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
  ASSERT_OK(cudnnSetReduceTensorDescriptor(d, op, compute, CUDNN_NOT_PROPAGATE_NAN, want_indices, index_type));
  Tensor a(type, from, layout), c(type, to, layout);
  a.random(1), c.random(2);
  if (op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS) a.set(0, 0);
  auto groups = gather(a, c);
  Values computed;
  std::vector<size_t> places(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) computed.push_back(reduce(op, groups[i], places[i]));
  Values want = blended(f.alpha, computed, f.beta, c.values());
  size_t work = 0, index_bytes = 0;
  ASSERT_OK(cudnnGetReductionWorkspaceSize(h, d, a, c, &work));
  ASSERT_OK(cudnnGetReductionIndicesSize(h, d, a, c, &index_bytes));
  Memory workspace(work), indices(index_bytes);
  ASSERT_OK(cudnnReduceTensor(h, d, indices.data(), index_bytes, workspace.data(), work, Factor(f.alpha, type), a,
                              a.data(), Factor(f.beta, type), c, c.data()));
  expect_values(c, want, 64);
  bool extreme = op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX || op == CUDNN_REDUCE_TENSOR_AMAX;
  if (want_indices == CUDNN_REDUCE_TENSOR_NO_INDICES || !extreme) {
    EXPECT_EQ(index_bytes, 0u);
    return;
  }
  size_t width = index_type == CUDNN_64BIT_INDICES   ? 8
                 : index_type == CUDNN_16BIT_INDICES ? 2
                 : index_type == CUDNN_8BIT_INDICES  ? 1
                                                     : 4;
  ASSERT_EQ(index_bytes, width * groups.size());
  for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(index_at(indices, width, i), places[i]) << i;
}

TEST(ReduceTensor, every_operation) {
  Handle h;
  for (cudnnReduceTensorOp_t op : kOps)
    for (cudnnDataType_t type : kFloats)
      for (Layout layout : kLayouts)
        for (const Sizes& to : choices<Sizes>(
                 {{1, 3, 1, 1}, {2, 1, 1, 1}, {1, 1, 1, 1}, {2, 3, 1, 2}, {2, 3, 3, 2}, {1, 3, 3, 2}}, {{1, 3, 1, 1}}))
          for (Factors f : kFactors)
            check(h, op, type, layout, {2, 3, 3, 2}, to, f, CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
}

TEST(ReduceTensor, indices) {
  Handle h;
  for (cudnnReduceTensorOp_t op :
       {CUDNN_REDUCE_TENSOR_MIN, CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_AMAX, CUDNN_REDUCE_TENSOR_ADD})
    for (cudnnDataType_t type : kFloats) {
      auto indices = [&](const Sizes& to, cudnnIndicesType_t width) {
        check(h, op, type, Layout::nchw, {2, 3, 7, 6}, to, {0.5, 0}, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, width);
      };
      for (const Sizes& to : choices<Sizes>({{2, 1, 7, 1}, {1, 1, 1, 1}, {2, 3, 7, 6}}, {}))
        indices(to, CUDNN_32BIT_INDICES);
      for (cudnnIndicesType_t width :
           {CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES, CUDNN_16BIT_INDICES, CUDNN_8BIT_INDICES})
        indices({1, 3, 1, 1}, width);
    }
  check(h, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT, Layout::nhwc, {1, 2, 100, 90}, {1, 2, 1, 1}, {1, 0},
        CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, CUDNN_16BIT_INDICES);
}

TEST(ReduceTensor, nan) {
  Handle h;
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor a(CUDNN_DATA_FLOAT, {1, 1, 1, 4}), c(CUDNN_DATA_FLOAT, {1, 1, 1, 1});
  float one = 1, zero = 0;
  for (int i = 0; i < 4; ++i) a.set(i, Values{1, 3, nan, -5}[static_cast<size_t>(i)]);
  for (auto [option, want, place] : {std::tuple{CUDNN_NOT_PROPAGATE_NAN, 3.0, 1}, {CUDNN_PROPAGATE_NAN, nan, 2}}) {
    ReduceDescriptor d;
    ASSERT_OK(cudnnSetReduceTensorDescriptor(d, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT, option,
                                             CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, CUDNN_32BIT_INDICES));
    Memory index(4, 0xff);
    ASSERT_OK(cudnnReduceTensor(h, d, index.data(), 4, nullptr, 0, &one, a, a.data(), &zero, c, c.data()));
    expect_values(c, {want});
    EXPECT_EQ(index_at(index, 4, 0), static_cast<uint64_t>(place));
  }
}

TEST(ReduceTensor, mistakes) {
  Handle h;
  ReduceDescriptor d;
  Tensor a(CUDNN_DATA_FLOAT, {2, 3, 4, 5}), c(CUDNN_DATA_FLOAT, {1, 3, 1, 1}), wrong(CUDNN_DATA_FLOAT, {1, 2, 1, 1});
  float one = 1, zero = 0;
  auto set = [&](int op, cudnnDataType_t compute) {
    return cudnnSetReduceTensorDescriptor(d, static_cast<cudnnReduceTensorOp_t>(op), compute, CUDNN_PROPAGATE_NAN,
                                          CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, CUDNN_8BIT_INDICES);
  };
  EXPECT_TRUE(is_bad_param(set(9, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(set(0, CUDNN_DATA_INT8)));
  ASSERT_OK(set(CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT));
  Memory indices(3);
  auto reduce = [&](cudnnHandle_t handle, void* where, size_t bytes, cudnnTensorDescriptor_t to, void* data) {
    return cudnnReduceTensor(handle, d, where, bytes, nullptr, 0, &one, a, a.data(), &zero, to, data);
  };
  EXPECT_OK(reduce(h, indices.data(), 3, c, c.data()));
  EXPECT_TRUE(is_bad_param(reduce(nullptr, indices.data(), 3, c, c.data())));
  EXPECT_TRUE(is_bad_param(reduce(h, indices.data(), 2, c, c.data())));
  EXPECT_TRUE(is_bad_param(reduce(h, nullptr, 3, c, c.data())));
  EXPECT_TRUE(is_bad_param(reduce(h, indices.data(), 3, wrong, wrong.data())));
  EXPECT_TRUE(is_bad_param(reduce(h, indices.data(), 3, c, nullptr)));
  cudnnReduceTensorOp_t op;
  cudnnIndicesType_t width;
  ASSERT_OK(cudnnGetReduceTensorDescriptor(d, &op, nullptr, nullptr, nullptr, &width));
  EXPECT_EQ(op, CUDNN_REDUCE_TENSOR_MAX);
  EXPECT_EQ(width, CUDNN_8BIT_INDICES);
}

}  // namespace
