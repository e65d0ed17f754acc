// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/resample/separable.hpp"

#include <algorithm>

namespace tsr::cpu {
namespace {

int64_t rows_between(const GatherShape& s) { return s.images * s.channels * s.axes[0].size() * s.axes[1].size(); }

// Channels take the place of the first axis, positions along the row that of channels.
GatherShape columns(const GatherShape& s, DType type) {
  GatherShape c;
  int64_t width = s.source_size[2], height = s.axes[1].size(), depth = s.axes[0].size();
  c.what = s.what;
  c.images = s.images, c.channels = width;
  c.axes = {identity_taps(s.channels), s.axes[0], s.axes[1]};
  c.source_size = {s.channels, s.source_size[0], s.source_size[1]};
  c.padding = s.padding;
  c.source.type = s.source.type;
  c.source.image = s.source.image, c.source.channel = s.source.spatial[2];
  c.source.spatial = {s.source.channel, s.source.spatial[0], s.source.spatial[1]};
  c.result.type = type;
  c.result.image = s.channels * depth * height * width, c.result.channel = 1;
  c.result.spatial = {depth * height * width, height * width, width};
  return c;
}

// Every row is a plane.
GatherShape rows(const GatherShape& s, DType type) {
  GatherShape r;
  int64_t width = s.source_size[2], height = s.axes[1].size();
  r.what = s.what;
  r.images = s.images * s.channels * s.axes[0].size(), r.channels = height;
  r.axes = {identity_taps(1), identity_taps(1), s.axes[2]};
  r.source_size = {1, 1, width};
  r.alpha = s.alpha, r.padding = s.padding;
  r.source.type = type;
  r.source.image = height * width, r.source.channel = width, r.source.spatial = {0, 0, 1};
  r.result.type = s.result.type;
  r.result.image = s.axes[0].size() == 1 ? s.result.channel : s.result.spatial[0];
  r.result.channel = s.result.spatial[1], r.result.spatial = {0, 0, s.result.spatial[2]};
  return r;
}

// Whether the planes of the result, and their slices, follow each other at equal distances.
bool is_regular(const GatherShape& s) {
  const PlaneTensor& t = s.result;
  int64_t slices = s.axes[0].size();
  bool planes = s.images == 1 || t.image == s.channels * t.channel;
  return planes && (slices == 1 || t.channel == slices * t.spatial[0]);
}

}  // namespace

bool separates(const GatherShape& s) {
  bool few = s.images * s.channels < kLaneBlock && rows_between(s) >= kLaneBlock;
  bool wide = s.source.spatial[2] == 1 && s.source_size[2] >= kLaneBlock;
  return few && wide && s.what != Collect::select && !s.indexed && is_regular(s);
}

template <class T>
SeparableGather<T>::SeparableGather(const GatherShape& s, int threads)
    : between_bytes_((static_cast<size_t>(rows_between(s) * s.source_size[2]) * sizeof(T) + 255) / 256 * 256),
      columns_(columns(s, sizeof(T) == 8 ? DType::f64 : DType::f32), threads),
      rows_(rows(s, sizeof(T) == 8 ? DType::f64 : DType::f32), threads) {}

template <class T>
size_t SeparableGather<T>::workspace_bytes() const {
  return between_bytes_ + std::max(columns_.workspace_bytes(), rows_.workspace_bytes());
}

template <class T>
void SeparableGather<T>::run(const GatherPointers& p, std::byte* workspace) const {
  std::byte* rest = workspace + between_bytes_;
  columns_.run({p.source, workspace, nullptr}, rest);
  rows_.run({workspace, p.result, nullptr}, rest);
}

template class SeparableGather<float>;
template class SeparableGather<double>;

}  // namespace tsr::cpu
