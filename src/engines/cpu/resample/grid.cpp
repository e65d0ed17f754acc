// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/resample/grid.hpp"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.hpp"
#include "engines/cpu/vector/kernels.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

constexpr int64_t kPlaces = 64;    // of the grid, that are worth a thread
constexpr int64_t kChannels = 16;  // whose gradient one thread adds up
constexpr int kMostCorners = 8, kMostAxes = 3;

template <class T>
constexpr Lane kLane = sizeof(T) == 8 ? Lane::f64 : Lane::f32;

size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

bool in_f64(const Graph& g, const Node& n) {
  if (n.compute == DType::f64) return true;
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list)
      if (t != kNone && g.tensor(t).dtype == DType::f64) return true;
  return false;
}

// A tensor of the operation; its first dimension is the batch.
struct Operand {
  TensorId id = kNone;
  DType type = DType::f32;
  Dims strides;
  Operand(const Graph& g, TensorId t) : id(t) {
    if (t != kNone) type = g.tensor(t).dtype, strides = g.tensor(t).strides;
  }
  // Results that nobody wants have no memory.
  bool wanted(void* const* t) const { return id != kNone && t[id]; }
  template <class T>
  void load(void* const* t, int64_t offset, int64_t stride, T* to, int64_t n) const {
    kernels().load(type, kLane<T>, t[id], offset, stride, to, n);
  }
  template <class T>
  void store(void* const* t, int64_t offset, int64_t stride, const T* from, int64_t n) const {
    kernels().store(type, kLane<T>, from, t[id], offset, stride, n);
  }
};

// Where row-major place `p` of `sizes` lies, with `strides` from dimension `first` on.
int64_t place_offset(const Dims& sizes, const Dims& strides, int first, int64_t p) {
  int64_t offset = 0;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    offset += p % sizes[d] * strides[first + d];
    p /= sizes[d];
  }
  return offset;
}

// The corners inside the image of the cell that a place falls into.
struct Corners {
  int count = 0;
  int64_t element[kMostCorners];  // row-major among the places of the image
  double weight[kMostCorners];
  double slope[kMostCorners][kMostAxes];  // of the weight, by grid coordinate: last dimension first
};

Corners corners_of(const Dims& image, const double* coordinates) {
  Corners c;
  c.count = 1, c.element[0] = 0, c.weight[0] = 1;
  std::fill_n(c.slope[0], kMostAxes, 1.0);
  for (int d = 0; d < image.size(); ++d) {
    int coordinate = image.size() - 1 - d;
    double half = static_cast<double>(image[d] - 1) / 2, place = (coordinates[coordinate] + 1) * half;
    // Written so that a NaN counts as outside.
    if (!(place > -1 && place < static_cast<double>(image[d]))) return {};
    double low = std::floor(place), fraction = place - low;
    Corners more;
    for (int i = 0; i < c.count; ++i)
      for (int up : {0, 1}) {
        int64_t index = static_cast<int64_t>(low) + up;
        if (index < 0 || index >= image[d]) continue;
        double weight = up ? fraction : 1 - fraction;
        int to = more.count++;
        more.element[to] = c.element[i] * image[d] + index;
        more.weight[to] = c.weight[i] * weight;
        for (int k = 0; k < image.size(); ++k)
          more.slope[to][k] = c.slope[i][k] * (k == coordinate ? (up ? half : -half) : weight);
      }
    c = more;
  }
  return c;
}

// What sampling and its gradient share. Images lie in the workspace with their channels side by side.
template <class T>
class Sampling : public Step {
 public:
  Sampling(const Graph& g, const Node& n, int threads) : x_(g, n.in[0]), grid_(g, n.in[1]), threads_(threads) {
    const Dims &x = g.tensor(n.in[0]).dims, &grid = g.tensor(n.in[1]).dims;
    batch_ = x[0], channels_ = x[1];
    for (int d = 2; d < x.size(); ++d) image_.push_back(x[d]), grid_sizes_.push_back(grid[d - 1]);
    elements_ = volume(image_), places_ = volume(grid_sizes_);
  }
  size_t workspace_bytes() const override { return image_bytes() + static_cast<size_t>(threads_) * channel_bytes(); }

 protected:
  size_t image_bytes() const { return aligned(static_cast<size_t>(batch_ * elements_ * channels_) * sizeof(T)); }
  size_t channel_bytes() const { return aligned(static_cast<size_t>(channels_) * sizeof(T)); }
  T* of_worker(std::byte* memory, int worker) const {
    return reinterpret_cast<T*>(memory + static_cast<size_t>(worker) * channel_bytes());
  }

  void load_image(void* const* t, T* to) const {
    parallel_for(batch_ * elements_, kPlaces, threads_, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i)
        x_.load(t, offset(x_, image_, 2, i, elements_), x_.strides[1], to + i * channels_, channels_);
    });
  }
  // Element `i` of all the batch's images or grids; their places are dimensions from `first` on.
  static int64_t offset(const Operand& o, const Dims& sizes, int first, int64_t i, int64_t count) {
    return i / count * o.strides[0] + place_offset(sizes, o.strides, first, i % count);
  }
  Corners corners(void* const* t, int64_t place) const {
    double coordinates[kMostAxes];
    grid_.load(t, offset(grid_, grid_sizes_, 1, place, places_), grid_.strides.back(), coordinates, image_.size());
    Corners c = corners_of(image_, coordinates);
    for (int k = 0; k < c.count; ++k) c.element[k] += place / places_ * elements_;
    return c;
  }

  Operand x_, grid_;
  int threads_;
  int64_t batch_, channels_, elements_, places_;
  Dims image_, grid_sizes_;
};

template <class T>
class Sample : public Sampling<T> {
  using S = Sampling<T>;
  using S::batch_, S::channels_, S::corners, S::grid_sizes_, S::image_bytes, S::load_image, S::of_worker, S::offset;
  using S::places_, S::threads_;

 public:
  Sample(const Graph& g, const Node& n, int threads) : Sampling<T>(g, n, threads), y_(g, n.out[0]) {}
  void run(const StepArgs& a) const override {
    T* x = reinterpret_cast<T*>(a.workspace);
    load_image(a.tensors, x);
    parallel_for(batch_ * places_, kPlaces, threads_, [&](int64_t first, int64_t last, int worker) {
      T* sum = of_worker(a.workspace + image_bytes(), worker);
      for (int64_t p = first; p < last; ++p) {
        Corners at = corners(a.tensors, p);
        std::fill_n(sum, channels_, T(0));
        for (int k = 0; k < at.count; ++k) {
          const T* corner = x + at.element[k] * channels_;
          auto weight = static_cast<T>(at.weight[k]);
          for (int64_t c = 0; c < channels_; ++c) sum[c] += weight * corner[c];
        }
        y_.store(a.tensors, offset(y_, grid_sizes_, 2, p, places_), y_.strides[1], sum, channels_);
      }
    });
  }

 private:
  Operand y_;
};

template <class T>
class SampleGradient : public Sampling<T> {
  using S = Sampling<T>;
  using S::batch_, S::channels_, S::corners, S::grid_sizes_, S::image_bytes, S::load_image, S::of_worker, S::offset;
  using S::places_, S::threads_, S::elements_, S::image_;

 public:
  SampleGradient(const Graph& g, const Node& n, int threads)
      : Sampling<T>(g, n, threads), dy_(g, n.in[2]), dx_(g, slot(n.out, 0)), dgrid_(g, slot(n.out, 1)) {}
  void run(const StepArgs& a) const override {
    T* image = reinterpret_cast<T*>(a.workspace);
    std::byte* rest = a.workspace + image_bytes();
    if (dgrid_.wanted(a.tensors)) {
      load_image(a.tensors, image);
      grid_gradient(a.tensors, image, rest);
    }
    if (dx_.wanted(a.tensors)) image_gradient(a.tensors, image, rest);
  }

 private:
  int64_t dy_offset(int64_t p) const { return offset(dy_, grid_sizes_, 2, p, places_); }

  void grid_gradient(void* const* t, const T* x, std::byte* scratch) const {
    int64_t channels = channels_, axes = image_.size();
    parallel_for(batch_ * places_, kPlaces, threads_, [&](int64_t first, int64_t last, int worker) {
      T* dy = of_worker(scratch, worker);
      for (int64_t p = first; p < last; ++p) {
        dy_.load(t, dy_offset(p), dy_.strides[1], dy, channels);
        Corners at = corners(t, p);
        double slopes[kMostAxes] = {};
        for (int k = 0; k < at.count; ++k) {
          const T* corner = x + at.element[k] * channels;
          double dot = 0;
          for (int64_t c = 0; c < channels; ++c) dot += static_cast<double>(corner[c]) * static_cast<double>(dy[c]);
          for (int64_t d = 0; d < axes; ++d) slopes[d] += at.slope[k][d] * dot;
        }
        dgrid_.store(t, offset(dgrid_, grid_sizes_, 1, p, places_), dgrid_.strides.back(), slopes, axes);
      }
    });
  }

  // Places scatter to the corners; each channel of an image is added up by one thread, in the order of the places.
  void image_gradient(void* const* t, T* dx, std::byte* scratch) const {
    int64_t channels = channels_, places = places_, elements = elements_;
    int64_t groups = (channels + kChannels - 1) / kChannels;
    parallel_for(batch_ * groups, 1, threads_, [&](int64_t first, int64_t last, int worker) {
      T* dy = of_worker(scratch, worker);
      for (int64_t i = first; i < last; ++i) {
        int64_t b = i / groups, channel = i % groups * kChannels, count = std::min(kChannels, channels - channel);
        for (int64_t e = b * elements; e < (b + 1) * elements; ++e)
          std::fill_n(dx + e * channels + channel, count, T(0));
        for (int64_t p = b * places; p < (b + 1) * places; ++p) {
          Corners at = corners(t, p);
          if (at.count > 0) dy_.load(t, dy_offset(p) + channel * dy_.strides[1], dy_.strides[1], dy, count);
          for (int k = 0; k < at.count; ++k) {
            T* corner = dx + at.element[k] * channels + channel;
            auto weight = static_cast<T>(at.weight[k]);
            for (int64_t c = 0; c < count; ++c) corner[c] += weight * dy[c];
          }
        }
      }
    });
    parallel_for(batch_ * elements, kPlaces, threads_, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i)
        dx_.store(t, offset(dx_, image_, 2, i, elements), dx_.strides[1], dx + i * channels, channels);
    });
  }

  Operand dy_, dx_, dgrid_;
};

template <class T>
std::unique_ptr<Step> make(const Graph& g, const Node& n, int threads) {
  if (n.op == &ops::grid_sample) return std::make_unique<Sample<T>>(g, n, threads);
  return std::make_unique<SampleGradient<T>>(g, n, threads);
}

}  // namespace

bool is_grid_work(const Node& n) { return n.op->name.starts_with("grid_sample"); }

std::unique_ptr<Step> make_grid_step(const Graph& g, const Node& n, int threads) {
  return in_f64(g, n) ? make<double>(g, n, threads) : make<float>(g, n, threads);
}

double grid_seconds(const Region& r, const Device& d) {
  constexpr double kPasses = 3;   // images go through the workspace
  constexpr double kPlace = 100;  // operations to find the corners of a place
  const Tensor& grid = r.graph->tensor(r.graph->node(r.nodes[0]).in[1]);
  return kPasses * region_bytes(r) / d.bytes_per_second + kPlace * static_cast<double>(grid.numel()) / d.rates.f32;
}

}  // namespace tsr::cpu
