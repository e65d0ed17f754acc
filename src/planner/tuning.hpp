// SPDX-License-Identifier: Apache-2.0
// Choices that were measured: for a region, on a machine, the engine and config that ran fastest. `tessera tune` writes
// them to a file; planning prefers them to the cost model. A file may hold records of many machines and be shared;
// those of other machines are kept and not used.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "planner/plan.hpp"

namespace tsr {

// The region as a graph of its own. Names and unique ids depend on nothing outside, so that equal regions of different
// graphs give equal text.
Graph region_graph(const Region& r);

struct TunedChoice {
  std::string engine;
  Config config;  // `seconds` were measured
};

class Tuning {
 public:
  // Raises Status::corrupt_data for a text of another version, a truncated or an altered one.
  static Tuning parse(std::string_view text);
  std::string save() const;
  void set(const std::string& machine, const std::string& region, TunedChoice choice);
  const TunedChoice* find(const std::string& machine, const std::string& region) const;
  size_t size() const { return choices_.size(); }
  size_t size(const std::string& machine) const;

 private:
  std::map<std::pair<std::string, std::string>, TunedChoice> choices_;  // by machine and region
};

std::string tuning_key(const Region& r);      // of a region, for Tuning
std::string tuning_machine(const Device& d);  // this machine's processor, or a kind of GPU
// TESSERA_TUNING, or `tuning` in the cache folder; empty when there is none.
std::string tuning_path();
// The file at tuning_path(), read when first asked for and by reload_tuning(). A file that cannot be used is named on
// standard error, and planning goes on without it.
const Tuning& active_tuning();
// Reads the file again, and forgets the plans that were kept: those that are made from now on follow it.
void reload_tuning();

}  // namespace tsr
