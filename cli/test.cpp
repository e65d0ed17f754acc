// SPDX-License-Identifier: Apache-2.0
// `tessera test`: every case against every engine and the oracle.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/hash.hpp"
#include "command.hpp"
#include "harness/conversions.hpp"
#include "harness/fuzz.hpp"
#include "harness/measure.hpp"
#include "harness/provenance.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"
#include "runtime/jit/sources.hpp"
#include "test_cudnn.hpp"

namespace tsr::cli {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string filter, engine, record, cudnn, kind, device = "cpu";
  int64_t fuzz = 0, every = 1, ways = 1;
  uint64_t seed = 0;
  double seconds = 0;
  bool heavy = false, conversions = false, json = false;
};

// On a terminal one line that changes, a few times a second; elsewhere a line every ten seconds, to standard error.
class Progress {
 public:
  explicit Progress(bool json) : terminal_(!json && on_terminal()) {}
  ~Progress() { clear(); }
  void show(const std::string& what, int64_t done, int64_t all, const Tally& t) {
    if (now() - last_ < (terminal_ ? 0.1 : 10)) return;
    last_ = now();
    std::string line = cat(what, ": ", done, "/", all, ", ", t.passed, " passed, ", t.failed, " failed");
    if (terminal_)
      std::cout << "\r\033[K" << line << std::flush;
    else
      std::cerr << line << std::endl;
    shown_ = true;
  }
  void clear() {
    if (terminal_ && shown_) std::cout << "\r\033[K" << std::flush;
  }

 private:
  bool terminal_, shown_ = false;
  double last_ = now();
};

// Counted like an engine, one run for each type.
void run_conversions(const RunnerOptions& o, Tally& tally) {
  std::vector<std::string> differences = check_conversions(o.device);
  for (const std::string& d : differences) o.on_failure(d);
  tally.failed += static_cast<int64_t>(differences.size());
  tally.passed += conversion_types() - static_cast<int64_t>(differences.size());
  tally.by_engine["conversions"] += conversion_types();
}

int run(const Arguments& a) {
  require(a.every > 0, "--every is ", a.every, "; it must be 1 or more");
  require(a.fuzz >= 0, "--fuzz is ", a.fuzz, "; it must be a number of graphs");
  require(a.seconds >= 0, "--seconds is ", a.seconds, "; it must be positive");
  bool chosen = !a.files.empty() || !a.filter.empty() || a.every != 1;
  require(a.fuzz == 0 || !chosen, "--fuzz runs random graphs: case files, --filter and --every say nothing about them");
  require(a.fuzz > 0 || !a.heavy, "--heavy is for --fuzz");
  require(a.fuzz > 0 || a.kind.empty(), "--kind is for --fuzz");
  require(a.ways > 0, "--ways is ", a.ways, "; it must be 1 or more");
  require(!a.conversions || (!chosen && a.fuzz == 0), "--conversions runs no cases: they go without files, --filter, ",
          "--every and --fuzz");
  Tally tally;
  std::vector<std::string> failures;
  Progress progress(a.json);
  RunnerOptions o;
  o.engine = a.engine;
  o.ways = a.ways;
  o.device = find_device(a.device);
  require_present(o.device);
  if (!a.engine.empty()) check_engines({a.engine}, o.device);
  double end = now() + a.seconds;
  bool stopped = false;
  auto in_time = [&] {
    stopped = stopped || (a.seconds > 0 && now() >= end);
    return !stopped;
  };
  o.on_failure = [&](const std::string& text) {
    failures.push_back(text);
    progress.clear();
    if (!a.json) std::cout << paint(Colour::red, "FAIL ") << text << "\n";
  };
  bool everything = a.files.empty() && a.filter.empty() && a.engine.empty() && a.cudnn.empty() && a.fuzz == 0 &&
                    a.every == 1 && a.seconds == 0 && !a.conversions;
  std::optional<CudnnRunner> cudnn;
  if (!a.cudnn.empty()) cudnn.emplace(a.cudnn, o);
  require(!a.conversions || o.device.kind == DeviceKind::cuda, "--conversions compares device code with the host's; ",
          "name --device cuda or emulated");
  if (a.conversions || (everything && o.device.kind == DeviceKind::cuda)) run_conversions(o, tally);
  if (a.fuzz > 0) {
    MakeCase make = a.heavy || !a.kind.empty() ? heavy_cases(a.kind) : random_case;
    run_fuzz(a.fuzz, a.seed, make, o, tally, [&](int64_t done) {
      progress.show("random graphs", done, a.fuzz, tally);
      return in_time();
    });
  } else if (!a.conversions) {
    size_t cases_run = 0;
    for (const std::string& file : case_files(a.files, "tests/cases")) {
      std::vector<Case> cases = read_case_argument(file);
      for (size_t i = 0; i < cases.size() && in_time(); i += static_cast<size_t>(a.every)) {
        Case& c = cases[i];
        if (!is_wanted(c, a.filter)) continue;
        ++cases_run;
        c.data.seed += a.seed;
        if (cudnn)
          cudnn->run(c, tally);
        else
          run_case(c, o, tally);
        progress.show(file, static_cast<int64_t>(i + 1), static_cast<int64_t>(cases.size()), tally);
      }
    }
    if (!stopped) require_cases(cases_run, a.filter);
    require(stopped || tally.passed + tally.failed + tally.skipped > 0, "engine ", a.engine,
            " accepts no case that was given");
  }
  progress.clear();
  for (const Engine* e : all_engines()) {
    if (!everything || e->info().device != o.device.kind || tally.by_engine[std::string(e->info().name)] > 0) continue;
    ++tally.failed;
    o.on_failure(cat("engine ", e->info().name, " ran no case: it accepts nothing, or no case covers it"));
  }
  Json result = {{"passed", tally.passed},     {"failed", tally.failed},      {"skipped", tally.skipped},
                 {"engines", tally.by_engine}, {"skips", tally.skip_reasons}, {"failures", failures},
                 {"stopped", stopped}};
  if (!a.record.empty()) {
    Json record = {{"random_graphs", a.fuzz}, {"seed", a.seed}, {"cpu", cpu_model()}, {"commit", commit()}};
    if (o.device.kind == DeviceKind::cuda) {
      record["gpu"] = o.device.name;
      record["kernels_hash"] = hex(jit::all_sources_hash());
      record["ops"] = tally.by_op;
    }
    record.update(result);
    write_file(a.record, record.dump(2) + "\n");
  }
  if (a.json) {
    print_json(result);
  } else {
    for (const auto& [name, n] : tally.by_engine) std::cout << name << ": " << n << " runs\n";
    for (const auto& [why, n] : tally.skip_reasons) std::cout << "skipped " << n << ": " << why << "\n";
    if (stopped) std::cout << "stopped after " << a.seconds << " seconds, before all were run\n";
    std::string sum = cat(tally.passed, " passed, ", tally.failed, " failed, ", tally.skipped, " skipped");
    std::cout << paint(tally.failed ? Colour::red : Colour::green, sum) << "\n";
  }
  return tally.failed ? kFailed : kOk;
}

}  // namespace

void add_test(Command& app) {
  auto a = std::make_shared<Arguments>();
  Command c = app.add_command("test", "Run case files on every engine and compare with the oracle");
  c.add_option("FILES", a->files, "case files, or graphs; default: tests/cases/*.txt");
  c.add_option("--filter", a->filter, "only cases whose graph or file contains this text");
  c.add_option("--engine", a->engine, "only this engine");
  c.add_option("--device", a->device, "cpu, cuda, cuda:NUMBER or emulated").show_default();
  c.add_option("--cudnn", a->cudnn, "through this libcudnn.so.9 instead, as a client of cuDNN");
  c.add_option("--fuzz", a->fuzz, "run this many random graphs instead of case files");
  c.add_flag("--heavy", a->heavy, "with --fuzz: one heavy operation a graph, at larger sizes");
  c.add_option("--kind", a->kind, "with --fuzz: heavy operations of this kind, such as attention or product");
  c.add_option("--ways", a->ways, "how many candidates of each engine run: its choice, then others").show_default();
  c.add_flag("--conversions", a->conversions, "compare the device's conversions of all bit patterns instead");
  c.add_option("--seconds", a->seconds, "start no further case or random graph after this time");
  c.add_option("--every", a->every, "only every Nth case of each file").show_default();
  c.add_option("--seed", a->seed, "seed of random data and of --fuzz").show_default();
  c.add_option("--record", a->record, "also write the result to this file, with seed, processor and commit");
  c.add_flag("--json", a->json, "print the result as JSON");
  c.footer(
      "Examples: tessera test tests/cases/softmax.txt --engine fused_cpu\n"
      "          tessera test --fuzz 1000 --seed 7 --seconds 60\n"
      "          tessera test --fuzz 480 --kind attention --ways 3 --device emulated");
  c.runs([a] { return run(*a); });
}

}  // namespace tsr::cli
