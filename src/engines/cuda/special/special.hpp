// SPDX-License-Identifier: Apache-2.0
// Operations that have kernels of their own on a GPU and run alone: local normalisation, spatial transformers,
// aggregation over graphs, CTC, reductions by a sub-graph, rows by index, running sums, largest elements. One file for
// each family; special.cpp is the engine.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& special_engine();

// --- for special.cpp: the steps of each family
std::unique_ptr<Step> build_local_norm(const Region& r, const Device& d);
std::unique_ptr<Step> build_sampling(const Region& r, const Device& d);
std::unique_ptr<Step> build_aggregation(const Region& r, const Device& d);
Reason check_aggregation(const Region& r);
std::unique_ptr<Step> build_ctc(const Region& r, const Device& d);
Reason check_ctc(const Region& r);
std::unique_ptr<Step> build_reduce_by(const Region& r, const Device& d);
Reason check_reduce_by(const Region& r);
std::unique_ptr<Step> build_gather(const Region& r, const Device& d);
std::unique_ptr<Step> build_scatter_add(const Region& r, const Device& d);
Reason check_scatter_add(const Region& r);
std::unique_ptr<Step> build_cumsum(const Region& r, const Device& d);
std::unique_ptr<Step> build_top_k(const Region& r, const Device& d);
Reason check_top_k(const Region& r);

// What the elements of a tensor are computed in without loss.
std::string exact_lane(DType t);

}  // namespace tsr::cuda
