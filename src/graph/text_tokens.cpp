// SPDX-License-Identifier: Apache-2.0
#include "graph/text_tokens.hpp"

#include <algorithm>
#include <cctype>

#include "base/error.hpp"

namespace tsr {

void fail_at(std::string_view source, std::string_view where, const std::string& message) {
  size_t pos = where.data() ? static_cast<size_t>(where.data() - source.data()) : source.size();
  pos = std::min(pos, source.size());
  size_t line_start = pos == 0 ? 0 : source.rfind('\n', pos - 1);
  line_start = line_start == std::string_view::npos ? 0 : (pos == 0 ? 0 : line_start + 1);
  size_t line_end = source.find('\n', pos);
  if (line_end == std::string_view::npos) line_end = source.size();
  auto line = 1 + std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(line_start), '\n');
  std::string excerpt(source.substr(line_start, line_end - line_start));
  size_t column = pos - line_start;
  // Long one-line graphs: show the neighbourhood only.
  size_t from = column > 60 ? column - 60 : 0;
  excerpt = excerpt.substr(std::min(from, excerpt.size()), 120);
  for (char& c : excerpt)
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  fail(Status::bad_parameter, "line ", line, ", column ", column + 1, ": ", message, "\n  ", excerpt, "\n  ",
       std::string(column - from, ' '), "^");
}

static bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
static bool is_word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }

bool is_word(std::string_view text) {
  return !text.empty() && is_word_start(text[0]) && std::all_of(text.begin(), text.end(), is_word_char);
}

std::string unquoted(std::string_view text) {
  std::string s;
  for (size_t i = 1; i + 1 < text.size(); ++i) s += text[i] == '\\' ? text[++i] : text[i];
  return s;
}

// Where the text in quotes that starts at `from` ends.
static size_t end_of_quotes(std::string_view s, size_t from) {
  for (size_t i = from + 1; i < s.size() && s[i] != '\n'; ++i) {
    if (s[i] == '"') return i + 1;
    if (s[i] == '\\') ++i;
  }
  fail_at(s, s.substr(from, 1), "this quote is not closed on its line");
}

std::vector<Token> tokenize(std::string_view s) {
  std::vector<Token> tokens;
  size_t i = 0;
  while (i < s.size()) {
    char c = s[i];
    auto digit = [&](size_t k) { return k < s.size() && std::isdigit(static_cast<unsigned char>(s[k])); };
    if (c == '\n') {
      tokens.push_back({Token::line_end, s.substr(i++, 1)});
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
    } else if (c == '#') {
      while (i < s.size() && s[i] != '\n') ++i;
    } else if (c == '-' && i + 1 < s.size() && s[i + 1] == '>') {
      tokens.push_back({Token::arrow, s.substr(i, 2)});
      i += 2;
    } else if (digit(i) || ((c == '-' || c == '.') && digit(i + 1)) ||
               (c == '-' && i + 2 < s.size() && s[i + 1] == '.' && digit(i + 2)) ||
               (c == '-' && s.substr(i + 1, 3) == "inf")) {
      size_t b = i++;
      if (s.substr(i, 3) == "inf") i += 3;
      while (i < s.size() &&
             (is_word_char(s[i]) || ((s[i] == '-' || s[i] == '+') && (s[i - 1] == 'e' || s[i - 1] == 'E'))))
        ++i;
      tokens.push_back({Token::number, s.substr(b, i - b)});
    } else if (is_word_start(c)) {
      size_t b = i;
      while (i < s.size() && is_word_char(s[i])) ++i;
      tokens.push_back({Token::word, s.substr(b, i - b)});
    } else if (c == '%' && i + 1 < s.size() && is_word_char(s[i + 1])) {
      size_t b = i++;
      while (i < s.size() && is_word_char(s[i])) ++i;
      tokens.push_back({Token::label, s.substr(b, i - b)});
    } else if (c == '"') {
      size_t b = i;
      i = end_of_quotes(s, b);
      tokens.push_back({Token::quoted, s.substr(b, i - b)});
    } else if (std::string_view("=,;:[](){}@*/").find(c) != std::string_view::npos) {
      tokens.push_back({Token::symbol, s.substr(i++, 1)});
    } else {
      bool name = static_cast<unsigned char>(c) >= 128;  // of another alphabet
      fail_at(s, s.substr(i, 1),
              cat("this character has no meaning here", name ? "; a name that has it stands in quotes" : ""));
    }
  }
  tokens.push_back({Token::end, {}});
  return tokens;
}

}  // namespace tsr
