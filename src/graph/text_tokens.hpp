// SPDX-License-Identifier: Apache-2.0
// Words, numbers and symbols of the text form, and errors that point at them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tsr {

struct Token {
  // A name is a word, a text in quotes, or a label: '%' and a word, for a tensor without a name.
  enum Kind { word, quoted, label, number, symbol, arrow, line_end, end } kind = end;
  std::string_view text;
};

bool is_word(std::string_view text);  // what a token of this kind looks like
std::string unquoted(std::string_view text);

// Raises when a character has no meaning. The last token is `end`.
std::vector<Token> tokenize(std::string_view text);

// Raises with position, source line and caret; `where` is a piece of `source`, or empty for its end.
[[noreturn]] void fail_at(std::string_view source, std::string_view where, const std::string& message);

}  // namespace tsr
