// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/score_mod.hpp"

#include <algorithm>

#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu::attention {
namespace {

constexpr int64_t kRegister = kBlock * 8;  // bytes: a block of the widest lane

}  // namespace

int64_t ScoreMod::scratch_bytes() const { return (static_cast<int64_t>(code_.expr.code.size()) + 1) * kRegister; }

// A run of whole key rows of the tile, at most kBlock elements.
struct ScoreMod::Block {
  Tensors tensors;
  const Lanes& lanes;
  int64_t first, keys;  // keys
  const float* params[2];
  float* result;
  std::byte* scratch;
  int64_t size() const { return keys * lanes.width; }
  void* reg(int i) const { return scratch + i * kRegister; }
};

void ScoreMod::load(const Block& b, const Instr& i, const ScoreCode::Source& from, void* y) const {
  const Kernels& k = kernels();
  if (from.param >= 0) return k.load(DType::f32, i.lane, b.params[from.param], 0, 1, y, b.size());
  const Broadcast& m = from.memory;
  const void* base = from.constant ? from.constant : b.tensors[m.id];
  if (m.batch == 0 && m.head == 0 && m.query == 0 && m.key == 0) return k.load(m.type, i.lane, base, 0, 0, y, b.size());
  // Each lane's keys lie apart from the next lane's.
  std::byte* column = b.scratch + static_cast<int64_t>(code_.expr.code.size()) * kRegister;
  int64_t bytes = lane_bytes(i.lane);
  for (int64_t lane = 0; lane < b.lanes.width; ++lane) {
    int64_t at = b.lanes.b * m.batch + b.lanes.head[lane] * m.head + b.lanes.query[lane] * m.query + b.first * m.key;
    k.load(m.type, i.lane, base, at, m.key, column, b.keys);
    for (int64_t key = 0; key < b.keys; ++key)
      std::copy_n(column + key * bytes, bytes, static_cast<std::byte*>(y) + (key * b.lanes.width + lane) * bytes);
  }
}

void ScoreMod::index(const Block& b, int axis, int64_t* y) const {
  for (int64_t key = 0; key < b.keys; ++key)
    for (int64_t lane = 0; lane < b.lanes.width; ++lane) {
      int64_t at[] = {b.lanes.b, b.lanes.head[lane], b.lanes.query[lane], b.first + key};
      y[key * b.lanes.width + lane] = at[axis];
    }
}

void ScoreMod::run(const Block& b, int at) const {
  const Kernels& k = kernels();
  const Instr& i = code_.expr.code[static_cast<size_t>(at)];
  auto operand = [&](int v) -> const void* { return v < 0 ? nullptr : b.reg(v); };
  void* y = b.reg(at);
  switch (i.kind) {
    case Instr::load:
      return load(b, i, code_.sources[static_cast<size_t>(at)], y);
    case Instr::constant: {
      auto real = static_cast<float>(i.value);
      auto integer = static_cast<int64_t>(i.value);
      const void* one = i.lane == Lane::f32 ? static_cast<const void*>(&real) : &i.value;
      return k.fill(i.lane, i.lane == Lane::i64 ? &integer : one, y, b.size());
    }
    case Instr::index:
      return index(b, i.axis, static_cast<int64_t*>(y));
    case Instr::apply:
      return k.apply(i.lane, {&i.options, operand(i.a), operand(i.b), operand(i.c), false, false, false, y, b.size()});
    case Instr::convert:
      return k.convert(code_.expr.code[static_cast<size_t>(i.a)].lane, i.lane, operand(i.a), y, b.size());
    case Instr::round:
      return k.round(i.type, i.lane, operand(i.a), y, b.size());
    case Instr::store:
      return k.store(DType::f32, i.lane, operand(i.a), b.result, 0, 1, b.size());
    case Instr::random:
    case Instr::reduce:
    case Instr::across:
      break;  // declined by check_score_mod
  }
}

void ScoreMod::apply(Tensors t, const Lanes& lanes, int64_t first, int64_t keys,
                     std::initializer_list<const float*> params, float* result, std::byte* scratch) const {
  int64_t step = kBlock / lanes.width;
  for (int64_t key = 0; key < keys; key += step) {
    Block b = {t, lanes, first + key, std::min(step, keys - key), {}, result + key * lanes.width, scratch};
    size_t p = 0;
    for (const float* x : params) b.params[p++] = x + key * lanes.width;
    for (int i = 0; i < static_cast<int>(code_.expr.code.size()); ++i) run(b, i);
  }
}

}  // namespace tsr::cpu::attention
