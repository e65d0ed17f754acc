// SPDX-License-Identifier: Apache-2.0
// A libcudnn.so.9 opened by its path, and its descriptors. Only the graph interface is used, nothing is linked, and no
// header of NVIDIA's is needed. The caller makes a CUDA context current and owns all memory and streams.
//
// Two different cuDNN libraries do not go into one process: NVIDIA's opens its parts by name, and would get the
// other's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "cudnn/attributes.hpp"
#include "cudnn/names.hpp"
#include "opened/opened.hpp"

namespace cudnn {

// A call that failed: which one, the library's status and what it says about it.
class Error : public opened::Error {
 public:
  Error(int status, const std::string& text) : opened::Error(text), status_(status) {}
  int status() const { return status_; }                      // 0: refused by this client, not by the library
  bool not_supported() const { return status_ / 1000 == 3; }  // legal, but the library has no engine for it

 private:
  int status_;
};

// The functions this client calls. Statuses are ints, handles and descriptors opaque pointers.
struct Functions {
  size_t (*version)();
  const char* (*status_text)(int status);
  void (*last_error)(char* text, size_t size);
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*create_descriptor)(int kind, void** descriptor);
  int (*destroy_descriptor)(void* descriptor);
  int (*finalize)(void* descriptor);
  int (*set)(void* descriptor, int attribute, int type, int64_t count, const void* values);
  int (*get)(void* descriptor, int attribute, int type, int64_t capacity, int64_t* count, void* values);
  int (*execute)(void* handle, void* plan, void* pack);
};

class Library {
 public:
  explicit Library(const std::string& path);
  const Functions& call() const { return functions_; }
  const std::string& path() const { return opened_.path(); }
  int64_t version() const { return version_; }              // 91900 is 9.19.0
  std::string last_error() const;                           // what the library said last; reading clears it
  void check(int status, std::string_view function) const;  // raises unless the status is 0

 private:
  opened::Library opened_;
  Functions functions_;
  int64_t version_ = 0;
};

class Handle {
 public:
  explicit Handle(const Library& library);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();
  const Library& library() const { return library_; }
  void* raw() const { return raw_; }
  void use_stream(void* stream);  // a CUstream

 private:
  const Library& library_;
  void* raw_ = nullptr;
  void* stream_ = nullptr;
};

// A fraction as the library reads it.
struct Fraction {
  int64_t numerator = 0, denominator = 1;
  bool operator==(const Fraction&) const = default;
};

class Descriptor {
 public:
  Descriptor(const Library& library, Kind kind);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  void* raw() const { return raw_; }

  void set(Attr name, AttrType type, const void* values, size_t count);
  void set(Attr name, bool value) { set(name, AttrType::boolean, &value, 1); }
  void set(Attr name, float value) { set(name, AttrType::float_, &value, 1); }
  void set(Attr name, double value) { set(name, AttrType::double_, &value, 1); }
  void set(Attr name, int64_t value) { set(name, AttrType::int64, &value, 1); }
  void set(Attr name, std::span<const int64_t> v) { set(name, AttrType::int64, v.data(), v.size()); }
  void set(Attr name, std::span<const int32_t> v) { set(name, AttrType::int32, v.data(), v.size()); }
  void set(Attr name, std::span<const Fraction> v) { set(name, AttrType::fraction, v.data(), v.size()); }
  void set(Attr name, std::span<void* const> v) { set(name, AttrType::void_ptr, v.data(), v.size()); }
  void set(Attr name, const Descriptor& d) { set(name, AttrType::backend_descriptor, &d.raw_, 1); }
  void set_descriptors(Attr name, std::span<void* const> raw) {
    set(name, AttrType::backend_descriptor, raw.data(), raw.size());
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void set(Attr name, Enum value) {
    int number = static_cast<int>(value);
    set(name, attr_type(value), &number, 1);
  }
  void finalize();

  // Fills up to `capacity` values and tells how many there were; 0 and null ask for the number alone.
  int64_t get(Attr name, AttrType type, void* values, int64_t capacity) const;
  int64_t get_int64(Attr name) const;

 private:
  const Library* library_;
  Kind kind_;
  void* raw_ = nullptr;
};

}  // namespace cudnn
