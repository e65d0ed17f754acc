// SPDX-License-Identifier: Apache-2.0
#include "planner/tuning.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "base/cache_folder.hpp"
#include "base/hash.hpp"
#include "base/settings.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "planner/machine.hpp"

namespace tsr {

Graph region_graph(const Region& r) {
  Graph g;
  std::unordered_map<TensorId, TensorId> id_of = {{kNone, kNone}};
  auto place = [&](TensorId t, bool stored) {
    Tensor x = r.graph->tensor(t);
    x.name.clear();
    x.uid = 0;
    x.ragged = id_of.at(x.ragged);
    x.stored = stored && !x.by_value && !x.is_constant();
    x.dtype_given = x.dims_given = x.strides_given = true;
    id_of[t] = g.add_tensor(std::move(x));
  };
  // Ragged tensors come after the offsets they name.
  for (bool ragged : {false, true})
    for (const auto* list : {&r.inputs, &r.outputs, &r.internals})
      for (TensorId t : *list)
        if ((r.graph->tensor(t).ragged != kNone) == ragged) place(t, list != &r.internals);
  for (NodeId id : r.nodes) {
    Node n = r.graph->node(id);
    for (auto* list : {&n.in, &n.out, &n.captures})
      for (TensorId& t : *list) t = id_of.at(t);
    n.compute_given = true;
    g.add_node_unordered(std::move(n));
  }
  g.finalize();
  return g;
}

std::string tuning_key(const Region& r) { return hex(region_graph(r).fingerprint()); }

std::string tuning_machine(const Device& d) { return d.kind == DeviceKind::cpu ? this_machine().name : d.key(); }

void Tuning::set(const std::string& machine, const std::string& region, TunedChoice choice) {
  choices_[{machine, region}] = std::move(choice);
}

const TunedChoice* Tuning::find(const std::string& machine, const std::string& region) const {
  auto it = choices_.find({machine, region});
  return it == choices_.end() ? nullptr : &it->second;
}

size_t Tuning::size(const std::string& machine) const {
  return static_cast<size_t>(
      std::count_if(choices_.begin(), choices_.end(), [&](const auto& c) { return c.first.first == machine; }));
}

// One line each for a machine and, below it, its regions.
std::string Tuning::save() const {
  std::ostringstream s;
  s.precision(6);
  std::string machine;
  for (const auto& [key, choice] : choices_) {
    if (key.first != machine) s << "machine " << (machine = key.first) << "\n";
    s << "region " << key.second << " " << choice.engine << " " << choice.config.seconds << " "
      << choice.config.knobs.size();
    for (const auto& [name, value] : choice.config.knobs) s << " " << name << " " << value;
    s << "\n";
  }
  return seal("tuning", s.str());
}

Tuning Tuning::parse(std::string_view text) {
  std::istringstream in(unseal("tuning", text));
  Tuning t;
  std::string line, machine, word, region;
  for (int number = 2; std::getline(in, line); ++number) {
    auto bad = [&] { fail(Status::corrupt_data, "serialised tuning: line ", number, " is damaged"); };
    if (line.rfind("machine ", 0) == 0) {
      machine = line.substr(8);
      continue;
    }
    std::istringstream fields(line);
    TunedChoice c;
    size_t knobs = 0;
    if (!(fields >> word >> region >> c.engine >> c.config.seconds >> knobs) || word != "region" || knobs > 64) bad();
    for (size_t k = 0; k < knobs; ++k) {
      std::pair<std::string, int64_t> knob;
      if (!(fields >> knob.first >> knob.second)) bad();
      c.config.knobs.push_back(std::move(knob));
    }
    t.set(machine, region, std::move(c));
  }
  return t;
}

std::string tuning_path() {
  if (std::string given = setting("TESSERA_TUNING"); !given.empty()) return given;
  std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/tuning";
}

namespace {

Tuning read_tuning() {
  std::string path = tuning_path();
  auto text = path.empty() ? std::nullopt : read_file(path);
  if (!text) {
    if (!setting("TESSERA_TUNING").empty())
      log_line(1, cat("tuning file '", path, "' cannot be read; planning by the cost model"));
    return {};
  }
  try {
    Tuning t = Tuning::parse(*text);
    if (t.size() > 0 && t.size(this_machine().name) == 0)
      log_line(2, cat("tuning file '", path, "' has no record of this machine (", this_machine().name,
                      "); planning by the cost model"));
    return t;
  } catch (const Error& e) {
    log_line(1, cat("tuning file '", path, "' is not used: ", e.what(), "; planning by the cost model"));
    return {};
  }
}

// What was read before stays: planning in other threads may still look at it.
struct Tunings {
  std::mutex lock;
  std::list<Tuning> all = {read_tuning()};
  std::atomic<const Tuning*> last = &all.back();
};

Tunings& tunings() {
  static Tunings t;
  return t;
}

}  // namespace

const Tuning& active_tuning() { return *tunings().last; }

void reload_tuning() {
  Tunings& t = tunings();
  std::lock_guard guard(t.lock);
  t.last = &t.all.emplace_back(read_tuning());
  clear_plan_cache();
}

}  // namespace tsr
