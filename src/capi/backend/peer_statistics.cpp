// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/peer_statistics.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/settings.hpp"
#include "capi/backend/graph_builder.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {

const char* const kNotRecorded =
    "statistics of peers are exchanged by the host, which waits for them: such plans cannot be captured";

int64_t statistic_uid(int which) { return (int64_t{1} << 60) + which; }

namespace {

using Floats = std::vector<float>;

// A statistic in a peer's buffer: 32 bits of the value, then as many of a flag, which is not 0 while the value waits to
// be read.
using Word = uint64_t;
using Words = std::vector<Word>;
constexpr Word kFlag = Word{1} << 32;

bool has_arrived(const Words& words) {
  return std::all_of(words.begin(), words.end(), [](Word w) { return w >= kFlag; });
}

Words words_of(const Floats& values, Word flag) {
  Words words;
  for (float v : values) words.push_back(std::bit_cast<uint32_t>(v) | flag);
  return words;
}

Floats values_of(const Words& words) {
  Floats values;
  for (Word w : words) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(w)));
  return values;
}

// Memory that others read and write at the same time: words of the host are never seen in halves; what copies of a
// GPU's do is unknown.
class PeerMemory {
 public:
  explicit PeerMemory(const Device& d) : gpu_(is_gpu(d) ? d.memory : nullptr) {}
  Words read(Word* from, size_t count) const {
    Words words(count);
    if (gpu_) {
      gpu_->copy_out(words.data(), from, count * sizeof(Word));
    } else {
      for (size_t i = 0; i < count; ++i) words[i] = std::atomic_ref(from[i]).load(std::memory_order_acquire);
    }
    return words;
  }
  void write(Word* to, const Words& words) const {
    if (gpu_) {
      gpu_->copy_in(to, words.data(), words.size() * sizeof(Word));
    } else {
      for (size_t i = 0; i < words.size(); ++i) std::atomic_ref(to[i]).store(words[i], std::memory_order_release);
    }
  }

 private:
  const DeviceMemory* gpu_;
};

// All peers' buffers as one of them sees them. A buffer has a place for each peer, by its distance from the owner in
// the order of the buffers, around: so those that call themselves first and those that know their number agree.
class Exchange {
 public:
  Exchange(const Device& d, std::vector<Word*> buffers, size_t own, size_t words)
      : memory_(d), buffers_(std::move(buffers)), own_(own), words_(words) {}

  // The statistics of all peers, in the order of the buffers, for those of this one.
  std::vector<Floats> operator()(const Floats& mine) const {
    for (size_t peer = 0; peer < buffers_.size(); ++peer)
      if (peer != own_) send(peer, mine);
    std::vector<Floats> all;
    for (size_t peer = 0; peer < buffers_.size(); ++peer) all.push_back(peer == own_ ? mine : receive(peer));
    return all;
  }

 private:
  Word* place(size_t owner, size_t of) const {
    size_t distance = (of + buffers_.size() - owner) % buffers_.size();
    return buffers_[owner] + distance * words_;
  }
  Words waiting(size_t owner, size_t of) const { return memory_.read(place(owner, of), words_); }

  // What was sent before may not have been read. It was if the peer has sent something since: it reads before it sends
  // again. (Where the program fills in a peer's part, nobody reads.)
  void send(size_t peer, const Floats& values) const {
    auto is_free = [&] {
      Words before = waiting(peer, own_);
      return std::none_of(before.begin(), before.end(), [](Word w) { return w >= kFlag; });
    };
    wait_for(peer, [&] { return has_arrived(waiting(own_, peer)) || is_free(); });
    memory_.write(place(peer, own_), words_of(values, 0));  // whole before a flag says so
    memory_.write(place(peer, own_), words_of(values, kFlag));
  }
  Floats receive(size_t peer) const {
    wait_for(peer, [&] { return has_arrived(waiting(own_, peer)); });
    Words words = waiting(own_, peer);  // again: values are whole since all flags were seen
    memory_.write(place(own_, peer), Words(words_, 0));
    return values_of(words);
  }

  template <class F>
  void wait_for(size_t peer, const F& happens) const {
    using Clock = std::chrono::steady_clock;
    constexpr auto kPause = std::chrono::microseconds(20);
    int64_t seconds = setting_int("TESSERA_PEER_TIMEOUT");
    for (Clock::time_point end = Clock::now() + std::chrono::seconds(seconds); !happens();) {
      demand(Clock::now() < end, CUDNN_STATUS_EXECUTION_FAILED, "peer ", peer, " of ", buffers_.size(),
             " has not exchanged its statistics with peer ", own_, " (this one) in ", seconds,
             " seconds (TESSERA_PEER_TIMEOUT); buffers must be zeroed before they are used again");
      std::this_thread::sleep_for(kPause);
    }
  }

  PeerMemory memory_;
  std::vector<Word*> buffers_;
  size_t own_, words_;
};

std::vector<Word*> buffers_of(const PeerStatistics& p, std::span<const int64_t> ids, std::span<void* const> pointers) {
  std::vector<Word*> buffers;
  for (int64_t uid : p.buffers) {
    auto at = std::find(ids.begin(), ids.end(), uid);
    void* data = at == ids.end() ? nullptr : pointers[static_cast<size_t>(at - ids.begin())];
    demand(data, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the variant pack has no pointer for unique id ", uid,
           ", a peer's buffer");
    demand(reinterpret_cast<uintptr_t>(data) % alignof(Word) == 0, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
           "unique id ", uid, ", a peer's buffer, must be aligned to ", alignof(Word), " bytes");
    buffers.push_back(static_cast<Word*>(data));
  }
  return buffers;
}

// This device's buffer is the first that lies in its memory; the interface has no other word for it. On the host all
// do.
size_t own_buffer(const std::vector<Word*>& buffers, const Device& d) {
  constexpr int kDeviceOrdinal = 9;
  for (size_t i = 0; is_gpu(d) && i < buffers.size(); ++i) {
    int device = -1;
    auto pointer = reinterpret_cast<cuda::Pointer>(buffers[i]);
    if (cuda::driver().PointerGetAttribute(&device, kDeviceOrdinal, pointer) == 0 && device == d.index) return i;
  }
  return 0;
}

// Mean and variance of all elements, of which each peer has as many; its variance is around its own mean.
void combine_moments(const std::vector<Floats>& peers, size_t mean, size_t variance, Floats& to) {
  auto count = static_cast<double>(peers.size());
  double center = 0, spread = 0;
  for (const Floats& p : peers) center += p[mean] / count;
  for (const Floats& p : peers) spread += (p[variance] + (p[mean] - center) * (p[mean] - center)) / count;
  to[mean] = static_cast<float>(center);
  to[variance] = static_cast<float>(spread);
}

Floats combine(const PeerStatistics& p, const std::vector<Floats>& peers) {
  Floats all(peers[0].size());
  size_t channels = all.size() / kStatistics;
  for (size_t c = 0; p.moments && c < channels; ++c) combine_moments(peers, c, channels + c, all);
  for (size_t i = 0; !p.moments && i < all.size(); ++i) {
    double sum = 0;
    for (const Floats& f : peers) sum += f[i];
    all[i] = static_cast<float>(sum);
  }
  return all;
}

// Both statistics in the device's memory, one behind the other, until the end of one call.
class Statistics {
 public:
  Statistics(const Device& d, int64_t channels, void* stream)
      : device_(d.memory), memory_(d.memory), bytes_(static_cast<size_t>(channels) * sizeof(float)) {
    lease_.take(memory_, kStatistics * align_up(bytes_), stream);
  }
  std::array<Binding, kStatistics> bindings() const { return {{{statistic_uid(0), at(0)}, {statistic_uid(1), at(1)}}}; }
  Floats read() const {
    Floats values(kStatistics * bytes_ / sizeof(float));
    for (int i = 0; i < kStatistics; ++i) copy(&DeviceMemory::copy_out, of(values, i), at(i));
    return values;
  }
  void write(Floats values) const {
    for (int i = 0; i < kStatistics; ++i) copy(&DeviceMemory::copy_in, at(i), of(values, i));
  }

 private:
  using Copy = void (DeviceMemory::*)(void*, const void*, size_t) const;
  void copy(Copy of_device, void* to, const void* from) const {
    device_ ? (device_->*of_device)(to, from, bytes_) : static_cast<void>(std::memcpy(to, from, bytes_));
  }
  std::byte* at(int which) const { return lease_.data() + static_cast<size_t>(which) * align_up(bytes_); }
  float* of(Floats& values, int which) const {
    return values.data() + static_cast<size_t>(which) * bytes_ / sizeof(float);
  }

  const DeviceMemory* device_;
  OwnMemory memory_;
  OwnMemory::Lease lease_;
  size_t bytes_;
};

}  // namespace

void run_with_peers(const PeerStatistics& p, const Device& d, std::span<const int64_t> ids,
                    std::span<void* const> pointers, void* stream,
                    const std::function<void(std::span<const Binding>)>& rest) {
  if (d.memory) d.memory->attach();
  demand(!d.memory || d.memory->runs(stream) != DeviceMemory::When::recorded,
         CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API, kNotRecorded);
  std::vector<Word*> buffers = buffers_of(p, ids, pointers);
  Statistics statistics(d, p.channels, stream);
  std::array<Binding, kStatistics> bound = statistics.bindings();
  std::vector<Binding> given = bindings(*p.local, ids, pointers);
  given.insert(given.end(), bound.begin(), bound.end());
  cached_plan(p.local, d)->execute_within(given, nullptr, 0, stream);
  synchronize(d, stream);
  Exchange exchange(d, buffers, own_buffer(buffers, d), static_cast<size_t>(kStatistics * p.channels));
  statistics.write(combine(p, exchange(statistics.read())));
  rest(bound);
  synchronize(d, stream);  // the statistics' memory ends here
}

}  // namespace tsr::capi
