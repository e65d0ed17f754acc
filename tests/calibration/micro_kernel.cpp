// SPDX-License-Identifier: Apache-2.0
#include "micro_kernel.hpp"

#include <algorithm>
#include <memory>

#include "base/hash.hpp"
#include "runtime/devices.hpp"

namespace tsr::calibration {
namespace {

constexpr int64_t kShared = 65536 + 256;

// Memory of the device that holds these words.
class DeviceWords {
 public:
  DeviceWords(const Device& d, const Words& w) : memory_(*d.memory), bytes_(w.size() * 4) {
    data_ = memory_.allocate(std::max<size_t>(bytes_, 16));
    if (bytes_) memory_.copy_in(data_, w.data(), bytes_);
  }
  DeviceWords(const DeviceWords&) = delete;
  DeviceWords& operator=(const DeviceWords&) = delete;
  ~DeviceWords() { memory_.release(data_); }
  void* get() const { return data_; }
  Words read() const {
    Words w(bytes_ / 4);
    memory_.copy_out(w.data(), data_, bytes_);
    return w;
  }

 private:
  const DeviceMemory& memory_;
  size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace

Program program(const std::string& body, const std::string& before) {
  Program p;
  p.include = "device/ptx/all.cuh";
  p.generated = before +
                "namespace tsr::dev {\nstruct Args { TensorMap map; const u32* in; u32* out; int p[12]; };\n"
                "inline void calibrate(const Args& a) {\nchar* s = shared_memory();\n"
                "u64* b = reinterpret_cast<u64*>(s + 65536); int t = threadIdx.x;\n#line 1 \"calibration\"\n" +
                body + "\n}\n}";
  p.args = "tsr::dev::Args";
  p.body = "tsr::dev::calibrate";
  p.threads = 128;
  return p;
}

Random::Random(const std::string& name) : state_(hash_text(name) | 1) {}

uint32_t Random::word() {
  state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
  return static_cast<uint32_t>(state_ >> 32);
}

Words random_words(const std::string& name, size_t count) {
  Random r(name);
  Words w(count);
  for (uint32_t& v : w) v = r.word();
  return w;
}

void fill_exact(DType t, void* data, int64_t first, int64_t count, Random& r) {
  auto value = [&]() -> double {
    switch (t) {
      case DType::i8:
        return r.below(256) - 128;
      case DType::u8:
        return r.below(256);
      case DType::i32:
        return static_cast<int32_t>(r.word());
      default:
        return r.below(9) - 4;
    }
  };
  for (int64_t i = 0; i < count; ++i) store<double>(t, data, first + i, value());
}

std::vector<MicroKernel> micro_kernels(const std::string& prefix) {
  struct Family {
    std::string begin;  // of all its names
    std::vector<MicroKernel> (*make)();
  };
  std::vector<MicroKernel> all;
  for (const Family& f : {Family{"mma", warp_products}, {"wgmma", warpgroup_products}, {"", moves}, {"boxes", boxes}}) {
    size_t both = std::min(prefix.size(), f.begin.size());
    if (prefix.compare(0, both, f.begin, 0, both) != 0) continue;
    for (MicroKernel& k : f.make())
      if (k.name.rfind(prefix, 0) == 0) all.push_back(std::move(k));
  }
  return all;
}

Words run(const MicroKernel& k, const Device& d) {
  auto kernel = get_kernel(k.program, d);
  DeviceWords in(d, k.in), out(d, k.out);
  Args args{{}, in.get(), out.get(), {}};
  std::copy(k.p.begin(), k.p.end(), args.p);
  if (k.box) args.map = encode_map(*k.box, k.box_of_out ? out.get() : in.get(), d);
  kernel->launch({.blocks = k.cluster, .threads = k.threads, .shared_bytes = kShared, .cluster = k.cluster}, nullptr,
                 args);
  synchronize(d);
  return out.read();
}

}  // namespace tsr::calibration
