// SPDX-License-Identifier: Apache-2.0
// Memory for calls: the host's, or with TESSERA_DEVICE=cuda a GPU's, with a copy on the host for the test. Whoever asks
// for the pointer may write through it, so that what the test sees afterwards is fetched again.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace client {

// The driver, by the few functions that a test needs.
class Gpu {
 public:
  static const Gpu* get() {
    const char* device = std::getenv("TESSERA_DEVICE");
    if (!device || std::strncmp(device, "cuda", 4) != 0) return nullptr;
    static const Gpu gpu;
    return &gpu;
  }
  void* allocate(size_t bytes) const {
    unsigned long long p = 0;
    check(allocate_(&p, bytes));
    return reinterpret_cast<void*>(p);
  }
  void release(void* p) const { check(free_(reinterpret_cast<unsigned long long>(p))); }
  // Both wait for what was started before.
  void copy_in(void* to, const void* from, size_t bytes) const {
    check(wait_());
    check(in_(reinterpret_cast<unsigned long long>(to), from, bytes));
  }
  void copy_out(void* to, const void* from, size_t bytes) const {
    check(wait_());
    check(out_(to, reinterpret_cast<unsigned long long>(from), bytes));
  }

 private:
  Gpu() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library_) throw std::runtime_error("there is no libcuda.so.1");
    int (*init)(unsigned);
    int (*retain)(void**, int);
    int (*current)(void*);
    find("cuInit", init), find("cuDevicePrimaryCtxRetain", retain), find("cuCtxSetCurrent", current);
    find("cuMemAlloc_v2", allocate_), find("cuMemFree_v2", free_), find("cuMemcpyHtoD_v2", in_);
    find("cuMemcpyDtoH_v2", out_), find("cuCtxSynchronize", wait_);
    void* context = nullptr;
    check(init(0)), check(retain(&context, 0)), check(current(context));
  }
  template <class F>
  void find(const char* name, F& f) {
    f = reinterpret_cast<F>(dlsym(library_, name));
    if (!f) throw std::runtime_error(name);
  }
  static void check(int status) {
    if (status) throw std::runtime_error("the driver says " + std::to_string(status));
  }
  void* library_ = nullptr;
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
