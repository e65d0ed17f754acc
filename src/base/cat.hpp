// SPDX-License-Identifier: Apache-2.0
// Texts from their parts: cat("x has ", n, " elements"). Appended directly: a string stream costs more than many a
// plan.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace tsr {

// A part that is made when the text is, so that checks that pass make none. What it reads must live as long.
template <class F>
struct Lazy {
  F make;
  operator std::string() const { return make(); }  // NOLINT(google-explicit-constructor)
};
template <class F>
Lazy(F) -> Lazy<F>;
template <class F>
void append_part(std::string& s, const Lazy<F>& part) {
  s += part.make();
}

// One of them, whatever its type, so that each message does not compile to code of its own: text, a character, a
// number, an enumerator of C, or what has an append_part beside it. What it was made of must outlive it.
class Part {
 public:
  template <class T>
  Part(const T& t) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_convertible_v<const T&, std::string_view>)
      kind_ = Kind::text, text_ = t;
    else if constexpr (std::is_same_v<T, char>)
      kind_ = Kind::character, character_ = t;
    else if constexpr (std::is_floating_point_v<T>)
      kind_ = Kind::real, real_ = static_cast<double>(t);
    else if constexpr (std::is_unsigned_v<T>)
      kind_ = Kind::count, count_ = t;
    else if constexpr (std::is_integral_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, int>))
      kind_ = Kind::integer, integer_ = t;
    else
      kind_ = Kind::object, object_ = {&t, append<T>};
  }
  void append_to(std::string& s) const;

 private:
  enum class Kind : uint8_t { text, character, real, count, integer, object } kind_;
  struct Object {
    const void* data;
    void (*append_to)(std::string& s, const void* data);
  };
  template <class T>
  static void append(std::string& s, const void* data) {
    append_part(s, *static_cast<const T*>(data));
  }
  union {
    std::string_view text_;
    char character_;
    double real_;
    uint64_t count_;
    int64_t integer_;
    Object object_;
  };
};

std::string join_parts(std::initializer_list<Part> parts);

template <class... Parts>
std::string cat(const Parts&... parts) {
  return join_parts({Part(parts)...});
}

}  // namespace tsr
