// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace.
#include <cmath>
#include <cstdint>
#include <utility>

#include "engines/cpu/rnn/cells.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace tsr::cpu::TESSERA_ISA {
namespace {

#include "engines/cpu/fused/vectors.inc"
// Needs the vectors.
#include "engines/cpu/fused/vector_math.inc"

void relu(const CellRun& r) {
  float* __restrict a = r.gate[0];
  float* __restrict h = r.h;
  const float* bias = r.bias[0];
  for (int64_t i = 0; i < r.n; ++i) {
    float s = a[i] + bias[i];
    a[i] = h[i] = s < 0.0f ? 0.0f : s;
  }
}

void tanh(const CellRun& r) {
  float* __restrict a = r.gate[0];
  float* __restrict h = r.h;
  const float* bias = r.bias[0];
  for (int64_t i = 0; i < r.n; ++i) a[i] = h[i] = tanh_f32(a[i] + bias[i]);
}

// The clipped cell state; NaN fails both comparisons and passes.
[[gnu::always_inline]] inline float clip(float c, float low, float high, bool nan) {
  float v = c < low ? low : c > high ? high : c;
  return nan && c != c ? low : v;
}

void lstm(const CellRun& r) {
  float* __restrict in = r.gate[0], * __restrict forget = r.gate[1], * __restrict fresh = r.gate[2], * __restrict out = r.gate[3];
  float* __restrict c = r.c, * __restrict h = r.h;
  const float *b0 = r.bias[0], *b1 = r.bias[1], *b2 = r.bias[2], *b3 = r.bias[3];
  float low = r.clip_low, high = r.clip_high;
  bool nan = r.clip_nan;
  for (int64_t i = 0; i < r.n; ++i) {
    float a = sigmoid_f32(in[i] + b0[i]), f = sigmoid_f32(forget[i] + b1[i]), g = tanh_f32(fresh[i] + b2[i]),
          o = sigmoid_f32(out[i] + b3[i]);
    float next = clip(f * c[i] + a * g, low, high, nan);
    in[i] = a, forget[i] = f, fresh[i] = g, out[i] = o;
    c[i] = next;
    h[i] = o * tanh_f32(next);
  }
}

void gru(const CellRun& r) {
  float* __restrict reset = r.gate[0], * __restrict update = r.gate[1], * __restrict fresh = r.gate[2];
  float* __restrict recurrent = r.recurrent, * __restrict h = r.h;
  const float *b0 = r.bias[0], *b1 = r.bias[1], *b2 = r.bias[2], *b3 = r.recurrent_bias;
  for (int64_t i = 0; i < r.n; ++i) {
    float a = sigmoid_f32(reset[i] + b0[i]), z = sigmoid_f32(update[i] + b1[i]), s = recurrent[i] + b3[i];
    float g = tanh_f32(fresh[i] + b2[i] + a * s);
    reset[i] = a, update[i] = z, fresh[i] = g, recurrent[i] = s;
    h[i] = (1.0f - z) * g + z * h[i];
  }
}

void relu_bwd(const CellRun& r) {
  float* __restrict a = r.gate[0];
  for (int64_t i = 0; i < r.n; ++i) a[i] = a[i] > 0.0f ? r.dh[i] : 0.0f;
}

void tanh_bwd(const CellRun& r) {
  float* __restrict a = r.gate[0];
  for (int64_t i = 0; i < r.n; ++i) a[i] = r.dh[i] * (1.0f - a[i] * a[i]);
}

void lstm_bwd(const CellRun& r) {
  float* __restrict in = r.gate[0], * __restrict forget = r.gate[1], * __restrict fresh = r.gate[2], * __restrict out = r.gate[3], * __restrict dc = r.dc;
  const float *dh = r.dh, *old_c = r.old_c;
  float low = r.clip_low, high = r.clip_high;
  bool nan = r.clip_nan, clips = r.clips;
  for (int64_t i = 0; i < r.n; ++i) {
    float a = in[i], f = forget[i], g = fresh[i], o = out[i], d = dh[i];
    float sum = f * old_c[i] + a * g, tanh_c = tanh_f32(clip(sum, low, high, nan));
    float cell = dc[i] + d * o * (1.0f - tanh_c * tanh_c);
    // Where clipping replaced the state nothing flows back.
    bool replaced = clips && (sum < low || sum > high || (nan && sum != sum));
    cell = replaced ? cell * 0.0f : cell;
    in[i] = cell * g * a * (1.0f - a);
    forget[i] = cell * old_c[i] * f * (1.0f - f);
    fresh[i] = cell * a * (1.0f - g * g);
    out[i] = d * tanh_c * o * (1.0f - o);
    dc[i] = cell * f;
  }
}

void gru_bwd(const CellRun& r) {
  float* __restrict reset = r.gate[0], * __restrict update = r.gate[1], * __restrict fresh = r.gate[2], * __restrict recurrent = r.recurrent, * __restrict before = r.dh_before;
  const float *dh = r.dh, *old_h = r.old_h;
  for (int64_t i = 0; i < r.n; ++i) {
    float a = reset[i], z = update[i], g = fresh[i], d = dh[i];
    float dg = d * (1.0f - z) * (1.0f - g * g);
    reset[i] = dg * recurrent[i] * a * (1.0f - a);
    update[i] = d * (old_h[i] - g) * z * (1.0f - z);
    fresh[i] = dg;
    recurrent[i] = dg * a;
    before[i] = d * z;
  }
}

}  // namespace

extern const Cells kCells;
const Cells kCells = {relu, tanh, lstm, gru, relu_bwd, tanh_bwd, lstm_bwd, gru_bwd};

}  // namespace tsr::cpu::TESSERA_ISA
