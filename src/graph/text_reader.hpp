// SPDX-License-Identifier: Apache-2.0
// Walks over the tokens of a text: what comes next, numbers and lists of them, errors that point at the place.
#pragma once

#include <algorithm>

#include "base/dims.hpp"
#include "base/error.hpp"
#include "graph/text.hpp"
#include "graph/text_tokens.hpp"

namespace tsr {

class TextReader {
 protected:
  explicit TextReader(std::string_view source) : source_(source), tokens_(tokenize(source)) {}

  const Token& peek(size_t k = 0) const { return tokens_[std::min(pos_ + k, tokens_.size() - 1)]; }
  Token take() { return tokens_[pos_ < tokens_.size() - 1 ? pos_++ : pos_]; }
  bool at_end() const { return peek().kind == Token::end; }
  bool is(std::string_view symbol, size_t k = 0) const {
    return peek(k).kind == Token::symbol && peek(k).text == symbol;
  }
  bool accept(std::string_view symbol) { return is(symbol) ? (take(), true) : false; }
  void expect(std::string_view symbol) {
    if (!accept(symbol)) error(peek(), cat("expected '", symbol, "'"));
  }
  bool is_separator() const { return peek().kind == Token::line_end || is(";"); }
  bool skip_separators() {
    bool any = false;
    while (is_separator()) take(), any = true;
    return any;
  }
  Token expect_word(std::string_view what) {
    if (peek().kind != Token::word) error(peek(), cat("expected ", what));
    return take();
  }

  bool is_name(size_t k = 0) const {
    Token::Kind kind = peek(k).kind;
    return kind == Token::word || kind == Token::quoted || kind == Token::label;
  }
  Token expect_name(std::string_view what) {
    if (!is_name()) error(peek(), cat("expected ", what));
    return take();
  }
  [[noreturn]] void error(const Token& t, const std::string& message) const {
    if (t.kind == Token::end) fail_at(source_, {}, message + " before the end of the text");
    fail_at(source_, t.text, message);
  }
  template <class Range>
  [[noreturn]] void unknown(const Token& t, std::string_view what, const Range& candidates,
                            std::string hint = {}) const {
    std::string near = nearest(t.text, candidates);
    if (hint.empty() && !near.empty()) hint = "; did you mean '" + near + "'?";
    error(t, cat("unknown ", what, " '", t.text, "'", hint));
  }
  // Errors of graph building get the position of the statement that caused them.
  template <class F>
  void located(const Token& t, const F& f) const {
    try {
      f();
    } catch (const Error& e) {
      if (e.status() != Status::bad_parameter || std::string_view(e.what()).substr(0, 5) == "line ") throw;
      fail_at(source_, t.kind == Token::end ? std::string_view() : t.text, e.what());
    }
  }

  std::string name_of(const Token& t) const {
    if (t.kind != Token::quoted) return std::string(t.text);
    std::string name = unquoted(t.text);
    located(t, [&] { require_name(name); });
    return name;
  }
  int64_t integer();
  bool is_number() const;
  double real();
  Ints integers();
  Dims bracketed();

  // To read a part later: where the next token is, and going there.
  size_t position() const { return pos_; }
  void go_to(size_t position) { pos_ = position; }

 private:
  std::string_view source_;
  std::vector<Token> tokens_;
  size_t pos_ = 0;
};

}  // namespace tsr
