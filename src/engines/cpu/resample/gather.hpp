// SPDX-License-Identifier: Apache-2.0
// Results over windows of a source: the one form of pooling, interpolation and their gradients. Planes (an image and a
// channel each) are computed side by side, as lanes of vectors: channels where they lie next to each other in memory,
// otherwise a few planes, transposed in the workspace. Values that are not of type T are converted there as well.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engines/cpu/resample/taps.hpp"
#include "engines/cpu/resample/windows.hpp"
#include "graph/graph.hpp"

namespace tsr::cpu {

// A tensor [image, channel, ..] in memory, with three spatial dimensions.
struct PlaneTensor {
  DType type = DType::f32;
  int64_t image = 0, channel = 0;    // strides
  std::array<int64_t, 3> spatial{};  // strides
  PlaneTensor() = default;
  PlaneTensor(DType t, const Dims& strides);
};

enum class Collect : uint8_t { largest, sum, select };

struct GatherShape {
  Collect what = Collect::sum;
  int64_t images = 0, channels = 0;
  std::array<AxisTaps, 3> axes;
  std::array<int64_t, 3> source_size{};
  double alpha = 1, padding = 0;
  PlaneTensor source, result;
  bool indexed = false;  // `select` reads an index beside the source, `largest` writes one beside the result
  PlaneTensor index;
};

struct GatherPointers {
  const void* source = nullptr;
  void* result = nullptr;  // null: not wanted
  void* index = nullptr;
};

template <class T>
class Gather {
 public:
  Gather(GatherShape shape, int threads);
  size_t workspace_bytes() const { return worker_bytes_ * static_cast<size_t>(threads_); }
  void run(const GatherPointers& p, std::byte* workspace) const;

 private:
  // A tensor as the lanes of a group see it.
  struct Lanes {
    PlaneTensor tensor;
    bool direct = false;   // rows are used where they lie
    bool uniform = false;  // values of type T in rows without gaps, planes at equal distances: transposed from there
    int64_t plane = 0;     // that distance
  };
  struct Planes {
    int64_t first, count;
  };
  struct Segment {
    int64_t first, count;  // results along the row
    Interval source;
  };
  struct Job {
    int64_t group, segment, outer[2];  // planes, piece of the row, position along the first two axes
  };
  struct Worker;  // scratch memory of one thread

  Lanes lanes_of(const PlaneTensor& t) const;
  void cut_rows();
  void lay_out_scratch();
  Planes planes(int64_t group) const;
  int64_t plane_offset(const PlaneTensor& t, int64_t plane) const;
  Job job(int64_t i) const;
  Worker worker(std::byte* memory) const;
  void run_job(const Job& j, const GatherPointers& p, Worker& w) const;
  int64_t ahead(const Job& j) const;
  std::span<const WindowTap<T>> taps(size_t axis, int64_t result) const;
  int64_t collect_rows(const Job& j, const GatherPointers& p, Worker& w) const;
  // The lanes of positions along the row that starts `at` elements into its plane, and back.
  void load(const Lanes& from, const void* base, int64_t at, Planes planes, Interval positions, T* to, T* turned) const;
  void store(const Lanes& to, void* base, int64_t at, Planes planes, int64_t count, const T* from, T* turned) const;

  GatherShape shape_;
  int threads_;
  bool by_channels_ = false;  // lanes are channels of one image; otherwise any planes
  int64_t lanes_ = 0;         // of a group, at most
  int64_t groups_ = 0;        // of planes; of each image where lanes are channels
  Lanes source_, result_, index_;
  std::vector<Segment> segments_;
  std::array<int64_t, 2> kept_{};                    // rows of the source that are kept for the next results, by axis
  int64_t most_rows_ = 1;                            // that a row of results takes in
  int64_t longest_source_ = 0, longest_result_ = 0;  // of the segments
  size_t worker_bytes_ = 0;
  std::array<std::vector<WindowTap<T>>, 3> taps_;
  std::vector<T> padding_;
};

}  // namespace tsr::cpu
