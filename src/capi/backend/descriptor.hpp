// SPDX-License-Identifier: Apache-2.0
// Descriptors of the graph interface. One generic way to set, get and finalize serves all of them: what exists, of
// which type, how many elements and whether it must be there stands in one table (table.cpp); what finalizing makes of
// a descriptor is a function named there.
#pragma once

#include <any>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "capi/status.hpp"

namespace tsr::capi {

class Descriptor;

// An attribute of a descriptor type.
struct AttributeRow {
  cudnnBackendAttributeName_t name;
  const char* text;  // the enumerator
  cudnnBackendAttributeType_t type;
  int most = 1;  // elements; 1: exactly one
  enum Access : uint8_t { both, get_only, refused } access = both;
  bool required = false;                                                // when the descriptor is finalized
  cudnnBackendDescriptorType_t part = CUDNN_BACKEND_TENSOR_DESCRIPTOR;  // of attributes that are descriptors
  bool also_number = false;                                             // a descriptor, or one INT64 instead
  std::optional<double> initial;                                        // what is read when it was not set
};
// AttributeRow::part of attributes that take operations of any type.
constexpr auto kAnyOperation = static_cast<cudnnBackendDescriptorType_t>(-1);

struct DescriptorRow {
  cudnnBackendDescriptorType_t type;
  const char* text;
  std::span<const AttributeRow> attributes;
  cudnnStatus_t missing = CUDNN_STATUS_BAD_PARAM;  // when a required attribute is not set
  bool creatable = true;
  // Checks the whole and makes what others need of it; may be null.
  void (*finalize)(Descriptor& d) = nullptr;
  // Stores attributes whose elements are not what the program means (pointers to it); false: an ordinary one. May be
  // null.
  bool (*set)(Descriptor& d, cudnnBackendAttributeName_t name, const void* elements) = nullptr;
  // Answers attributes that are not stored (results, what plans know); false: it is stored. May be null.
  bool (*get)(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
              void* elements) = nullptr;
};
// The row of a type; null for those that programs cannot create.
const DescriptorRow* find_row(cudnnBackendDescriptorType_t type);
const AttributeRow* find_attribute(cudnnBackendAttributeName_t name);  // of any type; null: there is none
const char* name_of(cudnnBackendAttributeType_t t);

// Values by copy; other descriptors by shared ownership, since programs destroy theirs early.
class Descriptor {
 public:
  explicit Descriptor(const DescriptorRow& row) : row_(&row) {}
  const DescriptorRow& row() const { return *row_; }
  cudnnBackendDescriptorType_t type() const { return row_->type; }
  bool finalized() const { return finalized_; }
  std::string text() const;  // type and the most telling attributes
  // The same in messages.
  auto describe() const {
    return Lazy{[this] { return text(); }};
  }

  // The C calls; refuse with the statuses that the interface is known for.
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* elements);
  void get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t requested, int64_t* count,
           void* elements) const;
  void finalize();

  // For the rest of the library.
  bool has(cudnnBackendAttributeName_t name) const { return values_.contains(name); }
  template <class T>
  T one(cudnnBackendAttributeName_t name, T absent) const {
    T v = absent;
    if (has(name)) copy_bytes(name, std::as_writable_bytes(std::span(&v, 1)));
    return v;
  }
  // TENSOR_CONSTANT_VALUE is the scalar's bytes: list<std::byte>(..), as many as its type has.
  // FLOAT and DOUBLE attributes, whichever the program set.
  double number(cudnnBackendAttributeName_t name, double absent) const;
  std::vector<int64_t> ints(cudnnBackendAttributeName_t name) const;  // INT64 or INT32
  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    std::vector<T> v(count_of(name));
    if (!v.empty()) copy_bytes(name, std::as_writable_bytes(std::span(v)));
    return v;
  }
  const Descriptor* part(cudnnBackendAttributeName_t name) const;  // null: not set
  std::vector<std::shared_ptr<Descriptor>> parts(cudnnBackendAttributeName_t name) const;
  // Stores a value as if it had been set; for descriptors that the library makes.
  template <class T>
  void put(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    put_bytes(name, std::as_bytes(std::span(values)), values.size());
  }
  void put_parts(cudnnBackendAttributeName_t name, std::vector<std::shared_ptr<Descriptor>> parts);
  void mark_finalized() { finalized_ = true; }
  void forget() { values_.clear(); }  // what was set
  // The value's own memory: of a constant, which programs read by its address.
  const void* address(cudnnBackendAttributeName_t name) const;

  std::any made;  // by finalizing: an operation graph's Graph, an execution plan's Plan ..

 private:
  struct Value {
    cudnnBackendAttributeType_t type{};
    int64_t count = 0;
    std::vector<std::byte> bytes;
    std::vector<std::shared_ptr<Descriptor>> parts;
  };
  const AttributeRow& attribute(cudnnBackendAttributeName_t name) const;
  size_t count_of(cudnnBackendAttributeName_t name) const;
  void copy_bytes(cudnnBackendAttributeName_t name, std::span<std::byte> to) const;
  void put_bytes(cudnnBackendAttributeName_t name, std::span<const std::byte> from, size_t count);

  const DescriptorRow* row_;
  std::map<cudnnBackendAttributeName_t, Value> values_;
  bool finalized_ = false;
};

// What a cudnnBackendDescriptor_t points to. Programs may confuse it with other pointers, which are pointers to void as
// well: the tag tells.
class Handle {
 public:
  explicit Handle(std::shared_ptr<Descriptor> d) : descriptor_(std::move(d)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();
  const std::shared_ptr<Descriptor>& descriptor() const { return descriptor_; }
  void replace(std::shared_ptr<Descriptor> d);

 private:
  friend Handle& given_handle(cudnnBackendDescriptor_t d, const char* name);
  static constexpr uint64_t kTag = 0x7465737365726131;
  uint64_t tag_ = kTag;
  std::shared_ptr<Descriptor> descriptor_;
};
Handle& given_handle(cudnnBackendDescriptor_t d, const char* name);  // refuses null and what is no descriptor
// A descriptor that a program gave: refuses null, and with `type` those of other types and unfinalized ones.
Descriptor& given_descriptor(cudnnBackendDescriptor_t d, const char* name);
Descriptor& given_descriptor(cudnnBackendDescriptor_t d, const char* name, cudnnBackendDescriptorType_t type);

// How attributes are read: at most `requested` elements, none where the program gives no memory for them.
void hand_out(const void* values, int64_t available, size_t size, int64_t requested, int64_t* count, void* elements);
template <class T>
void hand_out(const std::vector<T>& values, int64_t requested, int64_t* count, void* elements) {
  hand_out(values.data(), static_cast<int64_t>(values.size()), sizeof(T), requested, count, elements);
}
// Descriptors are read into descriptors of the program.
void hand_out(const std::vector<std::shared_ptr<Descriptor>>& parts, int64_t requested, int64_t* count, void* elements);

}  // namespace tsr::capi
