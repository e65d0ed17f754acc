// SPDX-License-Identifier: Apache-2.0
#include "base/cat.hpp"

#include <charconv>

namespace tsr {
namespace {

template <class T, class... Form>
void append_number(std::string& s, T number, Form... form) {
  char digits[32];
  s.append(digits, std::to_chars(digits, digits + sizeof digits, number, form...).ptr);
}

}  // namespace

void Part::append_to(std::string& s) const {
  constexpr int kDigits = 6;
  switch (kind_) {
    case Kind::text:
      s += text_;
      break;
    case Kind::character:
      s += character_;
      break;
    case Kind::real:
      append_number(s, real_, std::chars_format::general, kDigits);
      break;
    case Kind::count:
      append_number(s, count_);
      break;
    case Kind::integer:
      append_number(s, integer_);
      break;
    case Kind::object:
      object_.append_to(s, object_.data);
      break;
  }
}

std::string join_parts(std::initializer_list<Part> parts) {
  std::string s;
  for (const Part& p : parts) p.append_to(s);
  return s;
}

}  // namespace tsr
