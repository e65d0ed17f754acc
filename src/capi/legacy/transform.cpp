// SPDX-License-Identifier: Apache-2.0
// Changes of layout and type, padding, and folding of spatial dimensions into channels. All of it is copies between
// strided views of the two tensors: folding by f leaves f residues in a dimension, each a view of its own.
#include <algorithm>

#include "capi/call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;
using tsr::Dims;

// dest = fold(pad(source)), or pad(unfold(source)). Folding makes element (c, k f + i) of a dimension the element
// (c f + i, k), for several folded dimensions with i counted in row-major order. Negative padding cuts off.
struct cudnnTensorTransformStruct {
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  Dims before, after, fold;  // one value for each dimension; none before it is set
  cudnnFoldingDirection_t direction = CUDNN_TRANSFORM_FOLD;

  bool folds() const { return direction == CUDNN_TRANSFORM_FOLD; }
  int64_t residues() const { return tsr::volume(fold); }
};

namespace {

enum : int64_t { kFrom = 1, kTo };

// A part of a tensor, in elements of its type.
struct View {
  Shape shape;
  int64_t offset = 0;

  bool empty() const { return std::find(shape.dims.begin(), shape.dims.end(), 0) != shape.dims.end(); }
  char* in(const void* base) const {
    return static_cast<char*>(const_cast<void*>(base)) + offset * static_cast<int64_t>(bytes_of(shape.type));
  }
  // Elements first .. first + size - 1 of a dimension, or every `step`-th from `first` on.
  View part(int d, int64_t first, int64_t size, int64_t step = 1) const {
    View v = *this;
    v.offset += first * shape.strides[d];
    v.shape.dims[d] = size;
    v.shape.strides[d] *= step;
    return v;
  }
};

struct Copy {
  cudnnHandle_t handle;
  const char* function;
  const void *alpha, *beta;
  const void* from;
  void* to;

  // to = alpha from + beta to
  void copy(const View& source, const View& dest) const {
    Call c(handle, function);
    Blend blend(c, alpha, beta, dest.shape.type);
    c.key(true).input(kFrom, source.shape, source.in(from), "the source").output(kTo, dest.shape, dest.in(to), "dest");
    c.run([&](Maker& m) { m.blend(blend, kTo, m[kFrom]); });
  }
  // to = beta to, without reading it for 0
  void clear(const View& dest) const {
    Call c(handle, function);
    Blend blend(c, kNoFactor, beta, dest.shape.type);
    c.key(false).output(kTo, dest.shape, dest.in(to), "dest");
    c.run([&](Maker& m) { m.blend(blend, kTo, m.constant(0, m.compute(kTo))); });
  }
  // Element i of dest is element i - before of the source, or nothing where there is none.
  void copy_padded(View source, View dest, const Dims& before) const {
    for (int d = 0; d < before.size(); ++d) {
      int64_t size = dest.shape.dims[d];
      int64_t first = std::clamp<int64_t>(before[d], 0, size);
      int64_t last = std::clamp<int64_t>(before[d] + source.shape.dims[d], first, size);
      for (const View& margin : {dest.part(d, 0, first), dest.part(d, last, size - last)})
        if (!margin.empty()) clear(margin);
      dest = dest.part(d, first, last - first);
      source = source.part(d, first - before[d], last - first);
    }
    if (!dest.empty()) copy(source, dest);
  }
};

void check_ready(const cudnnTensorTransformStruct& t, const Shape& source) {
  demand(!t.fold.empty(), CUDNN_STATUS_BAD_PARAM, "the transform descriptor has not been set");
  demand(source.dims.size() == t.fold.size(), CUDNN_STATUS_BAD_PARAM, "the source is ", source, ", the transform has ",
         t.fold.size(), " dimensions");
}

Dims result_dims(const cudnnTensorTransformStruct& t, const Shape& source) {
  check_ready(t, source);
  Dims d = source.dims;
  auto pad = [&] {
    for (int i = 0; i < d.size(); ++i) d[i] += t.before[i] + t.after[i];
  };
  auto divide = [&](int i, int64_t by) {
    demand(d[i] % by == 0, CUDNN_STATUS_BAD_PARAM, "dimension ", i, " has size ", d[i], ", which is no multiple of ",
           by);
    d[i] /= by;
  };
  if (t.folds()) pad();
  for (int i = 2; i < d.size(); ++i)
    if (t.folds())
      divide(i, t.fold[i]);
    else
      d[i] *= t.fold[i];
  if (t.folds())
    d[1] *= t.residues();
  else
    divide(1, t.residues());
  if (!t.folds()) pad();
  for (int i = 0; i < d.size(); ++i)
    demand(d[i] > 0, CUDNN_STATUS_BAD_PARAM, "dimension ", i, " of the result would have size ", d[i]);
  return d;
}

// The unfolded side takes every fold-th element of a dimension; the channels are those of the residue already.
void copy_residue(const Copy& c, const cudnnTensorTransformStruct& t, View from, View to, Dims before,
                  int64_t residue) {
  View& unfolded = t.folds() ? from : to;
  for (int d = t.fold.size() - 1; d >= 2; --d) {
    int64_t fold = t.fold[d], i = residue % fold;
    residue /= fold;
    // Element k of the folded side is the element fold k + start of the unfolded one.
    int64_t start = t.folds() ? i - t.before[d] : i + t.before[d];
    int64_t first = ((start % fold) + fold) % fold, shift = (start - first) / fold;
    unfolded = unfolded.part(d, first, tsr::ceil_div(std::max<int64_t>(0, unfolded.shape.dims[d] - first), fold), fold);
    before[d] = t.folds() ? -shift : shift;
  }
  c.copy_padded(from, to, before);
}

// The folded side takes every residues-th channel.
void copy_plain(const Copy& c, const cudnnTensorTransformStruct& t, const Shape& source, const Shape& dest) {
  for (int64_t r = 0; r < t.residues(); ++r) {
    View from{source}, to{dest};
    View& folded = t.folds() ? to : from;
    folded = folded.part(1, r, folded.shape.dims[1] / t.residues(), t.residues());
    copy_residue(c, t, from, to, t.before, r);
  }
}

// One channel of a tensor that may keep vectors of them; nothing if there is no such channel.
View channel_of(const Shape& s, int64_t channel) {
  int64_t lanes = lanes_of(s.type);
  bool exists = channel >= 0 && channel < s.dims[1];
  View v{{to_data_type(from_data_type(s.type)), s.dims, s.strides}};
  for (int64_t& stride : v.shape.strides) stride *= lanes;
  v.shape.dims[1] = exists ? 1 : 0;
  if (exists) v.offset = channel / lanes * v.shape.strides[1] + channel % lanes;
  return v;
}

// Channels of vectors are no strided view: one after the other. Padding of channels is a source that is not there.
void copy_channels(const Copy& c, const cudnnTensorTransformStruct& t, const Shape& source, const Shape& dest) {
  int64_t residues = t.residues(), pad = t.before[1];
  Dims before = t.before;
  before[1] = 0;
  for (int64_t to = 0; to < dest.dims[1]; ++to) {
    if (t.folds()) {
      copy_residue(c, t, channel_of(source, to / residues - pad), channel_of(dest, to), before, to % residues);
      continue;
    }
    for (int64_t r = 0; r < residues; ++r) {
      bool exists = to >= pad;  // before its first channel a source has no residues either
      copy_residue(c, t, channel_of(source, exists ? (to - pad) * residues + r : -1), channel_of(dest, to), before, r);
    }
  }
}

void transform(const Copy& c, const cudnnTensorTransformStruct& t, const Shape& source, const Shape& dest) {
  Dims wanted = result_dims(t, source);
  demand(dest.dims == wanted, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "the result is ", dest, ", for ", source,
         " its sizes must be ", wanted);
  bool moves = t.residues() > 1;
  for (int i = 0; i < t.fold.size(); ++i) moves = moves || t.before[i] != 0 || t.after[i] != 0;
  bool vectors = lanes_of(source.type) > 1 || lanes_of(dest.type) > 1;
  if (!moves)
    c.copy({source}, {dest});
  else
    vectors ? copy_channels(c, t, source, dest) : copy_plain(c, t, source, dest);
}

// Vectors come and go with their format.
cudnnDataType_t result_type(cudnnDataType_t source, cudnnTensorFormat_t format) {
  if (format != CUDNN_TENSOR_NCHW_VECT_C) return to_data_type(from_data_type(source));
  if (source == CUDNN_DATA_UINT8) return CUDNN_DATA_UINT8x4;
  return source == CUDNN_DATA_INT8 ? CUDNN_DATA_INT8x4 : source;
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreateTensorTransformDescriptor(cudnnTensorTransformDescriptor_t* transformDesc) {
  return answer(TESSERA_CALL(cudnnCreateTensorTransformDescriptor, transformDesc),
                [&] { create(transformDesc, "transformDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc) {
  return answer(TESSERA_CALL(cudnnDestroyTensorTransformDescriptor, transformDesc), [&] { delete transformDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc,
                                                            const uint32_t nbDims, const cudnnTensorFormat_t destFormat,
                                                            const int32_t padBeforeA[], const int32_t padAfterA[],
                                                            const uint32_t foldA[],
                                                            const cudnnFoldingDirection_t direction) {
  auto entry = TESSERA_CALL(cudnnSetTensorTransformDescriptor, transformDesc, nbDims, destFormat, padBeforeA, padAfterA,
                            foldA, direction);
  return answer(entry, [&] {
    cudnnTensorTransformStruct& d = given(transformDesc, "transformDesc");
    demand(nbDims >= 3 && nbDims <= CUDNN_DIM_MAX, CUDNN_STATUS_BAD_PARAM, "nbDims is ", nbDims, ", allowed are 3 to ",
           CUDNN_DIM_MAX);
    demand_enumerator(destFormat, CUDNN_TENSOR_NCHW_VECT_C, "destFormat");
    demand_enumerator(direction, CUDNN_TRANSFORM_UNFOLD, "direction");
    cudnnTensorTransformStruct t;
    t.format = destFormat, t.direction = direction;
    for (uint32_t i = 0; i < nbDims; ++i) {
      t.before.push_back(padBeforeA ? padBeforeA[i] : 0);
      t.after.push_back(padAfterA ? padAfterA[i] : 0);
      // Only spatial dimensions are folded.
      int64_t fold = foldA && i >= 2 ? foldA[i - 2] : 1;
      demand(fold > 0, CUDNN_STATUS_BAD_PARAM, "foldA[", i - 2, "] is 0, folds are positive");
      t.fold.push_back(fold);
    }
    d = t;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc,
                                                            uint32_t nbDimsRequested, cudnnTensorFormat_t* destFormat,
                                                            int32_t padBeforeA[], int32_t padAfterA[], uint32_t foldA[],
                                                            cudnnFoldingDirection_t* direction) {
  auto entry = TESSERA_CALL(cudnnGetTensorTransformDescriptor, transformDesc, nbDimsRequested, destFormat, padBeforeA,
                            padAfterA, foldA, direction);
  return answer(entry, [&] {
    const cudnnTensorTransformStruct& d = given(transformDesc, "transformDesc");
    if (destFormat) *destFormat = d.format;
    if (direction) *direction = d.direction;
    int count = std::min(static_cast<int>(std::min<uint32_t>(nbDimsRequested, CUDNN_DIM_MAX)), d.fold.size());
    for (int i = 0; i < count; ++i) {
      if (padBeforeA) padBeforeA[i] = static_cast<int32_t>(d.before[i]);
      if (padAfterA) padAfterA[i] = static_cast<int32_t>(d.after[i]);
      if (foldA && i >= 2) foldA[i - 2] = static_cast<uint32_t>(d.fold[i]);
    }
  });
}

cudnnStatus_t CUDNNWINAPI cudnnInitTransformDest(const cudnnTensorTransformDescriptor_t transformDesc,
                                                 const cudnnTensorDescriptor_t srcDesc,
                                                 cudnnTensorDescriptor_t destDesc, size_t* destSizeInBytes) {
  return answer(TESSERA_CALL(cudnnInitTransformDest, transformDesc, srcDesc, destDesc, destSizeInBytes), [&] {
    const cudnnTensorTransformStruct& t = given(transformDesc, "transformDesc");
    const Shape& source = given(srcDesc, "srcDesc");
    given(destDesc, "destDesc");
    Dims dims = result_dims(t, source);
    int sizes[CUDNN_DIM_MAX];
    std::copy(dims.begin(), dims.end(), sizes);
    cudnnStatus_t status =
        cudnnSetTensorNdDescriptorEx(destDesc, t.format, result_type(source.type, t.format), dims.size(), sizes);
    demand(status == CUDNN_STATUS_SUCCESS, status, "the result ", dims, " cannot be described");
    if (destSizeInBytes) (void)cudnnGetTensorSizeInBytes(destDesc, destSizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                               const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                               const cudnnTensorDescriptor_t yDesc, void* y) {
  return answer(TESSERA_CALL(cudnnTransformTensor, handle, alpha, xDesc, x, beta, yDesc, y), [&] {
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc");
    demand_equal_sizes({xs, "xDesc"}, {ys, "yDesc"});
    demand(x && y, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, x ? "y" : "x", " is a null pointer");
    Copy{handle, "cudnnTransformTensor", alpha, beta, x, y}.copy({xs}, {ys});
  });
}

cudnnStatus_t CUDNNWINAPI cudnnTransformTensorEx(cudnnHandle_t handle, const cudnnTensorTransformDescriptor_t transDesc,
                                                 const void* alpha, const cudnnTensorDescriptor_t srcDesc,
                                                 const void* srcData, const void* beta,
                                                 const cudnnTensorDescriptor_t destDesc, void* destData) {
  auto entry =
      TESSERA_CALL(cudnnTransformTensorEx, handle, transDesc, alpha, srcDesc, srcData, beta, destDesc, destData);
  return answer(entry, [&] {
    const Shape &source = given(srcDesc, "srcDesc"), &dest = given(destDesc, "destDesc");
    demand(srcData && destData, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, srcData ? "destData" : "srcData",
           " is a null pointer");
    transform({handle, "cudnnTransformTensorEx", alpha, beta, srcData, destData}, given(transDesc, "transDesc"), source,
              dest);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnTransformFilter(cudnnHandle_t handle, const cudnnTensorTransformDescriptor_t transDesc,
                                               const void* alpha, const cudnnFilterDescriptor_t srcDesc,
                                               const void* srcData, const void* beta,
                                               const cudnnFilterDescriptor_t destDesc, void* destData) {
  auto entry = TESSERA_CALL(cudnnTransformFilter, handle, transDesc, alpha, srcDesc, srcData, beta, destDesc, destData);
  return answer(entry, [&] {
    const Shape &source = given(srcDesc, "srcDesc"), &dest = given(destDesc, "destDesc");
    demand(srcData && destData, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, srcData ? "destData" : "srcData",
           " is a null pointer");
    transform({handle, "cudnnTransformFilter", alpha, beta, srcData, destData}, given(transDesc, "transDesc"), source,
              dest);
  });
}
