// SPDX-License-Identifier: Apache-2.0
// Helpers to raise tessera::Error with a composed message, and Reason: an engine's polite "no".
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/cat.hpp"
#include "tessera/types.hpp"

namespace tsr {

using tessera::Error;
using tessera::Ints;
using tessera::Status;

[[noreturn]] void fail_with(Status status, std::initializer_list<Part> parts);
template <class... Parts>
[[noreturn]] void fail(Status status, const Parts&... parts) {
  fail_with(status, {Part(parts)...});
}

// Rejects wrong input of the caller.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) fail(Status::bad_parameter, parts...);
}

// "Cannot" is a value: empty means yes, otherwise the text says which tensor, which value, which limit.
class Reason {
 public:
  static Reason yes() { return {}; }
  template <class... Parts>
  static Reason no(const Parts&... parts) {
    return because({Part(parts)...});
  }
  static Reason because(std::initializer_list<Part> parts);
  bool ok() const { return text_.empty(); }
  explicit operator bool() const { return ok(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// "f16, bf16 or f32": how lists of allowed values read in messages.
template <class Range>
std::string any_of_text(const Range& items) {
  std::string s;
  size_t i = 0, n = std::size(items);
  for (const auto& item : items) {
    if (i) s += i + 1 == n ? " or " : ", ";
    s += item;
    ++i;
  }
  return s;
}

// The candidate closest to `word` by edit distance, or an empty string when nothing is near.
template <class Range>
std::string nearest(std::string_view word, const Range& candidates);
size_t edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string nearest(std::string_view word, const Range& candidates) {
  std::string best;
  size_t best_distance = word.size() / 2 + 1;
  for (const auto& c : candidates) {
    size_t d = edit_distance(word, c);
    if (d < best_distance) best = c, best_distance = d;
  }
  return best;
}

}  // namespace tsr
