// SPDX-License-Identifier: Apache-2.0
#include "harness/candidates.hpp"

#include <algorithm>

namespace tsr {

std::string Candidate::label() const {
  std::string c = to_string(config);
  return std::string(engine->info().name) + (c == "default" ? "" : " " + c);
}

std::vector<Candidate> candidates(Query& q, const PlanOptions& o) {
  std::vector<Candidate> list;
  for (const Engine* e : all_engines()) {
    bool last_resort = e->info().last_resort;
    bool named = o.engines.empty() || std::find(o.engines.begin(), o.engines.end(), e->info().name) != o.engines.end();
    if (e->info().device != q.device().kind || !named || (last_resort && !list.empty())) continue;
    for (const Config& c : q.asked(q.index().live_nodes()).answer(*e).configs) list.push_back({e, c});
  }
  return list;
}

}  // namespace tsr
