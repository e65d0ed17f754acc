// SPDX-License-Identifier: Apache-2.0
// A cuDNN that computes nothing: it keeps what it is told, enforces the rules that need no GPU (nothing is used before
// it is finalized, nothing changes afterwards) and answers as a test wants. Found by the symbol `fake_cudnn`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct FakeAttribute {
  int type = 0;
  int64_t count = 0;
  std::vector<std::byte> bytes;
  template <class T>
  std::vector<T> as() const {
    std::vector<T> v(bytes.size() / sizeof(T));
    std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
    return v;
  }
};

struct FakeDescriptor {
  int kind = 0;
  bool finalized = false;
  int64_t engine = -1;  // of configurations, engines and plans
  std::map<int, FakeAttribute> attributes;
};

struct FakeCudnn {
  // How it answers.
  size_t version = 91900;
  std::map<int, std::vector<int64_t>> engines;  // by mode of the heuristics, in order of preference
  bool viable = true;                           // false: engines are counted and then not handed out
  std::vector<int64_t> refused;                 // engines that do not become plans
  std::map<int64_t, std::vector<int>> notes;    // numerical notes of engines
  int64_t workspace = 0;
  int fail_execute = 0;  // a status

  // What happened.
  int alive = 0, handles = 0;             // descriptors and handles that exist
  std::vector<FakeDescriptor> finalized;  // in order, as they were then
  std::vector<int64_t> executed;          // engines
  std::vector<void*> streams;             // that were set
  std::map<int64_t, void*> pointers;      // of the last execution
  void* workspace_pointer = nullptr;
};
