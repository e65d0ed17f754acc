// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel.hpp"

#include <chrono>
#include <cstring>
#include <future>
#include <limits>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/jit/sources.hpp"
#include "runtime/jit/store.hpp"

namespace tsr {
namespace {

constexpr const char* kEntry = "tsr_kernel";
constexpr const char* kLaunchSource = "device/ptx/launch.cuh";

std::string describe_launch(const std::string& name, const Grid& g) {
  return cat(name, ", ", g.blocks, " blocks of ", g.threads, " threads, ", g.shared_bytes, " bytes of shared memory",
             g.cluster > 1 ? cat(", clusters of ", g.cluster) : std::string(),
             g.together ? ", all at the same time" : "");
}

// The number in front of `word` in the compiler's log, summed over all places.
int number_before(std::string_view log, std::string_view word) {
  int total = 0;
  for (size_t at = log.find(word); at != std::string_view::npos; at = log.find(word, at + 1)) {
    size_t end = at, start = at;
    while (start > 0 && log[start - 1] >= '0' && log[start - 1] <= '9') --start;
    if (start < end) total += std::stoi(std::string(log.substr(start, end - start)));
  }
  return total;
}

KernelInfo read_log(const std::string& log) {
  KernelInfo i;
  i.registers = number_before(log, " registers");
  i.stack_bytes = number_before(log, " bytes stack frame");
  i.spill_bytes = number_before(log, " bytes spill stores") + number_before(log, " bytes spill loads");
  i.log = log;
  return i;
}

// A kernel of a record: everything but running it works.
class AbsentKernel : public Kernel {
 public:
  explicit AbsentKernel(std::string device) : device_(std::move(device)) {}

 private:
  void start(const Grid&, void*, const void*) const override { refuse(); }
  void clear(void*, size_t, void*) const override { refuse(); }
  [[noreturn]] void refuse() const {
    fail(Status::not_supported, "kernel ", name_, " is for ", device_, ", which is not there; it cannot run");
  }
  std::string device_;
};

class CudaKernel : public Kernel {
 public:
  CudaKernel(const Program& p, const std::string& code, const Device& d) {
    const std::string& name = p.body;
    const cuda::Driver& driver = cuda::driver();
    cuda::ensure_context(d.index);
    // Loaded into the caller's context at once: a launch must not load anything, it may be under capture.
    cuda::check(driver.LibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                "cuLibraryLoadData", name);
    cuda::check(driver.LibraryGetKernel(&function_, library_, kEntry), "cuLibraryGetKernel", name);
    cuda::Function loaded = nullptr;
    cuda::check(driver.KernelGetFunction(&loaded, function_), "cuKernelGetFunction", name);
    constexpr int kMaxDynamicShared = 8;
    cuda::check(driver.KernelSetAttribute(kMaxDynamicShared, static_cast<int>(d.shared_bytes), function_, d.index),
                "cuKernelSetAttribute", name);
    constexpr int kOverlapArch = 90, kRecordsOverlap = 12030;  // the first driver whose graphs keep it
    constexpr int kThreads = 2048;                             // of a multiprocessor
    if (d.arch < kOverlapArch || driver.version < kRecordsOverlap) return;
    overlap_from_ =
        p.blocks_per_unit == 1 ? 1 : d.units * int64_t{p.blocks_per_unit ? p.blocks_per_unit : kThreads / p.threads};
  }
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;
  ~CudaKernel() override {
    if (library_) cuda::driver().LibraryUnload(library_);  // at exit the driver may be gone already
  }

 private:
  void start(const Grid& g, void* stream, const void* args) const override {
    cuda::LaunchConfig c = {};
    c.grid_x = static_cast<unsigned>(g.blocks);
    c.grid_y = c.grid_z = c.block_y = c.block_z = 1;
    c.block_x = static_cast<unsigned>(g.threads);
    c.shared_bytes = static_cast<unsigned>(g.shared_bytes);
    c.stream = static_cast<cuda::Stream>(stream);
    cuda::LaunchAttribute attributes[3];
    if (g.cluster > 1) {
      attributes[c.attribute_count].id = cuda::kClusterDimension;
      attributes[c.attribute_count++].value.cluster = {static_cast<unsigned>(g.cluster), 1, 1};
    }
    if (g.blocks >= overlap_from_ && !g.together) {
      attributes[c.attribute_count].id = cuda::kProgrammaticSerialisation;
      attributes[c.attribute_count++].value.flag = 1;
    }
    if (g.together) {
      attributes[c.attribute_count].id = cuda::kCooperative;
      attributes[c.attribute_count++].value.flag = 1;
    }
    c.attributes = attributes;
    void* parameters[] = {const_cast<void*>(args)};
    cuda::Result r = cuda::driver().LaunchKernelEx(&c, function_, parameters, nullptr);
    if (r != 0) cuda::raise(r, "cuLaunchKernelEx", describe_launch(name_, g));
  }
  void clear(void* data, size_t bytes, void* stream) const override {
    auto p = reinterpret_cast<cuda::Pointer>(data);
    cuda::check(cuda::driver().MemsetD8Async(p, 0, bytes, static_cast<cuda::Stream>(stream)), "cuMemsetD8Async", bytes,
                " bytes for ", name_);
  }
  cuda::Library library_ = nullptr;
  cuda::Function function_ = nullptr;
  // From so many blocks on it may start before the kernel in front ends. Fewer would crowd where that ends first, and
  // leave other multiprocessors without work.
  int64_t overlap_from_ = std::numeric_limits<int64_t>::max();
};

class EmulatedKernel : public Kernel {
 public:
  EmulatedKernel(const std::string& library, int64_t shared_bytes) : kernel_(library), shared_bytes_(shared_bytes) {}

 private:
  void start(const Grid& g, void*, const void* args) const override {
    if (g.shared_bytes > shared_bytes_)
      fail(Status::execution_failed, "a block may have ", shared_bytes_,
           " bytes of shared memory: ", describe_launch(name_, g));
    if (std::string why = kernel_.run(g, args); !why.empty())
      fail(Status::execution_failed, "emulated kernel failed: ", why, ": ", describe_launch(name_, g));
  }
  void clear(void* data, size_t bytes, void*) const override { std::memset(data, 0, bytes); }
  emulator::LoadedKernel kernel_;
  int64_t shared_bytes_;  // that a block may have
};

struct Library {
  std::mutex lock;
  std::unordered_map<std::string, std::shared_future<std::shared_ptr<const Kernel>>> kernels;
  KernelCounts counts;
  std::string recorded;  // folder
};

Library& library() {
  static auto* l = new Library;  // never destroyed: the driver may end before static objects do
  return *l;
}

}  // namespace

// Builds kernels; the one friend that may fill them.
struct KernelLibrary {
  static std::shared_ptr<const Kernel> make(const Program& p, const Device& d, const std::string& key) {
    std::shared_ptr<Kernel> kernel;
    jit::Compiled c;
    if (d.target == "emulated") {
      kernel = std::make_shared<EmulatedKernel>(emulator::compile(kernel_text(p, d), key), d.shared_bytes);
    } else {
      c = obtain(p, d, key);
      if (d.memory)
        kernel = std::make_shared<CudaKernel>(p, c.code, d);
      else
        kernel = std::make_shared<AbsentKernel>(d.name);
    }
    kernel->name_ = p.body;
    kernel->code_ = std::move(c.code);
    kernel->info_ = read_log(c.log);
    return kernel;
  }

 private:
  static jit::Compiled obtain(const Program& p, const Device& d, const std::string& key) {
    std::string versioned = jit::nvrtc() ? cat(key, "-", jit::nvrtc().version()) : key;
    if (auto c = jit::read_kernel(jit::pack_folder(), key)) return count(&KernelCounts::from_pack, key, *c);
    if (auto c = jit::read_kernel(jit::disk_folder(), versioned)) return count(&KernelCounts::from_disk, key, *c);
    if (!d.memory && !jit::nvrtc()) return {};
    auto start = std::chrono::steady_clock::now();
    jit::Compiled c = jit::compile_cuda(kernel_text(p, d), d.target);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    log_line(4, cat("compiled ", p.body, " for ", d.target, " in ", seconds, " s"));
    if (std::string folder = jit::disk_folder(); !folder.empty()) {
      jit::write_kernel(folder, versioned, c);
      static std::once_flag once;  // a process adds little; older ones are looked after once
      std::call_once(once, [&] { jit::trim_kernels(folder); });
    }
    {
      std::lock_guard guard(library().lock);
      library().counts.compile_seconds += seconds;
    }
    return count(&KernelCounts::compiled, key, c);
  }

  static jit::Compiled count(int64_t KernelCounts::*which, const std::string& key, const jit::Compiled& c) {
    std::string folder;
    {
      std::lock_guard guard(library().lock);
      ++(library().counts.*which);
      folder = library().recorded;
    }
    if (!folder.empty()) jit::write_kernel(folder, key, c);
    return c;
  }
};

std::string kernel_text(const Program& p, const Device& d) {
  bool emulated = d.target == "emulated";
  // From sm_100 on the compiler bounds registers on its own where nothing is said, and spills.
  int blocks = p.blocks_per_unit ? p.blocks_per_unit : d.arch >= 100 ? 1 : 0;
  std::string bounds = cat(p.threads, blocks ? cat(", ", blocks) : std::string());
  std::string text;
  if (emulated) text += "#include \"device/emulated.cuh\"\n";
  // The start of a kernel, and what it prepares, hide behind the end of the one in front.
  const char* wait = p.waits ? "" : "tsr::dev::wait_for_previous(); ";
  text += cat("#include \"", kLaunchSource, "\"\n#include \"", p.include, "\"\n", p.generated,
              "\nextern \"C\" __global__ void __launch_bounds__(", bounds, ") ", kEntry, "(const __grid_constant__ ",
              p.args, " args) { tsr::dev::launch_next(); ", wait, p.body, "(args); }\n");
  if (emulated)
    text += cat("extern \"C\" void tsr_enter(tsr_emulated::World* world, const void* args) {\n",
                "  tsr_emulated::world = world;\n  ", kEntry, "(*static_cast<const ", p.args, "*>(args));\n}\n");
  return text;
}

namespace {

thread_local KernelRecorder* recorder = nullptr;

std::shared_ptr<const Kernel> find_or_make(const Program& p, const Device& d) {
  uint64_t sources = jit::closure_hash(p.include) ^ jit::closure_hash(kLaunchSource);
  std::string what = cat(kernel_text(p, d), '\n', d.target, '\n', jit::compile_flags());
  std::string key = hex(hash_text(what, sources)) + hex(hash_text(what, ~sources));
  std::string where = cat(key, '@', d.memory ? d.index : -1);
  Library& l = library();
  std::promise<std::shared_ptr<const Kernel>> promise;
  {
    std::unique_lock guard(l.lock);
    auto it = l.kernels.find(where);
    if (it != l.kernels.end()) {
      ++l.counts.from_memory;
      auto future = it->second;
      guard.unlock();
      return future.get();
    }
    l.kernels.emplace(where, promise.get_future().share());
  }
  try {
    auto kernel = KernelLibrary::make(p, d, key);
    promise.set_value(kernel);
    return kernel;
  } catch (...) {
    promise.set_exception(std::current_exception());
    std::lock_guard guard(l.lock);
    l.kernels.erase(where);
    throw;
  }
}

}  // namespace

KernelRecorder::KernelRecorder() : outer_(recorder) { recorder = this; }
KernelRecorder::~KernelRecorder() { recorder = outer_; }

std::shared_ptr<const Kernel> get_kernel(const Program& p, const Device& d) {
  auto kernel = find_or_make(p, d);
  if (recorder) recorder->add({p, kernel});
  return kernel;
}

std::vector<std::shared_ptr<const Kernel>> get_kernels(std::span<const Program> programs, const Device& d) {
  std::vector<std::future<std::shared_ptr<const Kernel>>> waiting;
  for (const Program& p : programs)
    waiting.push_back(std::async(programs.size() > 1 ? std::launch::async : std::launch::deferred,
                                 [&p, &d] { return find_or_make(p, d); }));
  std::vector<std::shared_ptr<const Kernel>> out;
  for (size_t i = 0; i < waiting.size(); ++i) {
    out.push_back(waiting[i].get());
    if (recorder) recorder->add({programs[i], out.back()});
  }
  return out;
}

KernelCounts kernel_counts() {
  std::lock_guard guard(library().lock);
  return library().counts;
}

void forget_kernels() {
  std::lock_guard guard(library().lock);
  library().kernels.clear();
}

void record_kernels(const std::string& folder) {
  std::lock_guard guard(library().lock);
  library().recorded = folder;
}

}  // namespace tsr
