// SPDX-License-Identifier: Apache-2.0
// `tessera compile`: the kernels of many graphs for many GPUs, none of which need be there. Fails on what the compiler
// only warns of, and can keep the kernels as a pack.
#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "command.hpp"
#include "graph/text.hpp"
#include "harness/candidates.hpp"
#include "harness/cases.hpp"
#include "harness/conversions.hpp"
#include "harness/kernel_check.hpp"
#include "harness/measure.hpp"
#include "runtime/devices.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/jit/sources.hpp"
#include "runtime/jit/store.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cli {
namespace {

struct Arguments {
  std::vector<std::string> files, devices;
  std::string filter, pack;
  bool each_engine = false, each_candidate = false, json = false;
};

// One GPU for each target.
std::vector<std::string> all_devices() {
  std::vector<std::string> names;
  std::set<std::string> targets;
  for (const Device& d : device_records())
    if (targets.insert(d.target).second) names.push_back(d.name);
  return names;
}

// What is planned: a graph, for a device, with all engines or one; or as one step in every way.
struct Job {
  const Case* graph;
  const Device* device;
  PlanOptions options;
  bool each_candidate = false;
};

class Compiler {
 public:
  // Plans all jobs on as many threads as there are cores; planning compiles.
  void run(const std::vector<Job>& jobs) {
    std::atomic<size_t> next{0};
    auto work = [&] {
      for (size_t i = next++; i < jobs.size(); i = next++) plan(jobs[i]);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
    work();
    for (std::thread& t : threads) t.join();
  }

  // The kernels that test conversions belong to no graph.
  void add_conversions(const Device& d) {
    KernelRecorder recorder;
    get_kernels(conversion_programs(), d);
    keep(recorder, d, "the test of conversions");
  }

  // Every folder of engines/cuda/ that holds device code must have been compiled from.
  void expect_all_families() {
    std::set<std::string> missing;
    for (const jit::Source& s : jit::sources())
      if (std::string f = family(s.path); !f.empty() && !families_.count(f)) missing.insert(f);
    for (const std::string& f : missing)
      problems_.push_back(cat("no graph has a kernel of ", f, ": add one to tests/kernels"));
  }

  const std::vector<std::string>& problems() const { return problems_; }
  const std::map<std::string, int>& by_target() const { return by_target_; }

 private:
  static std::string family(std::string_view path) {
    constexpr std::string_view kFolder = "engines/cuda/";
    constexpr std::string_view kShared = "engines/cuda/scores/";  // by families; it has no kernels of its own
    if (path.substr(0, kFolder.size()) != kFolder || path.substr(0, kShared.size()) == kShared) return "";
    size_t end = path.find('/', kFolder.size());
    return end == std::string_view::npos ? "" : std::string(path.substr(0, end));
  }

  void plan(const Job& job) {
    std::string where = cat(job.graph->file, ":", job.graph->line);
    try {
      KernelRecorder recorder;
      auto g = std::make_shared<const Graph>(parse_graph(job.graph->text));
      if (job.each_candidate) {
        Query query(g, *job.device);
        for (const Candidate& c : candidates(query)) (void)plan_as_one(query, *c.engine, c.config);
      } else {
        (void)make_plan(g, *job.device, job.options);
      }
      keep(recorder, *job.device, where);
    } catch (const std::exception& e) {
      std::lock_guard guard(lock_);
      constexpr size_t kEnough = 400;  // an error of a template is long, and each target repeats it
      problems_.push_back(cat(where, " for ", job.device->name, ": ", std::string(e.what()).substr(0, kEnough)));
    }
  }

  void keep(const KernelRecorder& recorder, const Device& d, const std::string& where) {
    std::lock_guard guard(lock_);
    for (const auto& [program, kernel] : recorder.entries()) {
      if (!kernels_.insert(kernel).second) continue;
      ++by_target_[d.target];
      families_.insert(family(program.include));
      std::string p = kernel->code().empty() ? jit::nvrtc().missing : kernel_problem(kernel->info());
      if (!p.empty()) problems_.push_back(cat(where, ": ", kernel->name(), " for ", d.target, ": ", p));
    }
  }

  std::mutex lock_;
  std::set<std::shared_ptr<const Kernel>> kernels_;
  std::map<std::string, int> by_target_;
  std::set<std::string> families_;
  std::vector<std::string> problems_;
};

std::vector<Case> read_all(const Arguments& a) {
  std::vector<Case> cases;
  for (const std::string& file : case_files(a.files, "tests/kernels"))
    for (Case& c : read_case_argument(file))
      if (is_wanted(c, a.filter) && c.error.empty()) cases.push_back(std::move(c));
  require_cases(cases.size(), a.filter);
  return cases;
}

std::vector<Device> read_devices(const Arguments& a) {
  std::vector<Device> devices;
  for (const std::string& name : a.devices.empty() ? all_devices() : a.devices) {
    devices.push_back(find_device(name));
    require(devices.back().kind == DeviceKind::cuda, "plans for --device ", name,
            " have no kernels; name a GPU such as h200");
  }
  return devices;
}

// Of a file FAMILY.DEVICE.txt only that device has kernels of the family.
bool meant_for(const Case& c, const Device& d) {
  std::string device = std::filesystem::path(c.file).stem().extension().string();
  return device.empty() || device == "." + d.name;
}

std::vector<Job> make_jobs(const std::vector<Case>& cases, const std::vector<Device>& devices, const Arguments& a) {
  std::vector<Job> jobs;
  for (const Case& c : cases)
    for (const Device& d : devices) {
      if (!meant_for(c, d)) continue;
      jobs.push_back({&c, &d, {.tuned = false}});
      if (a.each_candidate) jobs.push_back({&c, &d, {}, true});
      if (!a.each_engine) continue;
      for (const Engine* e : all_engines())
        if (e->info().device == d.kind)
          jobs.push_back({&c, &d, {.engines = {std::string(e->info().name)}, .tuned = false}});
    }
  return jobs;
}

void print(const Json& j) {
  for (const Json& p : j["problems"]) std::cout << paint(Colour::red, "PROBLEM ") << p.get<std::string>() << "\n";
  for (const auto& [target, n] : j["targets"].items()) std::cout << target << ": " << n << " kernels\n";
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", j["seconds"].get<double>());
  std::string sum = cat(j["graphs"].dump(), " graphs, ", j["compiled"].dump(), " kernels compiled, ",
                        j["from_disk"].dump(), " from disk, ", j["from_pack"].dump(), " from the pack, in ", seconds,
                        " s; ", j["problems"].size(), " problems");
  std::cout << paint(j["problems"].empty() ? Colour::green : Colour::red, sum) << "\n";
}

int run(const Arguments& a) {
  std::vector<Case> cases = read_all(a);
  std::vector<Device> devices = read_devices(a);
  if (!jit::nvrtc() && jit::pack_folder().empty())
    fail(Status::not_supported, "no kernel can be compiled: ", jit::nvrtc().missing);
  if (!a.pack.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(a.pack, failed);
    require(!failed, "cannot make the folder '", a.pack, "': ", failed.message());
    record_kernels(a.pack);
  }
  double start = now();
  Compiler compiler;
  compiler.run(make_jobs(cases, devices, a));
  if (a.files.empty() && a.filter.empty()) {
    for (const Device& d : devices) compiler.add_conversions(d);
    compiler.expect_all_families();
  }
  KernelCounts counts = kernel_counts();
  Json j = {{"graphs", cases.size()},         {"targets", compiler.by_target()},
            {"compiled", counts.compiled},    {"from_disk", counts.from_disk},
            {"from_pack", counts.from_pack},  {"from_memory", counts.from_memory},
            {"seconds", now() - start},       {"compile_seconds", counts.compile_seconds},
            {"problems", compiler.problems()}};
  if (a.json)
    print_json(j);
  else
    print(j);
  return compiler.problems().empty() ? kOk : kFailed;
}

}  // namespace

void add_compile(Command& app) {
  auto a = std::make_shared<Arguments>();
  Command c = app.add_command("compile", "Compile the kernels of graphs for GPUs that need not be there");
  c.add_option("FILES", a->files,
               "case files, or graphs; default: tests/kernels/*.txt, a few graphs for each kernel family");
  c.add_option("--filter", a->filter, "only cases whose graph or file contains this text");
  c.add_option("--device", a->devices, "a GPU such as h200 (repeatable); default: one for each target").one_value();
  c.add_flag("--each-engine", a->each_engine, "also plan with each engine alone, as `tessera test` does");
  c.add_flag("--each-candidate", a->each_candidate,
             "also in every way as one step, as `tessera bench --candidates` does");
  c.add_option("--pack", a->pack, "keep the kernels in this folder, to be used as a pack (TESSERA_KERNEL_PACK)");
  c.add_flag("--json", a->json, "print the result as JSON");
  c.footer("Example:  tessera compile 'x = input f32[64,256]; y = softmax x; output y' --device h200");
  c.runs([a] { return run(*a); });
}

}  // namespace tsr::cli
