// SPDX-License-Identifier: Apache-2.0
// Makes a plan of chosen steps.
#pragma once

#include <map>

#include "planner/plan.hpp"

namespace tsr {

class PlanBuilder {
 public:
  PlanBuilder(const Query& q, const PlanOptions& o, std::shared_ptr<OwnMemory> own = nullptr);
  void add(const ChosenStep& s);
  int add(const ChosenStages& s);  // its number, for its stages; they follow
  void lay_out();                  // after the last step
  const Plan& plan() const { return *plan_; }
  std::shared_ptr<const Plan> finish();

 private:
  // What a tensor of the graph, or of the decomposition `inside`, is in the table of pointers.
  size_t first_slot(int inside) const;
  size_t slot(int inside, TensorId t) const { return first_slot(inside) + static_cast<size_t>(t); }
  // The slot whose memory a tensor is.
  size_t memory(int inside, TensorId t);
  void make_view(size_t slot, size_t source, int64_t offset);
  size_t workspace_bytes(size_t slot) const;  // 0: it does not lie there
  void upload_constants();
  void upload_constants(const Graph& g, size_t first_slot);
  bool ends_early(TensorId t) const;
  void find_uses();

  std::shared_ptr<Plan> plan_;
  struct Memory {
    size_t slot;
    int64_t offset = 0;  // bytes from there
  };
  std::map<size_t, Memory> memory_;  // by slot
};

}  // namespace tsr
