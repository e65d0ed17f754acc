// SPDX-License-Identifier: Apache-2.0
// The tiles that a product can be cut into, and what each would cost.
#pragma once

#include "engines/cuda/toolkit/reduction.hpp"
#include "engines/cuda/wgmma/problem.hpp"
#include "planner/engine.hpp"

namespace tsr::cuda {

struct WgmmaTiling {
  int rows, columns, cluster, blocks;  // blocks on a multiprocessor: with two, one stores while the other multiplies
  bool turns = false;                  // warpgroups have tiles of their own, and one stores while the other multiplies
};

constexpr int kWgmmaGroup = 8;  // tiles of rows whose columns are walked together

// A tile, and the splits of the inner dimension, which leave their sums in parts; 0: one, without parts.
struct WgmmaChoice {
  WgmmaTiling tile;
  int splits = 0;
  double seconds = 0;  // modelled
  std::vector<std::pair<std::string, int64_t>> knobs() const;
};
// Best first.
std::vector<WgmmaChoice> choices_of(const WgmmaProblem& m, const Region& r, const Device& d);

// --- what a choice makes of a problem
bool is_long(const WgmmaProblem& m);  // does much code follow the product?
int depth_of(const WgmmaProblem& m);  // elements of a swizzled row
// Rows that are computed alike, and their steps along the inner dimension. Those of patches beyond the edges count.
struct WgmmaKind {
  int64_t rows, steps;
};
std::vector<WgmmaKind> kinds_of(const WgmmaProblem& m);
int64_t patches_of(const WgmmaProblem& m, const WgmmaWindow& w);
int64_t channel_tiles_of(const WgmmaProblem& m);
int64_t row_tiles_of(const WgmmaKind& k, const WgmmaTiling& t);
int64_t column_tiles_of(const WgmmaProblem& m, const WgmmaTiling& t);
int64_t tiles_of(const WgmmaProblem& m, const WgmmaTiling& t);  // of clusters
int64_t room_for(const WgmmaTiling& t, const Device& d);        // clusters that run at once
int64_t pitch_of(const WgmmaProblem& m);                        // elements of a row of a part
int64_t part_lines_of(const WgmmaProblem& m);                   // rows of a part, all batches
// What reductions leave; pieces are of `vector` neighbouring columns.
LeftParts parts_of(const WgmmaProblem& m, const WgmmaTiling& t, const Device& d, int vector);
int64_t clusters_of(const WgmmaProblem& m, const WgmmaChoice& c, const Device& d);  // of a launch
int64_t warps_of(const WgmmaTiling& t);                                             // that multiply, of a cluster
int64_t out_bytes(const WgmmaProblem& m, const WgmmaChoice& c);  // of shared memory, for results on their way
int64_t stage_bytes(const WgmmaTiling& t);                       // of a place of the ring
int own_columns(const WgmmaProblem& m, const WgmmaTiling& t);    // of the result, that a tile has
int64_t raw_bytes(const WgmmaProblem& m, const WgmmaTiling& t);  // for what operands are computed of
int stages_of(const WgmmaProblem& m, const WgmmaChoice& c, const Device& d);
int threads_of(const WgmmaTiling& t);

}  // namespace tsr::cuda
