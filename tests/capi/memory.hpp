// SPDX-License-Identifier: Apache-2.0
// Memory for calls: the host's, or a GPU's (TESSERA_DEVICE=cuda or emulated) with a copy on the host for the test.
// Whoever asks for the pointer may write through it, so that what the test sees afterwards is fetched again.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace client {

// A GPU's memory, by the few functions of the driver that a test needs. For the emulated GPU it is the host's, but
// apart from the test's all the same: a test that takes a pointer too early, or forgets to fetch, fails without a GPU
// too.
class Gpu {
 public:
  static const Gpu* get() {
    const char* device = std::getenv("TESSERA_DEVICE");
    if (!device || (std::strncmp(device, "cuda", 4) != 0 && std::strcmp(device, "emulated") != 0)) return nullptr;
    static const Gpu gpu(std::strcmp(device, "emulated") == 0);
    return &gpu;
  }
  static bool is_real() { return get() && get()->library_; }
  void* allocate(size_t bytes) const {
    unsigned long long p = 0;
    enter();
    check(allocate_(&p, bytes));
    return reinterpret_cast<void*>(p);
  }
  void release(void* p) const {
    enter();
    check(free_(reinterpret_cast<unsigned long long>(p)));
  }
  void wait() const {
    enter();
    check(wait_());
  }
  // Both wait for what was started before.
  void copy_in(void* to, const void* from, size_t bytes) const {
    wait();
    check(in_(reinterpret_cast<unsigned long long>(to), from, bytes));
  }
  void copy_out(void* to, const void* from, size_t bytes) const {
    wait();
    check(out_(to, reinterpret_cast<unsigned long long>(from), bytes));
  }
  template <class F>
  void find(const char* name, F& f) const {
    f = reinterpret_cast<F>(dlsym(library_, name));
    if (!f) throw std::runtime_error(name);
  }
  static void check(int status) {
    if (status) throw std::runtime_error("the driver says " + std::to_string(status));
  }

 private:
  explicit Gpu(bool emulated) {
    if (emulated) {
      use_host();
      return;
    }
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library_) throw std::runtime_error("there is no libcuda.so.1");
    int (*init)(unsigned);
    int (*retain)(void**, int);
    find("cuInit", init), find("cuDevicePrimaryCtxRetain", retain), find("cuCtxSetCurrent", enter_);
    find("cuMemAlloc_v2", allocate_), find("cuMemFree_v2", free_), find("cuMemcpyHtoD_v2", in_);
    find("cuMemcpyDtoH_v2", out_), find("cuCtxSynchronize", wait_);
    check(init(0)), check(retain(&context_, 0));
  }
  void enter() const { check(enter_(context_)); }  // for the thread that calls
  void use_host() {
    allocate_ = [](unsigned long long* p, size_t bytes) {
      constexpr size_t kAlignment = 256;  // a driver's
      *p = reinterpret_cast<unsigned long long>(
          std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
      return *p ? 0 : 1;
    };
    free_ = [](unsigned long long p) { return std::free(reinterpret_cast<void*>(p)), 0; };
    in_ = [](unsigned long long to, const void* from, size_t n) {
      return std::memcpy(reinterpret_cast<void*>(to), from, n), 0;
    };
    out_ = [](void* to, unsigned long long from, size_t n) {
      return std::memcpy(to, reinterpret_cast<const void*>(from), n), 0;
    };
    wait_ = [] { return 0; };
    enter_ = [](void*) { return 0; };
  }
  void *library_ = nullptr, *context_ = nullptr;
  int (*enter_)(void*) = nullptr;
  int (*allocate_)(unsigned long long*, size_t) = nullptr;
  int (*free_)(unsigned long long) = nullptr;
  int (*in_)(unsigned long long, const void*, size_t) = nullptr;
  int (*out_)(void*, unsigned long long, size_t) = nullptr;
  int (*wait_)() = nullptr;
};

class Memory {
 public:
  explicit Memory(size_t bytes = 0, unsigned char value = 0) { resize(bytes, value); }
  Memory(const Memory& o) : Memory(o.size()) { std::memcpy(edit(), o.host(), o.size()); }
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (device_) Gpu::get()->release(device_);
  }
  void resize(size_t bytes, unsigned char value) {
    if (device_) Gpu::get()->release(device_);
    host_.assign(bytes, value);
    device_ = Gpu::get() && bytes ? Gpu::get()->allocate(bytes) : nullptr;
    state_ = State::edited;
  }
  size_t size() const { return host_.size(); }
  // For a call, which may write.
  void* data() {
    if (!device_) return host_.data();
    if (state_ == State::edited) Gpu::get()->copy_in(device_, host_.data(), size());
    state_ = State::given;
    return device_;
  }
  // For the test.
  const unsigned char* host() const {
    if (device_ && state_ == State::given) {
      Gpu::get()->copy_out(host_.data(), device_, size());
      state_ = State::same;
    }
    return host_.data();
  }
  unsigned char* edit() {
    (void)host();
    state_ = State::edited;
    return host_.data();
  }

 private:
  enum class State { edited, given, same };  // the host's copy is newer, the GPU's may be, or neither
  mutable std::vector<unsigned char> host_;
  mutable State state_ = State::edited;
  void* device_ = nullptr;
};

}  // namespace client
