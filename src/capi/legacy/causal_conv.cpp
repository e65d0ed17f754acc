// SPDX-License-Identifier: Apache-2.0
// Causal convolutions along sequences. They take a stream instead of a handle, and packed tensors.
#include <bit>

#include "capi/call.hpp"
#include "capi/stream_handle.hpp"

using namespace tsr;
using namespace tsr::capi;
using tessera::CausalConvOptions;

namespace {

enum : int64_t { kX = 1, kWeight, kBias, kY, kDy, kDx, kDweight, kDbias, kMixer, kSkip, kGated, kDmixer, kDskip };

void check_positive(int value, const char* name) {
  demand(value > 0, CUDNN_STATUS_BAD_PARAM, name, " is ", value, ", it must be positive");
}

void check_taps(int value, const char* name, int most) {
  demand(value >= 2 && value <= most, CUDNN_STATUS_BAD_PARAM, name, " is ", value, ", it must be in 2..", most);
}

DType check_type(cudnnDataType_t type) {
  bool known =
      type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  demand(known, CUDNN_STATUS_NOT_SUPPORTED, "dataType is ", name_of(type),
         "; allowed are FLOAT, DOUBLE, HALF and BFLOAT16");
  return type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32;
}

void check_gradient_type(cudnnDataType_t type, cudnnDataType_t given_type) {
  cudnnDataType_t wanted = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  demand(given_type == wanted, CUDNN_STATUS_NOT_SUPPORTED, "dwDataType is ", name_of(given_type), ", for dataType ",
         name_of(type), " it must be ", name_of(wanted));
}

// Sizes of one kind of convolution and the shapes of its tensors, channels last or not.
struct Sizes {
  int batch, dim, length, taps;
  cudnnDataType_t type;
  bool channels_last = false;

  void check(int most_taps) const {
    check_positive(batch, "batch"), check_positive(dim, "dim"), check_positive(length, "seqLen");
    check_taps(taps, "kernelSize", most_taps);
    (void)check_type(type);
  }
  Shape sequences() const {
    int64_t d = dim, l = length;
    return {type, {batch, d, l}, channels_last ? Dims{d * l, 1, d} : Dims{d * l, l, 1}};
  }
  Shape weight(cudnnDataType_t t) const { return {t, {dim, taps}, channels_last ? Dims{1, dim} : Dims{taps, 1}}; }
  Shape channels(cudnnDataType_t t) const { return {t, {dim}, {1}}; }
  DType compute() const { return type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32; }
};

CausalConvOptions options_of(cudnnCausalConv1dActivation_t activation) {
  bool known =
      activation == CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY || activation == CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU;
  demand(known, CUDNN_STATUS_BAD_PARAM, "activation ", static_cast<int>(activation), " does not exist");
  bool silu = activation == CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU;
  return {.activation = silu ? tessera::CausalActivation::silu : tessera::CausalActivation::none};
}

void direct_forward(cudaStream_t stream, const Sizes& s, int most_taps, const void* x, const void* weight,
                    const void* bias, void* y, cudnnCausalConv1dActivation_t activation) {
  s.check(most_taps);
  CausalConvOptions o = options_of(activation);
  Call call(handle_for(stream), "causal_conv1d");
  call.key(o.activation).input(kX, s.sequences(), x, "x").input(kWeight, s.weight(s.type), weight, "weight");
  call.input(kBias, s.channels(s.type), bias, "bias").output(kY, s.sequences(), y, "y");
  call.run([&](Maker& m) { m.add(ops::causal_conv1d, {m[kX], m[kWeight], m[kBias]}, {m.result(kY)}, o, s.compute()); });
}

void direct_backward(cudaStream_t stream, const Sizes& s, int most_taps, cudnnDataType_t gradient_type, const void* x,
                     const void* weight, const void* bias, const void* dy, void* dx, void* dweight, void* dbias,
                     cudnnCausalConv1dActivation_t activation) {
  s.check(most_taps);
  check_gradient_type(s.type, gradient_type);
  CausalConvOptions o = options_of(activation);
  Call call(handle_for(stream), "causal_conv1d_bwd");
  call.key(o.activation).input(kX, s.sequences(), x, "x").input(kWeight, s.weight(s.type), weight, "weight");
  call.input(kBias, s.channels(s.type), bias, "bias").input(kDy, s.sequences(), dy, "dy");
  call.output(kDx, s.sequences(), dx, "dx").output(kDweight, s.weight(gradient_type), dweight, "dweight");
  call.output(kDbias, s.channels(gradient_type), dbias, "dbias");
  call.run([&](Maker& m) {
    auto g = m.add(ops::causal_conv1d_bwd, {m[kX], m[kWeight], m[kDy], m[kBias]}, {m.result(kDx), kNew, kNew}, o,
                   s.compute());
    m.accumulate(kDweight, g[1]);
    m.accumulate(kDbias, g[2]);
  });
}

// --- long kernels, whose taps are stored the other way round. (That NVIDIA's library computes them by Fourier
// transforms limits their sizes; programs rely on being told.)

void check_aligned(const void* p, const char* name) {
  demand(p && reinterpret_cast<uintptr_t>(p) % 16 == 0, CUDNN_STATUS_BAD_PARAM, name, " is ",
         p ? "not aligned to 16 bytes" : "a null pointer");
}

bool is_power_in(int value, int least, int most) {
  return value >= least && value <= most && std::has_single_bit(static_cast<unsigned>(value));
}

void check_fft(const Sizes& s) {
  check_positive(s.batch, "batch"), check_positive(s.dim, "dim");
  (void)check_type(s.type);
  int most = s.type == CUDNN_DATA_DOUBLE ? 4096 : 16384;
  demand(is_power_in(s.taps, 128, most), CUDNN_STATUS_NOT_SUPPORTED, "kernelSize is ", s.taps,
         ", it must be a power of two in 128..", most);
  demand(s.length >= s.taps && s.length % s.taps == 0, CUDNN_STATUS_NOT_SUPPORTED, "seqLen is ", s.length,
         ", it must be a multiple of kernelSize, which is ", s.taps);
}

void check_long_fft(const Sizes& s) {
  check_positive(s.batch, "batch"), check_positive(s.dim, "dim");
  (void)check_type(s.type);
  int most = s.type == CUDNN_DATA_DOUBLE ? 1 << 23 : 1 << 24;
  demand(s.length == s.taps && is_power_in(s.taps, 4096, most), CUDNN_STATUS_NOT_SUPPORTED, "seqLen is ", s.length,
         " and kernelSize ", s.taps, ", they must be equal and a power of two in 4096..", most);
}

const CausalConvOptions kReversed = {.reversed = true};

// What the interface promises of both buffers: room for the spectra of sequences, then of kernels. We keep the
// sequences and kernels themselves there.
struct LongBuffers {
  explicit LongBuffers(const Sizes& s) {
    int bits = std::countr_zero(static_cast<unsigned>(s.taps)) + 1;
    size_t m = size_t{1} << (bits + 1) / 2, q = size_t{1} << bits / 2;
    size_t each = 2 * (m / 2 + 1) * q * (s.type == CUDNN_DATA_DOUBLE ? 8 : 4);
    auto up = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
    kernels = up(static_cast<size_t>(s.batch) * static_cast<size_t>(s.dim) * each);
    bytes = kernels + up(static_cast<size_t>(s.dim) * each);
  }
  size_t kernels, bytes;

  void check(const void* workspace, size_t workspace_bytes, const void* reserve, size_t reserve_bytes) const {
    demand(workspace_bytes >= bytes && reserve_bytes >= bytes, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
           "the workspace has ", workspace_bytes, " bytes and the reserve space ", reserve_bytes, ", both need ",
           bytes);
    check_aligned(workspace, "workspace"), check_aligned(reserve, "reserveSpace");
  }
};

// --- back to back

struct PairSizes {
  int batch, dim, length, projection, mixer;
  cudnnDataType_t type;

  void check() const {
    check_positive(batch, "batch"), check_positive(dim, "dim"), check_positive(length, "seqLen");
    check_taps(projection, "kernelSizeProj", 32), check_taps(mixer, "kernelSizeMixer", 256);
    (void)check_type(type);
  }
  static Shape packed(cudnnDataType_t t, const Dims& dims) { return {t, dims, packed_strides(dims)}; }
  Shape x() const { return packed(type, {batch, dim, 3, length}); }
  Shape y() const { return packed(type, {batch, dim, length}); }
  Shape projections(cudnnDataType_t t) const { return packed(t, {dim, 3, projection}); }
  Shape mixers(cudnnDataType_t t) const { return packed(t, {dim, mixer}); }
  Shape skips(cudnnDataType_t t) const { return packed(t, {dim}); }
  DType compute() const { return type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32; }
};

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dForward(cudaStream_t stream, const void* x, const void* weight,
                                                   const void* bias, void* y, int batch, int dim, int seqLen,
                                                   int kernelSize, cudnnDataType_t dataType,
                                                   cudnnCausalConv1dActivation_t activation) {
  auto entry = TESSERA_CALL(cudnnCausalConv1dForward, stream, x, weight, bias, y, batch, dim, seqLen, kernelSize,
                            dataType, activation);
  return answer(entry, [&] {
    direct_forward(stream, {batch, dim, seqLen, kernelSize, dataType}, 256, x, weight, bias, y, activation);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dBackward(cudaStream_t stream, const void* x, const void* weight,
                                                    const void* bias, const void* dy, void* dx, void* dweight,
                                                    void* dbias, int batch, int dim, int seqLen, int kernelSize,
                                                    cudnnDataType_t dataType, cudnnDataType_t dwDataType,
                                                    cudnnCausalConv1dActivation_t activation) {
  auto entry = TESSERA_CALL(cudnnCausalConv1dBackward, stream, x, weight, bias, dy, dx, dweight, dbias, batch, dim,
                            seqLen, kernelSize, dataType, dwDataType, activation);
  return answer(entry, [&] {
    direct_backward(stream, {batch, dim, seqLen, kernelSize, dataType}, 256, dwDataType, x, weight, bias, dy, dx,
                    dweight, dbias, activation);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dNwhForward(cudaStream_t stream, const void* x, const void* weight,
                                                      const void* bias, void* y, int batch, int dim, int seqLen,
                                                      int kernelSize, cudnnDataType_t dataType,
                                                      cudnnCausalConv1dActivation_t activation) {
  auto entry = TESSERA_CALL(cudnnCausalConv1dNwhForward, stream, x, weight, bias, y, batch, dim, seqLen, kernelSize,
                            dataType, activation);
  return answer(entry, [&] {
    direct_forward(stream, {batch, dim, seqLen, kernelSize, dataType, true}, 128, x, weight, bias, y, activation);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dNwhBackward(cudaStream_t stream, const void* x, const void* weight,
                                                       const void* bias, const void* dy, void* dx, void* dweight,
                                                       void* dbias, int batch, int dim, int seqLen, int kernelSize,
                                                       cudnnDataType_t dataType, cudnnDataType_t dwDataType,
                                                       cudnnCausalConv1dActivation_t activation) {
  auto entry = TESSERA_CALL(cudnnCausalConv1dNwhBackward, stream, x, weight, bias, dy, dx, dweight, dbias, batch, dim,
                            seqLen, kernelSize, dataType, dwDataType, activation);
  return answer(entry, [&] {
    direct_backward(stream, {batch, dim, seqLen, kernelSize, dataType, true}, 128, dwDataType, x, weight, bias, dy, dx,
                    dweight, dbias, activation);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFFTCausalConv1dForward(cudaStream_t stream, const void* x, const void* weight, void* y,
                                                      int batch, int dim, int seqLen, int kernelSize,
                                                      cudnnDataType_t dataType) {
  auto entry =
      TESSERA_CALL(cudnnFFTCausalConv1dForward, stream, x, weight, y, batch, dim, seqLen, kernelSize, dataType);
  return answer(entry, [&] {
    Sizes s{batch, dim, seqLen, kernelSize, dataType};
    check_aligned(x, "x"), check_aligned(weight, "weight"), check_aligned(y, "y");
    check_fft(s);
    Call call(handle_for(stream), "fft_causal_conv1d");
    call.input(kX, s.sequences(), x, "x").input(kWeight, s.weight(s.type), weight, "weight");
    call.output(kY, s.sequences(), y, "y");
    call.run([&](Maker& m) { m.add(ops::causal_conv1d, {m[kX], m[kWeight]}, {m.result(kY)}, kReversed, s.compute()); });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFFTCausalConv1dBackward(cudaStream_t stream, const void* x, const void* weight,
                                                       const void* dy, void* dx, void* dweight, int batch, int dim,
                                                       int seqLen, int kernelSize, cudnnDataType_t dataType) {
  auto entry = TESSERA_CALL(cudnnFFTCausalConv1dBackward, stream, x, weight, dy, dx, dweight, batch, dim, seqLen,
                            kernelSize, dataType);
  return answer(entry, [&] {
    Sizes s{batch, dim, seqLen, kernelSize, dataType};
    check_aligned(x, "x"), check_aligned(weight, "weight"), check_aligned(dy, "dy");
    check_aligned(dx, "dx"), check_aligned(dweight, "dweight");
    check_fft(s);
    Call call(handle_for(stream), "fft_causal_conv1d_bwd");
    call.input(kX, s.sequences(), x, "x").input(kWeight, s.weight(s.type), weight, "weight");
    call.input(kDy, s.sequences(), dy, "dy").output(kDx, s.sequences(), dx, "dx");
    call.output(kDweight, s.weight(s.type), dweight, "dweight");
    call.run([&](Maker& m) {
      m.add(ops::causal_conv1d_bwd, {m[kX], m[kWeight], m[kDy]}, {m.result(kDx), m.result(kDweight)}, kReversed,
            s.compute());
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnLongFFTCausalConv1dGetBufferSizes(int batch, int dim, int seqLen, int kernelSize,
                                                                 cudnnDataType_t dataType, size_t* workspaceSizeInBytes,
                                                                 size_t* reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnLongFFTCausalConv1dGetBufferSizes, batch, dim, seqLen, kernelSize, dataType,
                            workspaceSizeInBytes, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    size_t& workspace = given(workspaceSizeInBytes, "workspaceSizeInBytes");
    size_t& reserve = given(reserveSpaceSizeInBytes, "reserveSpaceSizeInBytes");
    Sizes s{batch, dim, seqLen, kernelSize, dataType};
    check_long_fft(s);
    workspace = reserve = LongBuffers(s).bytes;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnLongFFTCausalConv1dForward(cudaStream_t stream, const void* x, const void* weight,
                                                          void* y, int batch, int dim, int seqLen, int kernelSize,
                                                          cudnnDataType_t dataType, void* workspace,
                                                          size_t workspaceSizeInBytes, void* reserveSpace,
                                                          size_t reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnLongFFTCausalConv1dForward, stream, x, weight, y, batch, dim, seqLen, kernelSize,
                            dataType, workspace, workspaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    Sizes s{batch, dim, seqLen, kernelSize, dataType};
    check_aligned(x, "x"), check_aligned(weight, "weight"), check_aligned(y, "y");
    check_long_fft(s);
    LongBuffers buffers(s);
    buffers.check(workspace, workspaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
    auto* kept = static_cast<std::byte*>(reserveSpace);
    Call call(handle_for(stream), "long_fft_causal_conv1d");
    call.input(kX, s.sequences(), x, "x").input(kWeight, s.weight(s.type), weight, "weight");
    call.output(kY, s.sequences(), y, "y");
    call.output(kDx, s.sequences(), kept, "reserveSpace");
    call.output(kDweight, s.weight(s.type), kept + buffers.kernels, "reserveSpace");
    auto make = [&](Maker& m) {
      m.add(ops::causal_conv1d, {m[kX], m[kWeight]}, {m.result(kY)}, kReversed, s.compute());
      m.pointwise({}, {m[kX]}, s.compute(), m.result(kDx));
      m.pointwise({}, {m[kWeight]}, s.compute(), m.result(kDweight));
    };
    call.run_in(workspace, workspaceSizeInBytes, make);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnLongFFTCausalConv1dBackward(cudaStream_t stream, const void* dy, void* dx, void* dweight,
                                                           int batch, int dim, int seqLen, int kernelSize,
                                                           cudnnDataType_t dataType, void* workspace,
                                                           size_t workspaceSizeInBytes, void* reserveSpace,
                                                           size_t reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnLongFFTCausalConv1dBackward, stream, dy, dx, dweight, batch, dim, seqLen, kernelSize,
                            dataType, workspace, workspaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    Sizes s{batch, dim, seqLen, kernelSize, dataType};
    check_aligned(dy, "dy"), check_aligned(dx, "dx"), check_aligned(dweight, "dweight");
    check_long_fft(s);
    LongBuffers buffers(s);
    buffers.check(workspace, workspaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
    const auto* kept = static_cast<const std::byte*>(reserveSpace);
    Call call(handle_for(stream), "long_fft_causal_conv1d_bwd");
    call.input(kX, s.sequences(), kept, "reserveSpace");
    call.input(kWeight, s.weight(s.type), kept + buffers.kernels, "reserveSpace");
    call.input(kDy, s.sequences(), dy, "dy").output(kDx, s.sequences(), dx, "dx");
    call.output(kDweight, s.weight(s.type), dweight, "dweight");
    auto make = [&](Maker& m) {
      m.add(ops::causal_conv1d_bwd, {m[kX], m[kWeight], m[kDy]}, {m.result(kDx), m.result(kDweight)}, kReversed,
            s.compute());
    };
    call.run_in(workspace, workspaceSizeInBytes, make);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnB2BCausalConv1dForward(cudaStream_t stream, const void* x, const void* weightsProj,
                                                      const void* weightsMixer, const void* skipBias, void* y,
                                                      void* yGated, int batch, int dim, int seqLen, int kernelSizeProj,
                                                      int kernelSizeMixer, cudnnDataType_t dataType) {
  auto entry = TESSERA_CALL(cudnnB2BCausalConv1dForward, stream, x, weightsProj, weightsMixer, skipBias, y, yGated,
                            batch, dim, seqLen, kernelSizeProj, kernelSizeMixer, dataType);
  return answer(entry, [&] {
    PairSizes s{batch, dim, seqLen, kernelSizeProj, kernelSizeMixer, dataType};
    s.check();
    Call call(handle_for(stream), "b2b_causal_conv1d");
    call.input(kX, s.x(), x, "x").input(kWeight, s.projections(s.type), weightsProj, "weightsProj");
    call.input(kMixer, s.mixers(s.type), weightsMixer, "weightsMixer");
    call.input(kSkip, s.skips(s.type), skipBias, "skipBias");
    call.output(kY, s.y(), y, "y").output(kGated, s.y(), yGated, "yGated");
    call.run([&](Maker& m) {
      m.add(ops::b2b_causal_conv1d, {m[kX], m[kWeight], m[kMixer], m[kSkip]}, {m.result(kY), m.result(kGated)},
            std::any(ops::b2b_causal_conv1d.defaults), s.compute());
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnB2BCausalConv1dBackward(cudaStream_t stream, const void* x, const void* weightsProj,
                                                       const void* weightsMixer, const void* skipBias, const void* y,
                                                       const void* dy, void* dx, void* dweightsProj,
                                                       void* dweightsMixer, void* dskipBias, int batch, int dim,
                                                       int seqLen, int kernelSizeProj, int kernelSizeMixer,
                                                       cudnnDataType_t dataType, cudnnDataType_t dwDataType) {
  auto entry = TESSERA_CALL(cudnnB2BCausalConv1dBackward, stream, x, weightsProj, weightsMixer, skipBias, y, dy, dx,
                            dweightsProj, dweightsMixer, dskipBias, batch, dim, seqLen, kernelSizeProj, kernelSizeMixer,
                            dataType, dwDataType);
  return answer(entry, [&] {
    PairSizes s{batch, dim, seqLen, kernelSizeProj, kernelSizeMixer, dataType};
    s.check();
    check_gradient_type(dataType, dwDataType);
    Call call(handle_for(stream), "b2b_causal_conv1d_bwd");
    call.input(kX, s.x(), x, "x").input(kWeight, s.projections(s.type), weightsProj, "weightsProj");
    call.input(kMixer, s.mixers(s.type), weightsMixer, "weightsMixer");
    call.input(kSkip, s.skips(s.type), skipBias, "skipBias");
    call.input(kY, s.y(), y, "y").input(kDy, s.y(), dy, "dy").output(kDx, s.x(), dx, "dx");
    call.output(kDweight, s.projections(dwDataType), dweightsProj, "dweightsProj");
    call.output(kDmixer, s.mixers(dwDataType), dweightsMixer, "dweightsMixer");
    call.output(kDskip, s.skips(dwDataType), dskipBias, "dskipBias");
    call.run([&](Maker& m) {
      auto g = m.add(ops::b2b_causal_conv1d_bwd, {m[kX], m[kWeight], m[kMixer], m[kSkip], m[kY], m[kDy]},
                     {m.result(kDx), kNew, kNew, kNew}, std::any(ops::b2b_causal_conv1d_bwd.defaults), s.compute());
      m.accumulate(kDweight, g[1]);
      m.accumulate(kDmixer, g[2]);
      m.accumulate(kDskip, g[3]);
    });
  });
}
