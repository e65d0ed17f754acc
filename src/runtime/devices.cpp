// SPDX-License-Identifier: Apache-2.0
#include "runtime/devices.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/cuda/driver.hpp"

namespace tsr {
namespace {

class CudaMemory : public DeviceMemory {
 public:
  explicit CudaMemory(int device) : device_(device) {}
  void attach() const override { cuda::ensure_context(device_); }
  void* allocate(size_t bytes) const override {
    cuda::ensure_context(device_);
    cuda::RelaxedCapture allowed;
    cuda::Pointer p = 0;
    cuda::check(cuda::driver().MemAlloc(&p, std::max<size_t>(bytes, 1)), "cuMemAlloc", bytes, " bytes");
    return reinterpret_cast<void*>(p);
  }
  void release(void* data) const noexcept override {
    cuda::driver().MemFree(reinterpret_cast<cuda::Pointer>(data));  // at exit the driver may be gone already
  }
  void copy_in(void* to, const void* from, size_t bytes) const override {
    cuda::ensure_context(device_);
    cuda::check(cuda::driver().MemcpyHtoD(reinterpret_cast<cuda::Pointer>(to), from, bytes), "cuMemcpyHtoD", bytes,
                " bytes");
    // From pageable memory the call may return before the device has the data, which other streams would then miss.
    cuda::check(cuda::driver().StreamSynchronize(nullptr), "cuStreamSynchronize");
  }
  void copy_out(void* to, const void* from, size_t bytes) const override {
    cuda::ensure_context(device_);
    cuda::check(cuda::driver().MemcpyDtoH(to, reinterpret_cast<cuda::Pointer>(from), bytes), "cuMemcpyDtoH", bytes,
                " bytes");
  }
  void copy_within(void* to, const void* from, size_t bytes, void* stream) const override {
    cuda::check(
        cuda::driver().MemcpyDtoDAsync(reinterpret_cast<cuda::Pointer>(to), reinterpret_cast<cuda::Pointer>(from),
                                       bytes, static_cast<cuda::Stream>(stream)),
        "cuMemcpyDtoDAsync", bytes, " bytes");
  }
  When runs(void* stream) const override {
    int capturing = 0;
    cuda::Result r = cuda::driver().StreamIsCapturing(static_cast<cuda::Stream>(stream), &capturing);
    return r == 0 && capturing != 0 ? When::recorded : When::in_order;
  }

 private:
  int device_;
};

class HostMemory : public DeviceMemory {
 public:
  void* allocate(size_t bytes) const override {
    constexpr size_t kAlign = 256;
    void* p = std::aligned_alloc(kAlign, (bytes + kAlign) / kAlign * kAlign);
    if (!p) fail(Status::out_of_memory, "cannot allocate ", bytes, " bytes");
    return p;
  }
  void release(void* data) const noexcept override { std::free(data); }
  void copy_in(void* to, const void* from, size_t bytes) const override {
    if (bytes) std::memcpy(to, from, bytes);  // nothing may come with null pointers
  }
  void copy_out(void* to, const void* from, size_t bytes) const override { copy_in(to, from, bytes); }
  void copy_within(void* to, const void* from, size_t bytes, void*) const override { copy_in(to, from, bytes); }
  When runs(void*) const override { return When::at_once; }
};

int attribute(cuda::DeviceAttribute a, int device) {
  int value = 0;
  cuda::check(cuda::driver().DeviceGetAttribute(&value, static_cast<int>(a), device), "cuDeviceGetAttribute");
  return value;
}

// "nvidiah200" for "NVIDIA H200": one word, as saved plans need it.
std::string plain_name(const std::string& driver_name) {
  std::string plain;
  for (char c : driver_name)
    if (c != ' ') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

// The record that fits best: of the same architecture, and named in the driver's name for the device.
const Device* matching_record(const std::string& plain, int arch) {
  const Device* of_arch = nullptr;
  for (const Device& d : device_records()) {
    if (d.arch != arch) continue;
    if (plain.find(d.name) != std::string::npos) return &d;
    if (!of_arch) of_arch = &d;
  }
  return of_arch;
}

int gpu_count() {
  int count = 0;
  cuda::check(cuda::driver().DeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

GpuInfo gpu_info(int index) {
  using A = cuda::DeviceAttribute;
  char name[256] = {};
  cuda::check(cuda::driver().DeviceGetName(name, sizeof name - 1, index), "cuDeviceGetName", "device ", index);
  GpuInfo g{name, attribute(A::major, index), attribute(A::minor, index), attribute(A::multiprocessors, index)};
  cuda::check(cuda::driver().DeviceTotalMem(&g.memory_bytes, index), "cuDeviceTotalMem", "device ", index);
  return g;
}

Device describe_device(int index) {
  using A = cuda::DeviceAttribute;
  GpuInfo g = gpu_info(index);
  int arch = g.major * 10 + g.minor;
  require(g.major >= 8, "CUDA device ", index, " (", g.name, ") has compute capability ", g.major, ".", g.minor,
          ", 8.0 or later is needed");
  Device d;
  if (const Device* r = matching_record(plain_name(g.name), arch)) d = *r;
  d.kind = DeviceKind::cuda;
  d.index = index;
  if (d.name.empty()) d.name = plain_name(g.name);
  if (d.arch != arch) d.arch = arch, d.target = cat("sm_", arch);
  d.units = g.units;
  d.shared_bytes = attribute(A::shared_bytes_optin, index);
  d.cache_bytes = attribute(A::l2_bytes, index);
  constexpr int kManyArguments = 12010, kFewBytes = 4096;
  if (cuda::driver().version < kManyArguments) d.argument_bytes = kFewBytes;
  static std::vector<CudaMemory*> memories;  // never freed: devices are few, and plans may outlive everything else
  while (static_cast<int>(memories.size()) <= index)
    memories.push_back(new CudaMemory(static_cast<int>(memories.size())));
  d.memory = memories[static_cast<size_t>(index)];
  return d;
}

}  // namespace

std::vector<GpuInfo> gpus() {
  std::vector<GpuInfo> list;
  for (int i = 0, n = cuda::driver() ? gpu_count() : 0; i < n; ++i) list.push_back(gpu_info(i));
  return list;
}

Device cuda_device(int index) {
  if (!cuda::driver())
    fail(Status::not_supported, "there is no CUDA device: ", cuda::driver().missing,
         "; use the device cpu, or plan for a record such as h200");
  int count = gpu_count();
  require(index >= 0 && index < count, "there is no CUDA device ", index, "; this machine has ", count);
  static const std::vector<Device> devices = [count] {
    std::vector<Device> list;
    for (int i = 0; i < count; ++i) list.push_back(describe_device(i));
    return list;
  }();
  return devices[static_cast<size_t>(index)];
}

Device emulated_device(std::string_view like) {
  static const HostMemory memory;
  Device d = *find_device_record(like);
  d.name = "emulated";
  d.target = "emulated";
  d.memory = &memory;
  return d;
}

Device find_device(std::string_view name) {
  if (name == "cpu") return cpu_device();
  if (name == "cuda") return cuda_device();
  if (name == "emulated") return emulated_device();
  if (name.substr(0, 5) == "cuda:") {
    int index = -1;
    auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), index);
    require(error == std::errc() && end == name.data() + name.size(), "'", name, "' must read cuda:NUMBER");
    return cuda_device(index);
  }
  if (const Device* d = find_device_record(name)) return *d;
  std::vector<std::string> names = {"cpu", "cuda", "cuda:NUMBER", "emulated"};
  for (const Device& d : device_records()) names.push_back(d.name);
  fail(Status::bad_parameter, "there is no device '", name, "'; devices: ", any_of_text(names));
}

bool is_gpu(const Device& d) { return d.kind == DeviceKind::cuda && d.memory && d.target != "emulated"; }

void synchronize(const Device& d, void* stream) {
  if (!is_gpu(d)) return;
  cuda::ensure_context(d.index);
  cuda::check(cuda::driver().StreamSynchronize(static_cast<cuda::Stream>(stream)), "cuStreamSynchronize");
}

}  // namespace tsr
