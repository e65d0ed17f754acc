// SPDX-License-Identifier: Apache-2.0
// Texts from their parts: cat("x has ", n, " elements"). Appended directly: a string stream costs more than many a
// plan.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tsr {

inline void append_part(std::string& s, std::string_view part) { s += part; }
inline void append_part(std::string& s, char part) { s += part; }

template <class T>
requires std::integral<T> || std::floating_point<T>
void append_part(std::string& s, T part) {
  char digits[32];
  std::to_chars_result end{};
  if constexpr (std::is_same_v<T, bool>)
    end = std::to_chars(digits, digits + sizeof digits, int{part});
  else if constexpr (std::is_floating_point_v<T>)
    end = std::to_chars(digits, digits + sizeof digits, part, std::chars_format::general, 6);
  else
    end = std::to_chars(digits, digits + sizeof digits, part);
  s.append(digits, end.ptr);
}

// Enumerators of C as numbers. Other types have an append_part beside them.
template <class T>
requires std::is_enum_v<T> && std::is_convertible_v<T, int>
void append_part(std::string& s, T part) { append_part(s, static_cast<int>(part)); }

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
  append_part(s, part.make());
}

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string s;
  (append_part(s, parts), ...);
  return s;
}

}  // namespace tsr
