// SPDX-License-Identifier: Apache-2.0
// Objects that programs know by their address. A handle that was never given, or whose object is gone, is refused.
#pragma once

#include <mutex>
#include <unordered_set>

#include "cudart/errors.hpp"

namespace cudart {

// Base of T, which has `static constexpr const char* kWhat`.
template <class T>
class Handle {
 public:
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  static bool alive(const Handle* handle) {
    std::lock_guard guard(live().lock);
    return live().handles.count(handle) != 0;
  }
  static T& at(T* handle) {
    demand(alive(handle), cudaErrorInvalidResourceHandle, static_cast<const void*>(handle), " is no ", T::kWhat,
           " of this runtime, or was destroyed");
    return *handle;
  }

 protected:
  Handle() {
    std::lock_guard guard(live().lock);
    live().handles.insert(this);
  }
  ~Handle() {
    std::lock_guard guard(live().lock);
    live().handles.erase(this);
  }

 private:
  struct Live {
    std::mutex lock;
    std::unordered_set<const Handle*> handles;
  };
  // Never destroyed: programs destroy their objects while they end.
  static Live& live() {
    static auto& l = *new Live;
    return l;
  }
};

}  // namespace cudart
