// SPDX-License-Identifier: Apache-2.0
#include "graph/text_reader.hpp"

#include <charconv>
#include <cmath>

namespace tsr {

int64_t TextReader::integer() {
  Token t = take();
  int64_t v = 0;
  auto [end, bad] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), v);
  if (t.kind != Token::number || bad != std::errc() || end != t.text.data() + t.text.size())
    error(t, bad == std::errc::result_out_of_range ? "this number does not fit in 64 bits" : "expected a whole number");
  return v;
}

bool TextReader::is_number() const {
  const Token& t = peek();
  return t.kind == Token::number || (t.kind == Token::word && (t.text == "inf" || t.text == "nan"));
}

double TextReader::real() {
  Token t = take();
  if (t.text == "inf") return INFINITY;
  if (t.text == "-inf") return -INFINITY;
  if (t.text == "nan") return NAN;
  double v = 0;
  auto [end, bad] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), v);
  if (t.kind != Token::number || bad != std::errc() || end != t.text.data() + t.text.size())
    error(t, "expected a number");
  return v;
}

Ints TextReader::integers() {
  Ints v;
  if (accept("(")) {
    expect(")");
    return v;
  }
  do v.push_back(integer());
  while (accept(","));
  return v;
}

Dims TextReader::bracketed() {
  Token at = peek();
  expect("[");
  Ints v;
  if (!is("]")) do
      v.push_back(integer());
    while (accept(","));
  expect("]");
  if (v.size() > kMaxRank) error(at, cat("a tensor has at most ", kMaxRank, " dimensions, ", v.size(), " given"));
  return Dims(v);
}

}  // namespace tsr
