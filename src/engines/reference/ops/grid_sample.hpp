// SPDX-License-Identifier: Apache-2.0
// The cell of an image that a place of the grid falls into.
#pragma once

#include <cmath>

#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
struct Corner {
  int64_t element = 0;  // row-major among the spatial positions of the image
  R weight = 1;
  R slope[3] = {1, 1, 1};  // of the weight, by grid coordinate: last dimension first
};

// The corners, as far as they are inside the image, of the cell around the place that `coordinates` name.
template <class R>
std::vector<Corner<R>> cell_corners(const Dims& image, const R* coordinates) {
  std::vector<Corner<R>> corners = {Corner<R>{}};
  int spatial = image.size();
  for (int d = 0; d < spatial; ++d) {
    int coordinate = spatial - 1 - d;
    R half = static_cast<R>(image[d] - 1) / 2, place = (coordinates[coordinate] + 1) * half;
    // Written so that a NaN counts as outside.
    if (!(place > -1 && place < static_cast<R>(image[d]))) return {};
    R low = std::floor(place), fraction = place - low;
    std::vector<Corner<R>> more;
    for (const Corner<R>& c : corners)
      for (int up : {0, 1}) {
        int64_t index = static_cast<int64_t>(low) + up;
        if (index < 0 || index >= image[d]) continue;
        Corner<R> next = c;
        next.element = c.element * image[d] + index;
        R weight = up ? fraction : 1 - fraction;
        next.weight *= weight;
        for (int k = 0; k < spatial; ++k) next.slope[k] *= k == coordinate ? (up ? half : -half) : weight;
        more.push_back(next);
      }
    corners = std::move(more);
  }
  return corners;
}

// Calls f(batch, place, corners) for every place of the grid; places are counted within their batch.
template <class R, class F>
void each_place(const Array<R>& x, const Array<R>& grid, const F& f) {
  Dims image;
  for (int d = 2; d < x.rank(); ++d) image.push_back(x.dims[d]);
  int64_t places = 1;
  for (int d = 1; d + 1 < grid.rank(); ++d) places *= grid.dims[d];
  for (int64_t n = 0; n < x.dims[0]; ++n)
    for (int64_t p = 0; p < places; ++p)
      f(n, p, cell_corners(image, grid.data.data() + (n * places + p) * image.size()));
}

}  // namespace tsr::ref
