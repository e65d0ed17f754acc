// SPDX-License-Identifier: Apache-2.0
// `tessera dump`: the kernels of a plan as source, PTX, machine code or the compiler's log; or the graph as JSON.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graph_json.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  PlanArguments plan;
  bool source = false, ptx = false, sass = false, log = false, json = false;
};

// nvdisasm on the PATH, in the toolkit, or in Python's nvidia packages.
std::string find_disassembler() {
  std::vector<fs::path> places;
  if (const char* path = std::getenv("PATH")) {
    std::string all = path;
    for (size_t at = 0; at <= all.size();) {
      size_t end = std::min(all.find(':', at), all.size());
      places.emplace_back(all.substr(at, end - at));
      at = end + 1;
    }
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* v = std::getenv(name)) places.emplace_back(fs::path(v) / "bin");
  places.emplace_back("/usr/local/cuda/bin");
  if (const char* v = std::getenv("VIRTUAL_ENV")) {
    std::error_code ignored;
    for (const auto& python : fs::directory_iterator(fs::path(v) / "lib", ignored))
      for (const auto& part : fs::directory_iterator(python.path() / "site-packages/nvidia", ignored))
        places.push_back(part.path() / "bin");
  }
  for (const fs::path& p : places) {
    std::error_code ignored;
    if (fs::exists(p / "nvdisasm", ignored)) return (p / "nvdisasm").string();
  }
  return "";
}

void print_sass(const std::string& cubin) {
  static const std::string tool = find_disassembler();
  require(!tool.empty(), "machine code needs NVIDIA's nvdisasm, which is neither on the PATH nor in CUDA_HOME/bin; it ",
          "comes with the CUDA toolkit and with Python's nvidia-cuda-nvdisasm");
  std::string file = (fs::temp_directory_path() / cat("tessera.", getpid(), ".cubin")).string();
  write_file(file, cubin);
  std::cout << std::flush;
  int rc = std::system(cat("'", tool, "' '", file, "'").c_str());
  fs::remove(file);
  require(rc == 0, "'", tool, "' failed");
}

int run(const Arguments& a) {
  require(!a.json || !(a.source || a.ptx || a.sass || a.log),
          "--json prints the graph, --src, --ptx, --sass and --log ", "kernels: one or the other");
  if (a.json) return print_json(graph_json(*read_graph(a.plan.graph))), kOk;
  Device d = a.plan.pick_device();
  require(d.kind == DeviceKind::cuda, "plans for --device ", a.plan.device,
          " have no kernels; name a GPU such as h200");
  KernelRecorder recorder;
  auto plan = make_plan(read_graph(a.plan.graph), d, a.plan.options());
  for (const auto& [program, kernel] : recorder.entries()) {
    const KernelInfo& i = kernel->info();
    std::cout << "// " << program.body << " for " << d.target << ": ";
    if (kernel->code().empty())
      std::cout << "not compiled: " << jit::nvrtc().missing << "\n";
    else
      std::cout << i.registers << " registers, " << i.stack_bytes << " bytes of stack, " << i.spill_bytes
                << " bytes spilled, " << kernel->code().size() << " bytes\n";
    if (a.source) std::cout << kernel_text(program, d) << "\n";
    if (a.log) std::cout << i.log << "\n";
    if (a.ptx) std::cout << jit::compile_cuda(kernel_text(program, d), d.target, jit::Form::ptx).code << "\n";
    if (a.sass) {
      if (kernel->code().empty()) fail(Status::not_supported, "there is no machine code: ", jit::nvrtc().missing);
      print_sass(kernel->code());
    }
  }
  if (recorder.entries().empty()) std::cout << "// the plan has no kernels\n";
  return kOk;
}

}  // namespace

void add_dump(Command& app) {
  auto a = std::make_shared<Arguments>();
  a->plan.device = "h200";
  Command c = app.add_command("dump", "Show the kernels of a plan: source, PTX, machine code, the compiler's log");
  a->plan.add_to(c);
  c.add_flag("--src", a->source, "the generated source");
  c.add_flag("--ptx", a->ptx, "PTX");
  c.add_flag("--sass", a->sass, "machine code, where nvdisasm is found");
  c.add_flag("--log", a->log, "what the compiler said");
  c.add_flag("--json", a->json, "the graph instead, as JSON that other programs can evaluate");
  c.footer("Example:  tessera dump --json 'x = input f32[2,3]; y = relu x; output y'");
  c.runs([a] { return run(*a); });
}

}  // namespace tsr::cli
