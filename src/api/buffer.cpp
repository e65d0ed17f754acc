// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "api/state.hpp"
#include "base/dtype.hpp"
#include "runtime/devices.hpp"
#include "tessera/plan.hpp"

namespace tessera {

OwnedMemory allocate(size_t bytes, const tsr::DeviceMemory* device, const std::string& what) {
  if (device) return OwnedMemory(device->allocate(bytes), {device});
  constexpr size_t kAlign = 256;
  size_t rounded = (bytes + kAlign) / kAlign * kAlign;
  void* p = rounded < bytes ? nullptr : std::aligned_alloc(kAlign, rounded);
  if (!p) tsr::fail(Status::out_of_memory, "out of memory: ", what, " needs ", bytes, " bytes");
  return OwnedMemory(p, {});
}

namespace {

void clear(const OwnedMemory& memory, size_t bytes) {
  const tsr::DeviceMemory* device = memory.get_deleter().device;
  if (!device) {
    std::memset(memory.get(), 0, bytes);
    return;
  }
  const std::vector<std::byte> zeros(std::min<size_t>(bytes, 16 << 20));
  for (size_t done = 0; done < bytes; done += zeros.size())
    device->copy_in(static_cast<std::byte*>(memory.get()) + done, zeros.data(), std::min(zeros.size(), bytes - done));
}

// Null for the host's memory.
const tsr::DeviceMemory* memory_of(const tsr::Device& d) {
  tsr::require_present(d);
  return d.memory;
}

// Elements of a tensor where the host can reach them: in place on the CPU, otherwise in a copy.
class HostView {
 public:
  enum Contents { wanted, overwritten };
  HostView(const OwnedMemory& memory, DType type, int64_t first, int64_t count, Contents contents)
      : device_(memory.get_deleter().device),
        there_(static_cast<std::byte*>(memory.get()) + tsr::byte_size(type, first)) {
    if (!device_) return;
    copy_.resize(static_cast<size_t>(tsr::byte_size(type, count)));
    if (contents == wanted) device_->copy_out(copy_.data(), there_, copy_.size());
  }
  void* data() { return device_ ? copy_.data() : there_; }
  void write_back() const {
    if (device_) device_->copy_in(there_, copy_.data(), copy_.size());
  }

 private:
  const tsr::DeviceMemory* device_;
  std::byte* there_;
  std::vector<std::byte> copy_;
};

// As few elements around one as fill whole bytes in every type.
struct Group {
  static constexpr int64_t kSize = 8;
  explicit Group(const tsr::Tensor& t, int64_t offset)
      : first(offset / kSize * kSize), count(std::min(kSize, t.span() - first)) {}
  int64_t first, count;
};

// Stores the value of each element, taken one after the other.
template <class Next>
void store_all(const tsr::Tensor& t, const OwnedMemory& memory, Next next) {
  // What lies between strides stays as it is.
  bool dense = t.span() == t.numel();
  HostView view(memory, t.dtype, 0, t.span(), dense ? HostView::overwritten : HostView::wanted);
  tsr::Dims index = tsr::Dims::filled(t.rank(), 0);
  for (int64_t i = 0, n = t.numel(); i < n; ++i, tsr::next_index(index, t.dims))
    tsr::store(t.dtype, view.data(), t.offset(index), static_cast<double>(next()));
  view.write_back();
}

}  // namespace

void ReleaseMemory::operator()(void* p) const {
  if (device)
    device->release(p);
  else
    std::free(p);
}

Workspace::Workspace(const Plan& plan) : Workspace(plan, plan.workspace_bytes()) {}
Workspace::Workspace(const Plan& plan, std::span<const ShapeOverride> overrides)
    : Workspace(plan, plan.workspace_bytes(overrides)) {}
Workspace::Workspace(const Plan& plan, size_t bytes)
    : bytes_(bytes), memory_(allocate(bytes, memory_of(plan.state_->plan->device()), "a workspace")) {}

Buffer::Buffer(const Tensor& t, std::string_view device)
    : tensor_(std::make_shared<tsr::Tensor>(GraphState::of(t)->graph.tensor(GraphState::id(t)))),
      bytes_(static_cast<size_t>(tensor_->bytes())),
      count_(tensor_->numel()) {
  bool on_host = device == "cpu" || tensor_->by_value;
  storage_ = allocate(bytes_, on_host ? nullptr : memory_of(tsr::find_device(device)),
                      "the buffer of " + tsr::to_text(*tensor_));
  clear(storage_, bytes_);
}

DType Buffer::type() const { return tensor_->dtype; }

int64_t Buffer::offset(int64_t i) const {
  tsr::require(i >= 0 && i < count_, "element ", i, " of a buffer of ", count_);
  tsr::Dims index = tensor_->dims;
  for (int d = tensor_->rank() - 1; d >= 0; --d) index[d] = i % tensor_->dims[d], i /= tensor_->dims[d];
  return tensor_->offset(index);
}

double Buffer::get(int64_t i) const {
  int64_t at = offset(i);
  Group group(*tensor_, at);
  HostView view(storage_, tensor_->dtype, group.first, group.count, HostView::wanted);
  return tsr::load<double>(tensor_->dtype, view.data(), at - group.first);
}

void Buffer::set(int64_t i, double value) {
  int64_t at = offset(i);
  Group group(*tensor_, at);
  HostView view(storage_, tensor_->dtype, group.first, group.count, HostView::wanted);
  tsr::store(tensor_->dtype, view.data(), at - group.first, value);
  view.write_back();
}

std::vector<double> Buffer::values() const {
  const tsr::Tensor& t = *tensor_;
  HostView view(storage_, t.dtype, 0, t.span(), HostView::wanted);
  std::vector<double> v(static_cast<size_t>(count_));
  tsr::Dims index = tsr::Dims::filled(t.rank(), 0);
  for (double& value : v) {
    value = tsr::load<double>(t.dtype, view.data(), t.offset(index));
    tsr::next_index(index, t.dims);
  }
  return v;
}

void Buffer::set(std::span<const double> values) {
  tsr::require(values.size() == static_cast<size_t>(count_), values.size(), " values for a buffer of ", count_);
  store_all(*tensor_, storage_, [next = values.begin()]() mutable { return *next++; });
}

void Buffer::fill(double value) {
  store_all(*tensor_, storage_, [=] { return value; });
}

void Buffer::check_span(std::optional<DType> type, size_t element) const {
  tsr::require(!storage_.get_deleter().device, "the elements of '", tensor_->name,
               "' lie in a device's memory; values() and set() copy them");
  int bits = tsr::info(tensor_->dtype).bits;
  bool fits = type ? *type == tensor_->dtype : element * 8 == static_cast<size_t>(std::max(bits, 8));
  tsr::require(fits, "the elements of ", tsr::describe(*tensor_), " have ", bits, " bits; asked for ",
               type ? tsr::name(*type) : "unsigned integers", " of ", element * 8);
}

void Buffer::fill_random(uint64_t seed, double scale) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, scale);
  store_all(*tensor_, storage_, [&] { return normal(engine); });
}

}  // namespace tessera
