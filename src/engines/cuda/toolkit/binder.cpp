// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/binder.hpp"

namespace tsr::cuda {

void Binder::pointer(size_t place, TensorId t, int64_t bytes_further) {
  if (t != kNone) entries_.push_back({.kind = Kind::pointer, .tensor = t, .place = place, .offset = bytes_further});
}
void Binder::workspace(size_t place, size_t offset) {
  entries_.push_back({.kind = Kind::workspace, .place = place, .offset = static_cast<int64_t>(offset)});
}
void Binder::number(size_t place, Lane lane, DType type, TensorId t) {
  entries_.push_back({.kind = Kind::number, .lane = lane, .type = type, .tensor = t, .place = place});
}
void Binder::real(size_t place, DType type, TensorId t) {
  entries_.push_back({.kind = Kind::real, .type = type, .tensor = t, .place = place});
}
void Binder::integer(size_t place, DType type, TensorId t) {
  entries_.push_back({.kind = Kind::integer, .type = type, .tensor = t, .place = place});
}
void Binder::bits(size_t place, size_t bytes, TensorId t) {
  entries_.push_back({.kind = Kind::bits, .tensor = t, .place = place, .offset = static_cast<int64_t>(bytes)});
}
void Binder::map(size_t place, const TensorBox& box, TensorId t, const Device& d) {
  maps_.push_back({place, t, 0, box, d, std::make_unique<Map::Kept>()});
}
void Binder::workspace_map(size_t place, const TensorBox& box, size_t offset, const Device& d) {
  maps_.push_back({place, kNone, offset, box, d, std::make_unique<Map::Kept>()});
}

dev::TensorMap Binder::Map::encoded(const void* pointer) const {
  if (kept->busy.test_and_set(std::memory_order_acquire)) return encode_map(box, pointer, device);
  struct Release {
    std::atomic_flag& flag;
    ~Release() { flag.clear(std::memory_order_release); }
  } release{kept->busy};
  if (pointer != kept->pointer) {
    kept->pointer = nullptr;  // should the driver refuse
    kept->map = encode_map(box, pointer, device);
    kept->pointer = pointer;
  }
  return kept->map;
}

void Binder::fill(std::byte* args, void* const* tensors, std::byte* workspace) const {
  for (const Entry& e : entries_) {
    auto put = [&](const auto& value) { std::memcpy(args + e.place, &value, sizeof value); };
    void* data = e.tensor == kNone ? nullptr : tensors[e.tensor];
    switch (e.kind) {
      case Kind::pointer:
        put(data ? static_cast<std::byte*>(data) + e.offset : nullptr);
        break;
      case Kind::workspace:
        put(workspace + e.offset);
        break;
      case Kind::number:
        put(read_number(e.lane, e.type, data));
        break;
      case Kind::real:
        put(load<double>(e.type, data, 0));
        break;
      case Kind::integer:
        put(load<int64_t>(e.type, data, 0));
        break;
      case Kind::bits:
        std::memcpy(args + e.place, data, static_cast<size_t>(e.offset));
        break;
    }
  }
  for (const Map& m : maps_) {
    dev::TensorMap map = m.encoded(m.tensor == kNone ? workspace + m.offset : tensors[m.tensor]);
    std::memcpy(args + m.place, &map, sizeof map);
  }
}

dev::Operand operand_of(const Tensor& t) {
  require(t.rank() <= dev::kMaxAxes, "a tensor of ", t.rank(), " dimensions reached a kernel that takes ",
          dev::kMaxAxes);
  dev::Operand o{};
  for (int i = 0; i < t.rank(); ++i) o.strides[i] = t.strides[i];
  return o;
}

}  // namespace tsr::cuda
