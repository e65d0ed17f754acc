// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/attention/steps.hpp"

#include <algorithm>

namespace tsr::cuda {
namespace {

std::string qualified(DType t) {
  return t == DType::f32 || t == DType::f64 ? device_type(t) : "tsr::dev::" + device_type(t);
}

}  // namespace

void AttentionLaunches::add(Program p, int64_t blocks, int64_t shared_bytes, Cut cut) {
  if (blocks == 0) return;
  grids_.push_back({.blocks = blocks, .threads = p.threads, .shared_bytes = shared_bytes});
  cuts_.push_back(cut);
  programs_.push_back(std::move(p));
}

void AttentionLaunches::run(const dev::attention::AttentionArgs& args, void* stream) const {
  dev::attention::AttentionArgs a = args;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const Cut& c = cuts_[i];
    a.parts = c.parts, a.splits = c.splits;
    a.row_tiles = c.tiles > 0 ? c.tiles : args.row_tiles, a.key_tiles = c.tiles > 0 ? c.tiles : args.key_tiles;
    a.first_block = static_cast<dev::i32>(c.first_block);
    kernels_[i]->launch(grids_[i], stream, a);
  }
}

AttentionStep::AttentionStep(const Region& r, const Device& d)
    : g_(*r.graph),
      n_(r.graph->node(r.nodes[0])),
      d_(d),
      p_(g_, n_),
      options_(options_text(g_, n_, p_)),
      arguments_(g_, p_, options_),
      wide_(n_.compute == DType::f64),
      lane_bytes_(wide_ ? 8 : 4) {
  dev::attention::AttentionArgs& a = arguments_.base();
  a.group = static_cast<int>(p_.group);
  a.row_tiles = static_cast<int>(ceil_div(p_.group * p_.n.sq, dev::attention::kTile));
  a.key_tiles = static_cast<int>(ceil_div(p_.n.skv, dev::attention::kTile));
  a.parts = a.splits = 1;
  a.rounds_p = p_.rounds_to_fp8;
}

// In f64 a number takes two registers.
AttentionStep::Columns AttentionStep::columns_of(int64_t width) const {
  int64_t slices = ceil_div(width, dev::attention::kTile);
  int held = slices <= 1 || wide_ ? 1 : slices <= 2 ? 2 : 4;
  return {held, static_cast<int>(std::max<int64_t>(1, ceil_div(slices, held)))};
}

Program AttentionStep::program(const char* include, const std::string& function, std::initializer_list<DType> types,
                               const std::string& more, int threads, int blocks_per_unit) const {
  std::string list;
  for (DType t : types) list += ", " + qualified(t);
  return {.include = cat("engines/cuda/attention/", include, ".cuh"),
          .generated = more.empty() ? "" : options_.text,
          .args = "tsr::dev::attention::AttentionArgs",
          .body = cat("tsr::dev::attention::", function, wide_ ? "double" : "float", list, more, ">"),
          .threads = threads,
          .blocks_per_unit = blocks_per_unit};
}

int64_t AttentionStep::tile_bytes() const {
  return static_cast<int64_t>(wide_ ? sizeof(dev::attention::TileMemory<double>)
                                    : sizeof(dev::attention::TileMemory<float>));
}

int AttentionStep::splits_of(int64_t blocks, int64_t wanted, int64_t length, int64_t least) {
  int64_t most = std::max<int64_t>(1, length / least);
  return static_cast<int>(std::clamp<int64_t>(wanted / std::max<int64_t>(1, blocks), 1, most));
}

int AttentionStep::tiles_beyond(int64_t sequences) const {
  constexpr int64_t kMost = 64;
  return static_cast<int>(std::clamp<int64_t>(2 * d_.units / std::max<int64_t>(1, sequences), 1, kMost));
}

void AttentionStep::add_amax(const Region& r, int which, int slot, int64_t blocks) {
  attention::Sequences to = attention::make_output(r, slot);
  if (!to.given()) return;
  wants_amax_ = true;
  dev::attention::AttentionArgs& a = arguments_.base();
  arguments_.set(a.amax_to[which], to);
  a.amax_count[which] = blocks;
  arguments_.reserve(a.amax[which], blocks * lane_bytes_);
}

void AttentionStep::join_amax() {
  if (wants_amax_) launches_.add(plain("join_amax<"), dev::attention::kAmaxes, dev::attention::kAroundShared, {});
}

}  // namespace tsr::cuda
