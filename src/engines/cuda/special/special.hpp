// SPDX-License-Identifier: Apache-2.0
// Operations that have kernels of their own on a GPU and run alone: local normalisation, spatial transformers,
// aggregation over graphs, CTC, reductions by a sub-graph. One file for each family; special.cpp is the engine.
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

}  // namespace tsr::cuda
