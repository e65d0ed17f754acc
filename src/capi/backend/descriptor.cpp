// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/descriptor.hpp"

#include <algorithm>
#include <cstring>

#include "capi/backend/graph_builder.hpp"
#include "capi/types.hpp"

namespace tsr::capi {
namespace {

size_t size_of(cudnnBackendAttributeType_t t) {
  switch (t) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_FRACTION:
      return sizeof(cudnnFraction_t);
    default:  // FLOAT, INT32 and enumerations
      return 4;
  }
}

bool is_number(cudnnBackendAttributeType_t t) { return t == CUDNN_TYPE_FLOAT || t == CUDNN_TYPE_DOUBLE; }

// FLOAT and DOUBLE stand for each other: programs choose by the type that they compute in.
bool fits(const AttributeRow& a, cudnnBackendAttributeType_t t) {
  return a.type == t || (is_number(a.type) && is_number(t)) || (a.also_number && t == CUDNN_TYPE_INT64);
}

void check_type(const AttributeRow& a, cudnnBackendAttributeType_t t) {
  demand(fits(a, t), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, a.text, " is ", name_of(a.type), ", given was ",
         name_of(t));
}

void check_count(const AttributeRow& a, int64_t count) {
  bool ok = a.most == 1 ? count == 1 : count >= 0 && count <= a.most;
  demand(ok, CUDNN_STATUS_BAD_PARAM, a.text, " has ", a.most == 1 ? "" : "up to ", a.most, " elements, given were ",
         count);
}

// A number in the memory form of a type.
std::vector<std::byte> encode(double v, cudnnBackendAttributeType_t t) {
  std::vector<std::byte> bytes(size_of(t));
  auto store = [&](auto x) { std::memcpy(bytes.data(), &x, sizeof x); };
  if (t == CUDNN_TYPE_DOUBLE)
    store(v);
  else if (t == CUDNN_TYPE_FLOAT)
    store(static_cast<float>(std::clamp<double>(v, -__FLT_MAX__, __FLT_MAX__)));
  else if (bytes.size() == 8)
    store(static_cast<int64_t>(v));
  else if (bytes.size() == 4)
    store(static_cast<int32_t>(v));
  else
    store(static_cast<uint8_t>(v));
  return bytes;
}

double decode(const std::byte* p, cudnnBackendAttributeType_t t) {
  if (t == CUDNN_TYPE_DOUBLE) {
    double v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  float v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

std::vector<std::shared_ptr<Descriptor>> read_parts(const AttributeRow& a, int64_t count, const void* elements) {
  std::vector<std::shared_ptr<Descriptor>> parts;
  for (int64_t i = 0; i < count; ++i) {
    const Handle& h = given_handle(static_cast<const cudnnBackendDescriptor_t*>(elements)[i], a.text);
    const Descriptor& d = *h.descriptor();
    if (a.part == kAnyOperation) {
      demand(is_operation(d.type()), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, a.text, " takes operations, element ", i,
             " is ", d.row().text);
      demand(d.finalized(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "element ", i, " of ", a.text, " (", d.row().text,
             ") is not finalized");
    } else {
      demand(d.type() == a.part, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, a.text, " takes descriptors of type ",
             find_row(a.part)->text, ", element ", i, " is ", d.row().text);
    }
    parts.push_back(h.descriptor());
  }
  return parts;
}

}  // namespace

Handle::~Handle() { replace(nullptr); }

void Handle::replace(std::shared_ptr<Descriptor> d) {
  // Nobody can finalize it now, and it may hold itself, by way of others.
  if (!descriptor_->finalized()) descriptor_->forget();
  descriptor_ = std::move(d);
}

Handle& given_handle(cudnnBackendDescriptor_t d, const char* name) {
  Handle& h = given(static_cast<Handle*>(d), name);
  uint64_t tag = 0;  // read as bytes: who knows what this is
  std::memcpy(&tag, &h.tag_, sizeof tag);
  demand(tag == Handle::kTag, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, name, " is no descriptor of the graph interface");
  return h;
}

Descriptor& given_descriptor(cudnnBackendDescriptor_t d, const char* name) {
  return *given_handle(d, name).descriptor();
}

Descriptor& given_descriptor(cudnnBackendDescriptor_t d, const char* name, cudnnBackendDescriptorType_t type) {
  Descriptor& found = given_descriptor(d, name);
  demand(found.type() == type, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, name, " must be ", find_row(type)->text,
         ", given was ", found.row().text);
  demand(found.finalized(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, name, " (", found.row().text, ") is not finalized");
  return found;
}

void hand_out(const void* values, int64_t available, size_t size, int64_t requested, int64_t* count, void* elements) {
  bool fills = requested > 0 && elements;
  int64_t n = fills ? std::min(requested, available) : available;
  if (count) *count = n;
  if (fills && n > 0) std::memcpy(elements, values, static_cast<size_t>(n) * size);
}

void hand_out(const std::vector<std::shared_ptr<Descriptor>>& parts, int64_t requested, int64_t* count,
              void* elements) {
  auto available = static_cast<int64_t>(parts.size());
  bool fills = requested > 0 && elements;
  int64_t n = fills ? std::min(requested, available) : available;
  for (int64_t i = 0; fills && i < n; ++i) {
    Handle& into = given_handle(static_cast<cudnnBackendDescriptor_t*>(elements)[i], "an element of the array");
    const Descriptor& from = *parts[static_cast<size_t>(i)];
    demand(into.descriptor()->type() == from.type(), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "element ", i,
           " of the array must be ", from.row().text, ", given was ", into.descriptor()->row().text);
    into.replace(parts[static_cast<size_t>(i)]);
  }
  if (count) *count = n;
}

const AttributeRow& Descriptor::attribute(cudnnBackendAttributeName_t name) const {
  for (const AttributeRow& a : row_->attributes)
    if (a.name == name) return a;
  refuse(CUDNN_STATUS_BAD_PARAM, row_->text, " has no attribute ", static_cast<int>(name));
}

std::string Descriptor::text() const {
  if (type() != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return row_->text;
  std::string s = "tensor";
  if (has(CUDNN_ATTR_TENSOR_UNIQUE_ID)) s += cat(" ", one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0));
  if (has(CUDNN_ATTR_TENSOR_DATA_TYPE))
    s += cat(" ", capi::name_of(one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)));
  std::string sizes;
  for (int64_t d : ints(CUDNN_ATTR_TENSOR_DIMENSIONS)) sizes += (sizes.empty() ? "" : ",") + std::to_string(d);
  return s + " [" + sizes + "]";
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* elements) {
  const AttributeRow& a = attribute(name);
  demand(!finalized_, CUDNN_STATUS_BAD_PARAM, row_->text, " is finalized: ", a.text, " can no longer be set");
  demand(a.access == AttributeRow::both, CUDNN_STATUS_NOT_SUPPORTED, a.text,
         a.access == AttributeRow::refused ? " is not supported" : " can only be read");
  check_type(a, type);
  check_count(a, count);
  demand(elements || count == 0, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the elements of ", a.text,
         " are a null pointer");
  if (row_->set && row_->set(*this, name, elements)) return;
  Value v{type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    v.parts = read_parts(a, count, elements);
  } else {
    const auto* from = static_cast<const std::byte*>(elements);
    v.bytes.assign(from, from + static_cast<size_t>(count) * size_of(type));
    if (type == CUDNN_TYPE_BOOLEAN)
      for (std::byte& b : v.bytes) b = static_cast<std::byte>(b != std::byte{0});
  }
  values_[name] = std::move(v);
}

void Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t requested,
                     int64_t* count, void* elements) const {
  const AttributeRow& a = attribute(name);
  demand(finalized_, CUDNN_STATUS_NOT_INITIALIZED, row_->text, " is not finalized: ", a.text, " cannot be read");
  check_type(a, type);
  demand(requested >= 0, CUDNN_STATUS_BAD_PARAM, "requestedElementCount is ", requested);
  if (row_->get && row_->get(*this, name, requested, count, elements)) return;
  auto it = values_.find(name);
  if (it == values_.end()) {
    demand(a.initial || a.most > 1, CUDNN_STATUS_BAD_PARAM, a.text, " was not set");
    std::vector<std::byte> v;
    if (a.initial) v = encode(*a.initial, type);
    return hand_out(v.data(), a.initial ? 1 : 0, v.size(), requested, count, elements);
  }
  const Value& v = it->second;
  demand(v.type == type || (is_number(v.type) && is_number(type)), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, a.text,
         " was set as ", name_of(v.type), ", asked for was ", name_of(type));
  if (v.type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return hand_out(v.parts, requested, count, elements);
  if (v.type == type) return hand_out(v.bytes.data(), v.count, size_of(type), requested, count, elements);
  std::vector<std::byte> converted = encode(decode(v.bytes.data(), v.type), type);
  hand_out(converted.data(), 1, converted.size(), requested, count, elements);
}

void Descriptor::finalize() {
  demand(!finalized_, CUDNN_STATUS_BAD_PARAM, row_->text, " is finalized already");
  for (const AttributeRow& a : row_->attributes)
    demand(!a.required || has(a.name), row_->missing, row_->text, " needs ", a.text, ", which was not set");
  for (const auto& [name, v] : values_)
    for (const auto& p : v.parts)
      demand(p->finalized(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, attribute(name).text, " of ", row_->text, " (",
             p->describe(), ") is not finalized");
  if (row_->finalize) row_->finalize(*this);
  finalized_ = true;
}

double Descriptor::number(cudnnBackendAttributeName_t name, double absent) const {
  auto it = values_.find(name);
  if (it == values_.end()) return absent;
  return decode(it->second.bytes.data(), it->second.type);
}

std::vector<int64_t> Descriptor::ints(cudnnBackendAttributeName_t name) const {
  auto it = values_.find(name);
  if (it == values_.end()) return {};
  if (it->second.type == CUDNN_TYPE_INT64) return list<int64_t>(name);
  std::vector<int32_t> narrow = list<int32_t>(name);
  return {narrow.begin(), narrow.end()};
}

const Descriptor* Descriptor::part(cudnnBackendAttributeName_t name) const {
  auto it = values_.find(name);
  return it == values_.end() || it->second.parts.empty() ? nullptr : it->second.parts[0].get();
}

std::vector<std::shared_ptr<Descriptor>> Descriptor::parts(cudnnBackendAttributeName_t name) const {
  auto it = values_.find(name);
  return it == values_.end() ? std::vector<std::shared_ptr<Descriptor>>{} : it->second.parts;
}

void Descriptor::put_parts(cudnnBackendAttributeName_t name, std::vector<std::shared_ptr<Descriptor>> parts) {
  auto count = static_cast<int64_t>(parts.size());
  values_[name] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, count, {}, std::move(parts)};
}

const void* Descriptor::address(cudnnBackendAttributeName_t name) const {
  auto it = values_.find(name);
  return it == values_.end() ? nullptr : it->second.bytes.data();
}

size_t Descriptor::count_of(cudnnBackendAttributeName_t name) const {
  auto it = values_.find(name);
  return it == values_.end() ? 0 : static_cast<size_t>(it->second.count);
}

void Descriptor::copy_bytes(cudnnBackendAttributeName_t name, std::span<std::byte> to) const {
  const Value& v = values_.at(name);
  if (to.size() > v.bytes.size())
    refuse(CUDNN_STATUS_INTERNAL_ERROR, attribute(name).text, " holds ", v.bytes.size(), " bytes, read were ",
           to.size());
  std::memcpy(to.data(), v.bytes.data(), to.size());
}

void Descriptor::put_bytes(cudnnBackendAttributeName_t name, std::span<const std::byte> from, size_t count) {
  values_[name] = {attribute(name).type, static_cast<int64_t>(count), {from.begin(), from.end()}, {}};
}

}  // namespace tsr::capi
