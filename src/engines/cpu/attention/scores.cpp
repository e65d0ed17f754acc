// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/scores.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cpu/attention/vectors.hpp"
#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu::attention {

Scores::Scores(const Graph& g, const Node& n, const Problem& p) : p_(p) {
  if (p_.options.score_mod) modifier_.emplace(g, n, *p_.options.score_mod, 0);
}

Scores::Run Scores::start(Tensors t) const {
  Run run = {t};
  run.keep_factor = static_cast<float>(p_.dropout_scale.read(t, p_.keep_factor()));
  if (p_.options.dropout != 0) {
    run.seed = static_cast<uint64_t>(p_.dropout_seed.integer(t, 0));
    run.offset = static_cast<uint64_t>(p_.dropout_offset.integer(t, 0));
  }
  return run;
}

int64_t Scores::scratch_bytes() const {
  int64_t tiles = p_.bias.given() || drops() ? 2 : 0;
  return std::max(tiles * kRows * p_.key_tile * 4, modifier_ ? modifier_->scratch_bytes() : 0);
}

// Row by row, then turned: memory holds the keys of a query side by side.
void Scores::gather(const Run& run, const Broadcast& x, const Lanes& lanes, int64_t first, int64_t keys, float* rows,
                    float* y) const {
  for (int64_t i = 0; i < lanes.count; ++i) {
    int64_t at = lanes.b * x.batch + lanes.head[i] * x.head + lanes.query[i] * x.query + first * x.key;
    kernels().load(x.type, Lane::f32, run.tensors[x.id], at, x.key, rows + i * keys, keys);
  }
  tile().transpose(lanes.count, keys, rows, keys, y, lanes.width);
}

void Scores::finish(const Run& run, const Lanes& lanes, int64_t first, int64_t keys, float* s,
                    std::byte* scratch) const {
  const Vectors& v = vectors();
  auto *rows = reinterpret_cast<float*>(scratch), *turned = rows + kRows * p_.key_tile;
  if (modifier_) modifier_->apply(run.tensors, lanes, first, keys, {s}, s, scratch);
  if (p_.bias.given()) {
    gather(run, p_.bias, lanes, first, keys, rows, turned);
    v.add(keys * lanes.width, s, turned);
  }
  alignas(64) int32_t from[kRows], to[kRows];
  if (p_.alibi) {
    for (int64_t i = 0; i < lanes.width; ++i) from[i] = static_cast<int32_t>(first - lanes.query[i]);
    v.alibi(keys, lanes.width, s, lanes.slope, from);
  }
  if (first < lanes.inner_lo || first + keys > lanes.inner_hi) {
    auto within = [&](int64_t key) { return static_cast<int32_t>(std::clamp<int64_t>(key - first, 0, keys)); };
    for (int64_t i = 0; i < lanes.width; ++i) from[i] = within(lanes.first[i]), to[i] = within(lanes.last[i]);
    v.mask(keys, lanes.width, s, from, to);
  }
  if (p_.block_mask.given()) mask_blocks(run, lanes, first, keys, s);
}

bool Scores::visible(const Run& run, const Lanes& lanes, int64_t lane, int64_t key) const {
  int64_t at = lanes.b * p_.block_mask.batch + lanes.head[lane] * p_.block_mask.head +
               lanes.query[lane] / sdpa::kMaskBlock * p_.block_mask.query + key / sdpa::kMaskBlock * p_.block_mask.key;
  return load<int64_t>(p_.block_mask.type, run.tensors[p_.block_mask.id], at) != 0;
}

void Scores::mask_blocks(const Run& run, const Lanes& lanes, int64_t first, int64_t keys, float* s) const {
  for (int64_t i = 0; i < lanes.count; ++i)
    for (int64_t k = 0; k < keys;) {
      int64_t end = std::min(keys, round_up(first + k + 1, sdpa::kMaskBlock) - first);
      bool seen = visible(run, lanes, i, first + k);
      for (; k < end; ++k)
        if (!seen) s[k * lanes.width + i] = -INFINITY;
    }
}

bool Scores::hides(const Run& run, const Lanes& lanes, int64_t first, int64_t keys) const {
  if (!p_.block_mask.given()) return false;
  for (int64_t i = 0; i < lanes.count; ++i)
    for (int64_t k = first; k < first + keys; k = round_up(k + 1, sdpa::kMaskBlock))
      if (visible(run, lanes, i, k)) return false;
  return true;
}

void Scores::keep_row(const Run& run, int64_t b, int64_t h, int64_t query, int64_t first, int64_t keys,
                      float* y) const {
  if (p_.options.dropout == 0) return std::fill_n(y, keys, 1.0f), void();
  auto index = static_cast<uint64_t>(((b * p_.n.hq + h) * p_.n.sq + query) * p_.n.skv + first);
  vectors().keep(run.seed, run.offset, index, keys, p_.keep_threshold(), y);
}

void Scores::keep(const Run& run, const Lanes& lanes, int64_t first, int64_t keys, float* y, std::byte* scratch) const {
  auto* rows = reinterpret_cast<float*>(scratch);
  if (p_.dropout_mask.given()) return gather(run, p_.dropout_mask, lanes, first, keys, rows, y);
  for (int64_t i = 0; i < lanes.count; ++i)
    keep_row(run, lanes.b, lanes.head[i], lanes.query[i], first, keys, rows + i * keys);
  tile().transpose(lanes.count, keys, rows, keys, y, lanes.width);
}

}  // namespace tsr::cpu::attention
