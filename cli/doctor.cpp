// SPDX-License-Identifier: Apache-2.0
// `tessera doctor`: what this machine has, what the library makes of it, and what to do about what is missing.
// Everything is found at run time, so that the report works on a broken installation too.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/cache_folder.hpp"
#include "base/hash.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"
#include "command.hpp"
#include "graph/op.hpp"
#include "harness/provenance.hpp"
#include "peer_onednn.hpp"
#include "planner/explain.hpp"
#include "planner/machine.hpp"
#include "planner/tuning.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/jit/sources.hpp"
#include "runtime/jit/store.hpp"

namespace tsr::cli {
namespace {

// A shared library that may be absent.
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const char* n : names) {
      if (handle_) break;
      handle_ = dlopen(n, RTLD_NOW | RTLD_LOCAL);
      if (handle_) name_ = n;
    }
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  template <class F>
  F* symbol(const char* symbol_name) const {
    return handle_ ? reinterpret_cast<F*>(dlsym(handle_, symbol_name)) : nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
};

Json cpu() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(in, line) && flags.empty())
    if (line.rfind("flags", 0) == 0) flags = line + " ";
  auto has = [&](const char* flag) { return flags.find(cat(" ", flag, " ")) != std::string::npos; };
  Json features;
  for (const char* f : {"avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
                        "amx_bf16", "amx_int8"})
    features[f] = has(f);
  cpu_set_t set;
  int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return {{"model", cpu_model()},
          {"features", features},
          {"cores", std::thread::hardware_concurrency()},
          {"usable", usable},
          {"threads", thread_count()}};
}

Json memory() {
  auto pages = [](int what) {
    return static_cast<double>(sysconf(what)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  };
  return {{"total", pages(_SC_PHYS_PAGES)}, {"free", pages(_SC_AVPHYS_PAGES)}};
}

Json onednn() {
  if (auto linked = linked_onednn()) {
    Json j = {{"found", true},
              {"library", "built in"},
              {"version", linked->version},
              {"runtime", linked->runtime},
              {"isa", linked->isa},
              {"isa_limit", linked->limit},
              {"usable", linked->unusable.empty()}};
    if (!linked->unusable.empty())
      j["advice"] = cat("not used: ", linked->unusable, ". Install another version; `onednn-*` in the cache folder ",
                        "keeps what was tried");
    return j;
  }
  Library lib{"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"};
  if (!lib)
    return {{"found", false},
            {"advice",
             "optional: install oneDNN (Debian: apt install libdnnl-dev) for faster convolutions and matrix products "
             "on the CPU"}};
  struct Version {  // the beginning of dnnl_version_t
    int major, minor, patch;
  };
  Json j = {{"found", true},
            {"library", lib.name()},
            {"advice", "this build of Tessera does not use it: configure again with TESSERA_ONEDNN=ON"}};
  if (auto* version = lib.symbol<const Version*()>("dnnl_version")) {
    const Version* v = version();
    j["version"] = cat(v->major, ".", v->minor, ".", v->patch);
  }
  return j;
}

Json cuda() {
  const cuda::Driver& driver = cuda::driver();
  if (!driver)
    return {{"found", false},
            {"advice", cat(driver.missing,
                           "; graphs run on the CPU. To use a GPU, install NVIDIA's driver (nvidia-smi "
                           "tells whether it works) and make the GPU visible to this process")}};
  Json j = {{"found", true},
            {"library", driver.path},
            {"version", cat(driver.version / 1000, ".", driver.version % 1000 / 10)},
            {"devices", Json::array()}};
  for (const GpuInfo& g : gpus())
    j["devices"].push_back({{"name", g.name},
                            {"capability", cat(g.major, ".", g.minor)},
                            {"multiprocessors", g.units},
                            {"memory", g.memory_bytes}});
  if (j["devices"].empty())
    j["advice"] = "the driver shows no device: make a GPU visible (CUDA_VISIBLE_DEVICES, options of the container)";
  return j;
}

Json nvrtc() {
  const jit::Nvrtc& n = jit::nvrtc();
  if (!n) return {{"found", false}, {"advice", cat("kernels cannot be compiled for a GPU: ", n.missing)}};
  return {{"found", true}, {"library", n.path}, {"version", n.version()}};
}

// Compiled kernels: those that ship with the program, and those kept on disk.
Json kernels() {
  Json j = {{"folder", jit::disk_folder()}, {"files", 0}, {"bytes", 0}, {"limit", 0}, {"pack", jit::pack_folder()}};
  j["limit"] = setting_int("TESSERA_KERNEL_CACHE_MB") << 20;
  int64_t files = 0, bytes = 0;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(jit::disk_folder(), missing)) {
    auto size = entry.file_size(missing);
    if (!missing) ++files, bytes += static_cast<int64_t>(size);
  }
  j["files"] = files, j["bytes"] = bytes;
  return j;
}

Json limits() {
  const Machine& m = this_machine();
  return {{"copy_bytes_per_second", m.copy_all},
          {"f32_flops_per_thread", m.flops_one},
          {"narrow_flops_per_thread", m.narrow_flops_one},
          {"tile_flops_per_thread", m.tile_flops_one},
          {"loop_seconds", m.loop_seconds}};
}

Json report() {
  Json j = {{"version", kVersion}, {"cpu", cpu()},   {"memory", memory()},
            {"onednn", onednn()},  {"cuda", cuda()}, {"nvrtc", nvrtc()}};
  j["kernels"] = kernels();
  j["kernels_hash"] = hex(jit::all_sources_hash());
  j["limits"] = limits();
  j["cache"] = cache_folder();
  j["tuning"] = {{"file", tuning_path()}, {"records", active_tuning().size(this_machine().name)}};
  j["plan_cache"] = {{"plans", plan_cache_size()}, {"limit", setting_int("TESSERA_PLAN_CACHE")}};
  j["engines"] = Json::array();
  for (const Engine* e : all_engines()) j["engines"].push_back(e->info().name);
  j["operations"] = all_ops().size();
  j["settings"] = Json::array();
  for (const Setting& s : settings()) {
    std::string value = setting(s.name);
    j["settings"].push_back({{"name", s.name}, {"value", value}, {"changed", value != s.fallback}});
  }
  return j;
}

std::string library_line(const Json& j) {
  if (!j["found"]) return "not found";
  return cat(j["library"].get<std::string>(),
             j.contains("version") ? ", version " + j["version"].get<std::string>() : "",
             j.contains("runtime") ? ", threads by " + j["runtime"].get<std::string>() : "");
}

void print_report(const Json& j) {
  auto row = [](const std::string& key, const std::string& value) {
    std::cout << paint(Colour::bold, key) << std::string(key.size() < 12 ? 12 - key.size() : 1, ' ') << value << "\n";
  };
  auto advice = [](const Json& part) {
    if (part.contains("advice")) std::cout << "            -> " << part["advice"].get<std::string>() << "\n";
  };
  row("tessera", j["version"]);
  const Json& c = j["cpu"];
  row("cpu", c["model"]);
  std::string yes, no;
  for (const auto& [feature, there] : c["features"].items()) (there.get<bool>() ? yes : no) += " " + feature;
  row("", cat("has:", yes.empty() ? " none" : yes, "; lacks:", no.empty() ? " none" : no));
  row("", cat(c["cores"].dump(), " cores, ", c["usable"].dump(), " usable by this process, ", c["threads"].dump(),
              " threads for a loop"));
  if (!c["features"]["avx2"].get<bool>()) std::cout << "            -> no AVX2: everything runs, slowly\n";
  row("memory", cat(human_bytes(j["memory"]["total"]), ", ", human_bytes(j["memory"]["free"]), " free"));
  const Json& o = j["onednn"];
  row("oneDNN", library_line(o));
  if (o.contains("isa")) {
    std::string limit = o["isa_limit"];
    row("", cat("instructions up to ", o["isa"].get<std::string>(), limit.empty() ? "" : "; ", limit));
  }
  advice(o);
  row("CUDA", library_line(j["cuda"]));
  if (j["cuda"].contains("devices"))
    for (const Json& d : j["cuda"]["devices"])
      row("", cat(d["name"].get<std::string>(), ", compute capability ", d["capability"].get<std::string>(), ", ",
                  d["multiprocessors"].dump(), " multiprocessors, ", human_bytes(d["memory"])));
  advice(j["cuda"]);
  row("NVRTC", library_line(j["nvrtc"]));
  advice(j["nvrtc"]);
  const Json& k = j["kernels"];
  std::string kept = k["folder"], pack = k["pack"];
  row("kernels", kept.empty() ? "not kept on disk"
                              : cat(k["files"].dump(), " compiled in '", kept, "', ", human_bytes(k["bytes"]),
                                    " of at most ", human_bytes(k["limit"])));
  row("", pack.empty() ? "no pack of kernels compiled ahead" : cat("pack '", pack, "'"));
  std::string engines;
  for (const Json& e : j["engines"]) engines += (engines.empty() ? "" : ", ") + e.get<std::string>();
  row("engines", engines);
  const Json& l = j["limits"];
  double tiles = l["tile_flops_per_thread"];
  std::string amx = tiles > 0 ? cat("by AMX ", human_count(tiles), "FLOP/s, ") : "";
  row("limits",
      cat("copy ", human_bytes(l["copy_bytes_per_second"]), "/s, f32 ", human_count(l["f32_flops_per_thread"]),
          "FLOP/s and 16-bit ", human_count(l["narrow_flops_per_thread"]), "FLOP/s a thread, ", amx,
          human_seconds(l["loop_seconds"]), " to start a loop"));
  std::string folder = j["cache"];
  row("cache", folder.empty() ? "no folder that only you can write: nothing is kept on disk" : folder);
  row("tuning",
      cat(j["tuning"]["records"].dump(), " records of this machine in '", j["tuning"]["file"].get<std::string>(), "'"));
  row("plan cache", cat("at most ", j["plan_cache"]["limit"].dump(), " plans, in memory"));
  for (const Json& s : j["settings"])
    row("setting", cat(s["name"].get<std::string>(), "=", s["value"].get<std::string>(),
                       s["changed"].get<bool>() ? "  (changed)" : ""));
}

}  // namespace

void add_doctor(Command& app) {
  auto json = std::make_shared<bool>(false);
  Command c = app.add_command("doctor", "Show what this machine has and what is missing");
  c.add_flag("--json", *json, "print as JSON");
  c.footer(
      "Examples: tessera doctor\n"
      "          tessera doctor --json");
  c.runs([json] {
    Json j = report();
    if (*json)
      print_json(j);
    else
      print_report(j);
    return static_cast<int>(kOk);
  });
}

}  // namespace tsr::cli
