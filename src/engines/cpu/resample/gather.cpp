// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/resample/gather.hpp"

#include <algorithm>
#include <utility>

#include "base/thread_pool.hpp"
#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {
namespace {

constexpr int64_t kMostLanes = 64;           // where values are transposed or converted
constexpr int64_t kScratchValues = 1 << 15;  // of one thread, if short rows allow it: half of a second-level cache
constexpr int64_t kShortest = 8;             // results of a piece of a row
constexpr int64_t kLeastWork = 4096;         // results that are worth a thread

template <class T>
constexpr Lane kLane = sizeof(T) == 8 ? Lane::f64 : Lane::f32;
template <class T>
constexpr DType kType = sizeof(T) == 8 ? DType::f64 : DType::f32;

int64_t whole_blocks(int64_t lanes) { return (lanes + kLaneBlock - 1) / kLaneBlock * kLaneBlock; }

template <class U>
size_t piece_bytes(int64_t count) {
  return (static_cast<size_t>(count) * sizeof(U) + 63) / 64 * 64;
}

}  // namespace

PlaneTensor::PlaneTensor(DType t, const Dims& strides) : type(t), image(strides[0]), channel(strides[1]) {
  int missing = 5 - strides.size();
  for (int d = 2; d < strides.size(); ++d) spatial[static_cast<size_t>(d - 2 + missing)] = strides[d];
}

template <class T>
struct Gather<T>::Worker {
  SourceRow<T>* rows;
  int64_t* held;  // which row of the source each slot holds
  T *values, *indices, *y, *index, *turned;
  int64_t group = -1, segment = -1;  // that the slots belong to
};

template <class T>
Gather<T>::Gather(GatherShape shape, int threads) : shape_(std::move(shape)), threads_(threads) {
  const GatherShape& s = shape_;
  bool side_by_side = s.source.channel == 1 && s.result.channel == 1 && (!s.indexed || s.index.channel == 1);
  bool converts = s.source.type != kType<T> || s.result.type != kType<T> || s.indexed;
  by_channels_ = side_by_side && s.channels >= kLaneBlock;
  if (by_channels_) {
    groups_ = converts ? (s.channels + kMostLanes - 1) / kMostLanes : 1;
    lanes_ = (s.channels + groups_ - 1) / groups_;
  } else {
    lanes_ = std::clamp(whole_blocks(s.images * s.channels), kLaneBlock, kMostLanes);
    groups_ = (s.images * s.channels + lanes_ - 1) / lanes_;
  }
  source_ = lanes_of(s.source), result_ = lanes_of(s.result), index_ = lanes_of(s.index);
  padding_.assign(static_cast<size_t>(lanes_), static_cast<T>(s.padding));
  cut_rows();
  lay_out_scratch();
  // The lists can be long: from here on there is one copy, in the type that the loops read.
  for (size_t d = 0; d < 3; ++d)
    for (const Tap& t : std::exchange(shape_.axes[d].taps, {}))
      taps_[d].push_back({t.source, static_cast<T>(t.weight), static_cast<T>(t.place)});
}

template <class T>
auto Gather<T>::lanes_of(const PlaneTensor& t) const -> Lanes {
  Lanes l{t};
  bool same = t.type == kType<T>;
  l.direct = by_channels_ && same;
  l.uniform = same && t.spatial[2] == 1 && (shape_.channels == 1 || t.image == shape_.channels * t.channel);
  l.plane = shape_.channels == 1 ? t.image : t.channel;
  return l;
}

// Cuts rows of results into pieces whose scratch memory stays in cache.
template <class T>
void Gather<T>::cut_rows() {
  for (size_t d = 0; d < 2; ++d) {
    const AxisTaps& a = shape_.axes[d];
    int64_t most = 0;
    kept_[d] = 1;
    for (int64_t i = 0; i < a.size(); ++i) {
      kept_[d] = std::max(kept_[d], sources(a, i, i + 1).size());
      most = std::max(most, a.first[static_cast<size_t>(i) + 1] - a.first[static_cast<size_t>(i)]);
    }
    most_rows_ *= most;
  }
  const AxisTaps& row = shape_.axes[2];
  int64_t copies = (source_.direct ? 0 : 1) + (shape_.what == Collect::select ? 1 : 0);
  int64_t length = std::max<int64_t>(1, row.size());
  for (;; length = (length + 1) / 2) {
    segments_.clear();
    longest_source_ = 0, longest_result_ = length;
    for (int64_t i = 0; i < row.size(); i += length) {
      int64_t count = std::min(length, row.size() - i);
      segments_.push_back({i, count, sources(row, i, i + count)});
      longest_source_ = std::max(longest_source_, segments_.back().source.size());
    }
    int64_t values = (kept_[0] * kept_[1] * longest_source_ * copies + 2 * length) * lanes_;
    if (values <= kScratchValues || length <= kShortest || (source_.direct && result_.direct && !shape_.indexed)) break;
  }
}

template <class T>
void Gather<T>::lay_out_scratch() {
  Worker w = worker(nullptr);
  worker_bytes_ = reinterpret_cast<size_t>(w.turned) +
                  piece_bytes<T>(by_channels_ ? 0 : lanes_ * std::max(longest_source_, longest_result_));
}

template <class T>
auto Gather<T>::worker(std::byte* memory) const -> Worker {
  auto place = reinterpret_cast<uintptr_t>(memory);
  auto take = [&]<class U>(U*& piece, int64_t count) {
    piece = reinterpret_cast<U*>(place);
    place += piece_bytes<U>(count);
  };
  int64_t slots = kept_[0] * kept_[1], slot = longest_source_ * lanes_, row = longest_result_ * lanes_;
  bool selects = shape_.what == Collect::select;
  Worker w;
  take(w.rows, most_rows_);
  take(w.held, slots);
  take(w.values, source_.direct ? 0 : slots * slot);
  take(w.indices, selects && !index_.direct ? slots * slot : 0);
  take(w.y, row);
  take(w.index, shape_.indexed && !selects ? row : 0);
  take(w.turned, 0);
  return w;
}

template <class T>
auto Gather<T>::planes(int64_t group) const -> Planes {
  if (!by_channels_) {
    int64_t first = group * lanes_;
    return {first, std::min(lanes_, shape_.images * shape_.channels - first)};
  }
  int64_t part = group % groups_, first = part * shape_.channels / groups_;
  return {group / groups_ * shape_.channels + first, (part + 1) * shape_.channels / groups_ - first};
}

template <class T>
int64_t Gather<T>::plane_offset(const PlaneTensor& t, int64_t plane) const {
  return plane / shape_.channels * t.image + plane % shape_.channels * t.channel;
}

template <class T>
auto Gather<T>::job(int64_t i) const -> Job {
  int64_t inner = shape_.axes[1].size(), outer = shape_.axes[0].size(), pieces = static_cast<int64_t>(segments_.size());
  int64_t row = i % inner, slice = i / inner % outer, rest = i / inner / outer;
  return {rest / pieces, rest % pieces, {slice, row}};
}

template <class T>
void Gather<T>::run(const GatherPointers& p, std::byte* workspace) const {
  int64_t rows = shape_.axes[0].size() * shape_.axes[1].size();
  int64_t all_groups = by_channels_ ? groups_ * shape_.images : groups_;
  int64_t jobs = rows * static_cast<int64_t>(segments_.size()) * all_groups;
  if (jobs == 0) return;
  // Neighbouring rows share what they read: few and long pieces of work.
  int64_t grain = std::clamp<int64_t>(jobs / (4 * threads_), 1, rows);
  grain = std::max(grain, kLeastWork / (longest_result_ * lanes_));
  parallel_for(jobs, grain, threads_, [&](int64_t first, int64_t last, int number) {
    Worker w = worker(workspace + worker_bytes_ * static_cast<size_t>(number));
    for (int64_t i = first; i < last; ++i) run_job(job(i), p, w);
  });
}

template <class T>
void Gather<T>::run_job(const Job& j, const GatherPointers& p, Worker& w) const {
  if (j.group != w.group || j.segment != w.segment) {
    std::fill_n(w.held, kept_[0] * kept_[1], -1);
    w.group = j.group, w.segment = j.segment;
  }
  const Segment& s = segments_[static_cast<size_t>(j.segment)];
  Planes group = planes(j.group);
  WindowRow<T> row;
  row.row_count = collect_rows(j, p, w);
  row.rows = w.rows;
  row.taps = taps_[2].data();
  row.first = shape_.axes[2].first.data() + s.first;
  row.origin = s.source.first;
  row.ahead = ahead(j);
  row.count = s.count;
  row.lanes = by_channels_ ? group.count : whole_blocks(group.count);
  row.padding = padding_.data();
  row.alpha = static_cast<T>(shape_.alpha);
  auto start = [&](const PlaneTensor& t) {
    return j.outer[0] * t.spatial[0] + j.outer[1] * t.spatial[1] + s.first * t.spatial[2];
  };
  // Where results go: to their place, or to scratch memory first.
  auto aim = [&](const Lanes& l, void* base, T* scratch, T*& to, int64_t& step) {
    bool direct = base && l.direct;
    to = direct ? static_cast<T*>(base) + plane_offset(l.tensor, group.first) + start(l.tensor) : scratch;
    step = direct ? l.tensor.spatial[2] : lanes_;
    return base && !direct;
  };
  bool stores = aim(result_, p.result, w.y, row.y, row.y_step), stores_index = false;
  if (shape_.what == Collect::largest && p.index)
    stores_index = aim(index_, p.index, w.index, row.index, row.index_step);
  const Windows<T>& loops = windows<T>();
  (shape_.what == Collect::largest ? loops.largest : shape_.what == Collect::sum ? loops.sum : loops.select)(row);
  if (stores) store(result_, p.result, start(shape_.result), group, s.count, w.y, w.turned);
  if (stores_index) store(index_, p.index, start(shape_.index), group, s.count, w.index, w.turned);
}

// The rows of the source that a row of results takes in; those that an earlier one left behind are not loaded again.
template <class T>
int64_t Gather<T>::collect_rows(const Job& j, const GatherPointers& p, Worker& w) const {
  const Segment& s = segments_[static_cast<size_t>(j.segment)];
  Planes group = planes(j.group);
  bool selects = shape_.what == Collect::select;
  int64_t count = 0, slot_values = longest_source_ * lanes_;
  for (const WindowTap<T>& slice : taps(0, j.outer[0]))
    for (const WindowTap<T>& line : taps(1, j.outer[1])) {
      SourceRow<T>& row = w.rows[count++] = {};
      row.weight = slice.weight * line.weight, row.place = slice.place + line.place;
      if (slice.source < 0 || line.source < 0) {
        row.values = padding_.data();
        continue;
      }
      int64_t slot = slice.source % kept_[0] * kept_[1] + line.source % kept_[1];
      int64_t key = slice.source * shape_.source_size[1] + line.source;
      bool fresh = w.held[slot] != key;
      w.held[slot] = key;
      auto bind = [&](const Lanes& l, const void* base, T* slots, const T*& values, int64_t& step) {
        const auto& stride = l.tensor.spatial;
        int64_t at = slice.source * stride[0] + line.source * stride[1];
        if (l.direct) {
          at += plane_offset(l.tensor, group.first) + s.source.first * stride[2];
          values = static_cast<const T*>(base) + at, step = stride[2];
          return;
        }
        T* to = slots + slot * slot_values;
        if (fresh) load(l, base, at, group, s.source, to, w.turned);
        values = to, step = lanes_;
      };
      bind(source_, p.source, w.values, row.values, row.step);
      if (selects) bind(index_, p.index, w.indices, row.index, row.index_step);
    }
  return count;
}

// From the rows that these results read to those of the next, in elements; 0 where nothing is read in place.
template <class T>
int64_t Gather<T>::ahead(const Job& j) const {
  if (!source_.direct || j.outer[1] + 1 >= shape_.axes[1].size()) return 0;
  auto now = taps(1, j.outer[1]), next = taps(1, j.outer[1] + 1);
  if (now.empty() || next.empty()) return 0;
  return (next.back().source - now.back().source) * shape_.source.spatial[1];
}

template <class T>
std::span<const WindowTap<T>> Gather<T>::taps(size_t axis, int64_t result) const {
  const std::vector<int64_t>& first = shape_.axes[axis].first;
  auto i = static_cast<size_t>(result);
  return {taps_[axis].data() + first[i], taps_[axis].data() + first[i + 1]};
}

template <class T>
void Gather<T>::load(const Lanes& from, const void* base, int64_t at, Planes group, Interval positions, T* to,
                     T* turned) const {
  const PlaneTensor& t = from.tensor;
  int64_t step = t.spatial[2], span = positions.size();
  at += positions.first * step;
  auto convert = [&](int64_t plane, int64_t offset, int64_t stride, T* target, int64_t n) {
    kernels().load(t.type, kLane<T>, base, plane_offset(t, plane) + at + offset, stride, target, n);
  };
  if (by_channels_) {
    if (step == group.count && step == lanes_) return convert(group.first, 0, 1, to, span * lanes_);
    for (int64_t i = 0; i < span; ++i) convert(group.first, i * step, 1, to + i * lanes_, group.count);
    return;
  }
  const T* rows = turned;
  int64_t distance = span;
  if (from.uniform)
    rows = static_cast<const T*>(base) + plane_offset(t, group.first) + at, distance = from.plane;
  else
    for (int64_t i = 0; i < group.count; ++i) convert(group.first + i, 0, step, turned + i * span, span);
  tile_of<T>().transpose(group.count, span, rows, distance, to, lanes_);
}

template <class T>
void Gather<T>::store(const Lanes& to, void* base, int64_t at, Planes group, int64_t count, const T* from,
                      T* turned) const {
  const PlaneTensor& t = to.tensor;
  int64_t step = t.spatial[2];
  auto convert = [&](int64_t plane, int64_t offset, int64_t stride, const T* source, int64_t n) {
    kernels().store(t.type, kLane<T>, source, base, plane_offset(t, plane) + at + offset, stride, n);
  };
  if (by_channels_) {
    if (step == group.count && step == lanes_) return convert(group.first, 0, 1, from, count * lanes_);
    for (int64_t i = 0; i < count; ++i) convert(group.first, i * step, 1, from + i * lanes_, group.count);
    return;
  }
  if (to.uniform) {
    T* rows = static_cast<T*>(base) + plane_offset(t, group.first) + at;
    return tile_of<T>().transpose(count, group.count, from, lanes_, rows, to.plane);
  }
  tile_of<T>().transpose(count, group.count, from, lanes_, turned, count);
  for (int64_t i = 0; i < group.count; ++i) convert(group.first + i, 0, step, turned + i * count, count);
}

template class Gather<float>;
template class Gather<double>;

}  // namespace tsr::cpu
