// SPDX-License-Identifier: Apache-2.0
// Attention forward: one kernel over tiles, or the one for few queries; then what the keys' splits found is joined.
#include <algorithm>

#include "engines/cuda/attention/steps.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::fwd;

constexpr int64_t kFewQueries = 16;  // up to so many that share keys, reading is what counts

class ForwardStep : public AttentionStep {
 public:
  ForwardStep(const Region& r, const Device& d) : AttentionStep(r, d), rows_(p_.group * p_.n.sq) {
    dev::attention::AttentionArgs& a = arguments_.base();
    const std::pair<dev::attention::Sequences*, int> outputs[] = {
        {&a.o, kO}, {&a.stats, kStats}, {&a.max, kMax}, {&a.sum_exp, kSumExp}, {&a.dump, kRngDump}};
    for (auto [to, slot] : outputs) arguments_.set(*to, attention::make_output(r, slot));
    arguments_.set(a.scale_o, numbers(kScaleO), 1);
    two_passes_ = p_.rounds_to_fp8 || attention::make_output(r, kAmaxS).given();
    if (is_few())
      add_few(r);
    else
      add_tiles(r);
    if (attention::make_output(r, kRngDump).given()) {
      int64_t runs = p_.n.b * p_.n.hq * p_.n.sq * ceil_div(p_.n.skv, 4);
      launches_.add(program("around", "dump<", {}, ", tsr::dev::attention::Options", dev::attention::kAroundThreads),
                    ceil_div(runs, dev::attention::kAroundThreads), 0, {});
    }
    join_amax();
    launches_.compile(d);
  }

 private:
  int64_t groups() const { return p_.n.b * p_.groups(); }
  int64_t few_bytes() const {
    auto fixed = static_cast<int64_t>(wide_ ? sizeof(dev::attention::FewMemory<double>)
                                            : sizeof(dev::attention::FewMemory<float>));
    return fixed + dev::attention::kFewRows * dev::attention::few_pitch(static_cast<int>(p_.n.d)) * lane_bytes_;
  }
  static DType o_type(const Region& r) { return attention::make_output(r, kO).type; }
  bool is_few() const {
    constexpr int64_t kShared = 48 << 10, kWidest = dev::attention::kTileThreads;
    return !two_passes_ && rows_ <= kFewQueries && p_.n.dv > 0 && p_.n.dv <= kWidest && few_bytes() <= kShared;
  }

  void add_few(const Region& r) {
    int rows = 1;
    while (rows < rows_ && rows < dev::attention::kFewRows) rows *= 2;
    int64_t tiles_of_group = ceil_div(rows_, rows), blocks = groups() * tiles_of_group;
    arguments_.base().row_tiles = static_cast<int>(tiles_of_group);
    int splits = splits_of(blocks, int64_t{4} * d_.units, p_.n.skv, 2 * dev::attention::kFewKeys);
    launches_.add(tiles("few", "few<", {p_.q.type, p_.k.type, p_.v.type}, cat(", ", rows), 2), blocks * splits,
                  few_bytes(), {1, splits});
    add_combine(splits, o_type(r));
    add_beyond(r, p_.n.b * p_.n.hq * p_.n.sq);
  }

  void add_tiles(const Region& r) {
    Columns c = columns_of(p_.n.dv);
    int64_t blocks = groups() * arguments_.base().row_tiles * c.parts;
    int splits = two_passes_ ? 1 : splits_of(blocks, int64_t{2} * d_.units, p_.n.skv, 4 * dev::attention::kTile);
    launches_.add(tile_kernel(r, "forward<", c), blocks * splits, tile_bytes(), {c.parts, splits});
    if (splits > 1) add_combine(splits, o_type(r));
    add_beyond(r, splits > 1 ? p_.n.b * p_.n.hq * p_.n.sq : blocks);
  }

  Program tile_kernel(const Region& r, const char* function, Columns c) const {
    std::string more = cat(", ", c.slices, two_passes_ ? ", true" : ", false");
    return tiles("forward", function, {p_.q.type, p_.k.type, p_.v.type, o_type(r)}, more, c.slices);
  }

  // Queries of sequences that are longer than the sizes say. `blocks`: those that know largest magnitudes without them.
  void add_beyond(const Region& r, int64_t blocks) {
    int64_t more = 0;
    if (p_.open.q) {
      Columns c = columns_of(p_.n.dv);
      int tiles = tiles_beyond(groups() * c.parts);
      more = groups() * tiles * c.parts;
      launches_.add(tile_kernel(r, "forward_beyond<", c), more, tile_bytes(), {c.parts, 1, tiles, blocks});
    }
    add_amax(r, 0, kAmaxS, blocks + more);
    add_amax(r, 1, kAmaxO, blocks + more);
  }

  void add_combine(int splits, DType type) {
    dev::attention::AttentionArgs& a = arguments_.base();
    int64_t rows = p_.n.b * p_.n.hq * p_.n.sq, numbers = rows * splits;
    arguments_.reserve(a.part_o, numbers * p_.n.dv * lane_bytes_);
    arguments_.reserve(a.part_max, numbers * lane_bytes_);
    arguments_.reserve(a.part_sum, numbers * lane_bytes_);
    launches_.add(plain("combine<", {type}), rows, dev::attention::kAroundShared, {1, splits});
  }

  int64_t rows_;  // that share keys and values
  bool two_passes_;
};

}  // namespace

std::unique_ptr<Step> make_attention_forward(const Region& r, const Device& d) {
  return std::make_unique<ForwardStep>(r, d);
}

}  // namespace tsr::cuda
