// SPDX-License-Identifier: Apache-2.0
// Makes a plan of chosen steps.
#pragma once

#include "planner/plan.hpp"

namespace tsr {

class PlanBuilder {
 public:
  PlanBuilder(const Query& q, const PlanOptions& o, std::shared_ptr<OwnMemory> own = nullptr);
  void add(const ChosenStep& s);
  void lay_out();  // after the last step
  const Plan& plan() const { return *plan_; }
  std::shared_ptr<const Plan> finish();

 private:
  void upload_constants();
  bool ends_early(TensorId t) const;
  void find_uses();

  std::shared_ptr<Plan> plan_;
};

}  // namespace tsr
