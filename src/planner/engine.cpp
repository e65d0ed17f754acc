// SPDX-License-Identifier: Apache-2.0
#include "planner/engine.hpp"

#include <algorithm>

namespace tsr {

int64_t Config::knob(std::string_view name) const {
  for (const auto& [k, v] : knobs)
    if (k == name) return v;
  fail(Status::internal_error, "configuration ", to_string(*this), " has no knob ", name);
}

std::string to_string(const Config& c) {
  std::string s;
  for (const auto& [key, value] : c.knobs) s += (s.empty() ? "" : " ") + key + "=" + std::to_string(value);
  return s.empty() ? "default" : s;
}

const Config* find_config(const std::vector<Config>& list, const Config& c) {
  auto at = std::find_if(list.begin(), list.end(), [&](const Config& x) { return x.knobs == c.knobs; });
  return at == list.end() ? nullptr : &*at;
}

const Engine* find_engine(std::string_view name) {
  for (const Engine* e : all_engines())
    if (e->info().name == name) return e;
  return nullptr;
}

}  // namespace tsr
