// SPDX-License-Identifier: Apache-2.0
#include "harness/device_buffers.hpp"

#include <algorithm>
#include <cstring>

namespace tsr {
namespace {

constexpr size_t kBand = 256;
constexpr std::byte kBandByte{0x5a};

}  // namespace

std::shared_ptr<void> device_memory(const Device& d, size_t bytes) {
  if (const DeviceMemory* m = d.memory) return {m->allocate(bytes), [m](void* p) { m->release(p); }};
  auto host = std::make_shared<GuardedBuffer>(bytes, 256);
  return {host, host->data()};
}

DeviceCopy::DeviceCopy(const DeviceMemory& memory, GuardedBuffer& host) : memory_(memory), host_(host) {
  constexpr size_t kLine = 64;
  size_t skew = reinterpret_cast<uintptr_t>(host.data()) % kLine, bytes = 2 * kBand + skew + host.size();
  storage_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(memory.allocate(bytes)),
                                        [&memory](std::byte* p) { memory.release(p); });
  data_ = storage_.get() + kBand + skew;
  std::vector<std::byte> bands(bytes, kBandByte);
  memory_.copy_in(storage_.get(), bands.data(), bytes);
}

void DeviceCopy::upload() { memory_.copy_in(data_, host_.data(), host_.size()); }

void DeviceCopy::download() {
  auto front = static_cast<size_t>(data_ - storage_.get());
  std::vector<std::byte> all(front + host_.size() + kBand);
  memory_.copy_out(all.data(), storage_.get(), all.size());
  auto clean = [](auto first, auto last) {
    return std::all_of(first, last, [](std::byte b) { return b == kBandByte; });
  };
  auto begin = all.begin() + static_cast<std::ptrdiff_t>(front);
  intact_ = clean(all.begin(), begin) && clean(begin + static_cast<std::ptrdiff_t>(host_.size()), all.end());
  if (host_.size()) std::memcpy(host_.data(), all.data() + front, host_.size());
}

DeviceBuffers::DeviceBuffers(const Graph& g, GraphBuffers& host, const Device& d) : g_(g), host_(host) {
  auto table = host.table();
  for (TensorId t = 0; t < g.tensor_count(); ++t) {
    void* data = table[static_cast<size_t>(t)];
    if (!data) continue;
    if (d.memory && !g.tensor(t).by_value)
      data = copies_.try_emplace(t, *d.memory, host.buffer(t)).first->second.data();
    bindings_.push_back({g.tensor(t).uid, data});
  }
}

void DeviceBuffers::upload() {
  for (auto& [t, copy] : copies_) copy.upload();
}

void DeviceBuffers::download() {
  for (auto& [t, copy] : copies_) copy.download();
}

std::string DeviceBuffers::damage() const {
  std::string names = host_.damage();
  for (const auto& [t, copy] : copies_)
    if (!copy.intact()) names += (names.empty() ? "" : ", ") + g_.tensor(t).name;
  return names;
}

}  // namespace tsr
