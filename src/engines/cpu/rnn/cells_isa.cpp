// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. Loops take their arrays as restrict
// parameters: that is what makes compilers vectorise them.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engines/cpu/rnn/cells.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace tsr::cpu::TESSERA_ISA {
namespace {

#include "engines/cpu/vector/vectors.inc"
// Needs the vectors.
#include "engines/cpu/vector/vector_math.inc"

void relu_loop(int64_t n, float* __restrict a, float* __restrict h, const float* __restrict bias) {
  for (int64_t i = 0; i < n; ++i) {
    float s = a[i] + bias[i];
    a[i] = h[i] = s < 0.0f ? 0.0f : s;
  }
}

void tanh_loop(int64_t n, float* __restrict a, float* __restrict h, const float* __restrict bias) {
  for (int64_t i = 0; i < n; ++i) a[i] = h[i] = tanh_f32(a[i] + bias[i]);
}

// The clipped cell state.
[[gnu::always_inline]] inline float clip(float c, float low, float high, float for_nan) {
  return c != c ? for_nan : c < low ? low : c > high ? high : c;
}

void lstm_loop(int64_t n, float* __restrict in, float* __restrict forget, float* __restrict fresh,
               float* __restrict out, const float* __restrict b0, const float* __restrict b1,
               const float* __restrict b2, const float* __restrict b3, float* __restrict c, float* __restrict h,
               float low, float high, float for_nan) {
  for (int64_t i = 0; i < n; ++i) {
    float a = sigmoid_f32(in[i] + b0[i]), f = sigmoid_f32(forget[i] + b1[i]), g = tanh_f32(fresh[i] + b2[i]),
          o = sigmoid_f32(out[i] + b3[i]);
    float next = clip(f * c[i] + a * g, low, high, for_nan);
    in[i] = a, forget[i] = f, fresh[i] = g, out[i] = o;
    c[i] = next;
    h[i] = o * tanh_f32(next);
  }
}

void gru_loop(int64_t n, float* __restrict reset, float* __restrict update, float* __restrict fresh,
              float* __restrict recurrent, const float* __restrict b0, const float* __restrict b1,
              const float* __restrict b2, const float* __restrict b3, float* __restrict h) {
  for (int64_t i = 0; i < n; ++i) {
    float a = sigmoid_f32(reset[i] + b0[i]), z = sigmoid_f32(update[i] + b1[i]), s = recurrent[i] + b3[i];
    float g = tanh_f32(fresh[i] + b2[i] + a * s);
    reset[i] = a, update[i] = z, fresh[i] = g, recurrent[i] = s;
    h[i] = (1.0f - z) * g + z * h[i];
  }
}

void relu_bwd_loop(int64_t n, float* __restrict a, const float* __restrict dh) {
  for (int64_t i = 0; i < n; ++i) a[i] = a[i] > 0.0f ? dh[i] : 0.0f;
}

void tanh_bwd_loop(int64_t n, float* __restrict a, const float* __restrict dh) {
  for (int64_t i = 0; i < n; ++i) a[i] = dh[i] * (1.0f - a[i] * a[i]);
}

void lstm_bwd_loop(int64_t n, float* __restrict in, float* __restrict forget, float* __restrict fresh,
                   float* __restrict out, const float* __restrict old_c, float* __restrict dc,
                   const float* __restrict dh, float low, float high, float for_nan, float nan_inside) {
  for (int64_t i = 0; i < n; ++i) {
    float a = in[i], f = forget[i], g = fresh[i], o = out[i], d = dh[i];
    float sum = f * old_c[i] + a * g, tanh_c = tanh_f32(clip(sum, low, high, for_nan));
    // Where clipping replaced the state nothing flows back.
    float inside = sum != sum ? nan_inside : sum < low ? 0.0f : sum > high ? 0.0f : 1.0f;
    float cell = (dc[i] + d * o * (1.0f - tanh_c * tanh_c)) * inside;
    in[i] = cell * g * a * (1.0f - a);
    forget[i] = cell * old_c[i] * f * (1.0f - f);
    fresh[i] = cell * a * (1.0f - g * g);
    out[i] = d * tanh_c * o * (1.0f - o);
    dc[i] = cell * f;
  }
}

void gru_bwd_loop(int64_t n, float* __restrict reset, float* __restrict update, float* __restrict fresh,
                  float* __restrict recurrent, const float* __restrict old_h, float* __restrict dh) {
  for (int64_t i = 0; i < n; ++i) {
    float a = reset[i], z = update[i], g = fresh[i], d = dh[i];
    float dg = d * (1.0f - z) * (1.0f - g * g);
    reset[i] = dg * recurrent[i] * a * (1.0f - a);
    update[i] = d * (old_h[i] - g) * z * (1.0f - z);
    fresh[i] = dg;
    recurrent[i] = dg * a;
    dh[i] = d * z;
  }
}

float for_nan(const CellRun& r) { return r.clip_nan ? r.clip_low : __builtin_nanf(""); }

void relu(const CellRun& r) { relu_loop(r.n, r.gate[0], r.h, r.bias[0]); }
void tanh(const CellRun& r) { tanh_loop(r.n, r.gate[0], r.h, r.bias[0]); }
void lstm(const CellRun& r) {
  lstm_loop(r.n, r.gate[0], r.gate[1], r.gate[2], r.gate[3], r.bias[0], r.bias[1], r.bias[2], r.bias[3], r.c, r.h,
            r.clip_low, r.clip_high, for_nan(r));
}
void gru(const CellRun& r) {
  gru_loop(r.n, r.gate[0], r.gate[1], r.gate[2], r.recurrent, r.bias[0], r.bias[1], r.bias[2], r.recurrent_bias, r.h);
}
void relu_bwd(const CellRun& r) { relu_bwd_loop(r.n, r.gate[0], r.dh); }
void tanh_bwd(const CellRun& r) { tanh_bwd_loop(r.n, r.gate[0], r.dh); }
void lstm_bwd(const CellRun& r) {
  lstm_bwd_loop(r.n, r.gate[0], r.gate[1], r.gate[2], r.gate[3], r.old_c, r.dc, r.dh, r.clip_low, r.clip_high,
                for_nan(r), r.clip_nan ? 0.0f : 1.0f);
}
void gru_bwd(const CellRun& r) { gru_bwd_loop(r.n, r.gate[0], r.gate[1], r.gate[2], r.recurrent, r.old_h, r.dh); }

}  // namespace

extern const Cells kCells;
const Cells kCells = {relu, tanh, lstm, gru, relu_bwd, tanh_bwd, lstm_bwd, gru_bwd};

}  // namespace tsr::cpu::TESSERA_ISA
