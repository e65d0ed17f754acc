// SPDX-License-Identifier: Apache-2.0
// The arguments of attention kernels, filled from a Problem when a step is built; pointers and the values of scalars
// are set at each run.
#pragma once

#include <algorithm>
#include <cmath>

#include "engines/attention/problem.hpp"
#include "engines/cuda/scores/args.cuh"
#include "engines/cuda/scores/options_text.hpp"
#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "graph/ops/block_scale.hpp"

namespace tsr::cuda {

// `Args` begins with a dev::attention::ScoreArgs.
template <class Args>
class Arguments : public KernelArgs<Args> {
 public:
  // Everything that all of them share.
  Arguments(const Graph& g, const attention::Problem& p, const OptionsText& options) : g_(g) {
    fill(p);
    for (size_t i = 0; i < options.numbers.size(); ++i) {
      base().numbers[i] = options.numbers[i].value;
      if (options.numbers[i].tensor != kNone) set(base().numbers[i], options.numbers[i].tensor);
    }
    for (size_t i = 0; i < options.captures.size(); ++i) set(base().captures[i], options.captures[i]);
  }

  Args& base() { return this->args; }
  void set(dev::attention::Numbers& to, const attention::Numbers& from, double fallback) {
    to = {nullptr, dev::ElementType::f32, from.stride, fallback, 0};
    if (!from.given()) return;
    to.type = element_type(from.type);
    if (!g_.tensor(from.id).on_host()) return this->pointer(to.data, from.id);
    this->real(to.value, from.type, from.id);
    this->integer(to.integer, from.type, from.id);
  }
  void set(dev::attention::Spread& to, const attention::Broadcast& from) {
    if (!from.given()) return;
    to = {nullptr, 0, {from.batch, from.head, from.query, from.key}};
    if (g_.tensor(from.id).on_host())
      set(to.value, from.id);
    else
      this->pointer(to.data, from.id);
  }
  void set(dev::attention::Sequences& to, const attention::Sequences& from) {
    if (!from.given()) return;
    to.type = element_type(from.type);
    to.offsets_type = element_type(from.offsets_type);
    for (int i = 0; i < 4; ++i) to.strides[i] = from.strides[i];
    to.steps = from.dims[2];
    to.multiplier = from.multiplier;
    this->pointer(to.data, from.id);
    this->pointer(to.offsets, from.offsets);
  }
  void set(dev::attention::Operand& to, const attention::Sequences& from) {
    set(static_cast<dev::attention::Sequences&>(to), from);
    to.blocks = from.dims[0];
    if (from.pages) set(to.pages, *from.pages), to.page = dev::make_divisor(from.dims[2]);
    if (from.scales == kNone) return;
    this->pointer(to.scales, from.scales);
    for (int i = 0; i < 4; ++i) to.scale_strides[i] = from.scale_tensor.strides[i];
    to.scale_steps = static_cast<int32_t>(from.scale_block[2]);
    to.scale_columns = static_cast<int32_t>(from.scale_block[3]);
    if (from.scale_tensor.reordering == Reordering::f8_128x4)
      to.scale_tiles = from.scale_tensor.dims[block_axis(from.scale_block)] / 4;
  }
  // A number for score_mod that arrives with each run.
  void set(double& to, TensorId t) { this->real(to, g_.tensor(t).dtype, t); }
  // Space of the workspace, or nothing for no bytes.
  template <class T>
  void reserve(T*& to, int64_t bytes) {
    if (bytes == 0) return;
    this->workspace(to, workspace_bytes_);
    workspace_bytes_ += align_up(static_cast<size_t>(bytes));
  }
  // The same, with boxes that the copy engine brings from there.
  template <class T>
  void reserve(T*& to, int64_t bytes, dev::TensorMap& map, const TensorBox& box, const Device& d) {
    this->workspace_map(map, box, workspace_bytes_, d);
    reserve(to, bytes);
  }
  size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  void fill(const attention::Problem& p) {
    dev::attention::ScoreArgs& a = base();
    auto size = [](int64_t n) { return static_cast<int32_t>(n); };
    a.b = size(p.n.b), a.hq = size(p.n.hq), a.hk = size(p.n.hk), a.hv = size(p.n.hv);
    a.sq = size(p.n.sq), a.skv = size(p.n.skv), a.d = size(p.n.d), a.dv = size(p.n.dv);
    a.left = std::min(p.options.left.value_or(attention::kFar), attention::kFar);
    a.right = std::min(p.options.right.value_or(attention::kFar), attention::kFar);
    a.bottom_right = p.options.align == tessera::Align::bottom_right;
    a.slopes_given = p.slopes.given(), a.stats_log2 = p.options.stats_log2;
    a.prefix_q = p.cu_seq_len_q.given(), a.prefix_kv = p.cu_seq_len_kv.given();
    a.padded_q = a.prefix_q || p.seq_len_q.given(), a.padded_kv = a.prefix_kv || p.seq_len_kv.given();
    a.open_q = p.open.q, a.open_kv = p.open.kv;
    a.keep_below = static_cast<float>(p.keep_threshold()) * 0x1p-24f;
    set(a.lengths_q, a.prefix_q ? p.cu_seq_len_q : p.seq_len_q, 0);
    set(a.lengths_kv, a.prefix_kv ? p.cu_seq_len_kv : p.seq_len_kv, 0);
    set(a.sink, p.sink, -INFINITY);
    set(a.slopes, p.slopes, 0);
    set(a.seed, p.dropout_seed, 0);
    set(a.offset, p.dropout_offset, 0);
    set(a.keep_factor, p.dropout_scale, p.keep_factor());
    set(a.bias, p.bias);
    set(a.block_mask, p.block_mask);
    set(a.dropout_mask, p.dropout_mask);
    a.scale_option = p.options.scale;
    set(a.scale, p.scale, 1);
    set(a.descale_q, p.descale_q, 1);
    set(a.descale_k, p.descale_k, 1);
    set(a.descale_v, p.descale_v, 1);
    set(a.descale_s, p.descale_s, 1);
    set(a.scale_s, p.scale_s, 1);
    set(a.q, p.q);
    set(a.k, p.k);
    set(a.v, p.v);
  }

  const Graph& g_;  // while it is filled
  size_t workspace_bytes_ = 0;
};

}  // namespace tsr::cuda
