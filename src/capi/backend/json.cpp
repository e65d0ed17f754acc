// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/json.hpp"

#include <charconv>
#include <cstdio>

namespace tsr::capi {
namespace {

std::string quoted(const std::string& s) {
  std::string text = "\"";
  for (char c : s) {
    char code[8];
    if (c == '"' || c == '\\')
      text += '\\', text += c;
    else if (c == '\n')
      text += "\\n";
    else if (static_cast<unsigned char>(c) < ' ')
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c)), text += code;
    else
      text += c;
  }
  return text + '"';
}

std::string printed(const JsonValue& v) {
  if (const auto* s = std::get_if<std::string>(&v)) return quoted(*s);
  if (const auto* d = std::get_if<double>(&v)) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", *d);
    return digits;
  }
  std::string text = "[";
  for (const std::string& s : std::get<std::vector<std::string>>(v)) text += (text.size() > 1 ? "," : "") + quoted(s);
  return text + "]";
}

// Reads from the front of the text; false as soon as it is something else.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool object(JsonObject& o) {
    if (!sign('{')) return false;
    if (sign('}')) return done();
    do {
      std::string name;
      if (!string(name) || !sign(':') || !value(o[name])) return false;
    } while (sign(','));
    return sign('}') && done();
  }

 private:
  void skip() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_[0]) != std::string_view::npos)
      rest_.remove_prefix(1);
  }
  bool done() {
    skip();
    return rest_.empty();
  }
  bool next_is(char c) {
    skip();
    return !rest_.empty() && rest_[0] == c;
  }
  bool sign(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool value(JsonValue& v) {
    if (next_is('"')) return string(v.emplace<std::string>());
    if (next_is('[')) return list(v.emplace<std::vector<std::string>>());
    double& d = v.emplace<double>();
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), d);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  bool list(std::vector<std::string>& v) {
    if (!sign('[')) return false;
    if (sign(']')) return true;
    do
      if (!string(v.emplace_back())) return false;
    while (sign(','));
    return sign(']');
  }
  char take() {
    char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  bool string(std::string& s) {
    if (!sign('"')) return false;
    while (!rest_.empty()) {
      char c = take();
      if (c == '"') return true;
      if (c != '\\')
        s += c;
      else if (!escaped(s))
        return false;
    }
    return false;
  }
  bool escaped(std::string& s) {
    static constexpr std::string_view kCodes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (rest_.empty()) return false;
    char c = take();
    if (size_t at = kCodes.find(c); at != std::string_view::npos) {
      s += kMeant[at];
      return true;
    }
    unsigned code = 0;  // only of single bytes: nothing else is written so here
    if (c != 'u' || rest_.size() < 4) return false;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, code, 16);
    if (error != std::errc() || end != rest_.data() + 4 || code > 0x7f) return false;
    s += static_cast<char>(code);
    rest_.remove_prefix(4);
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::string print_json(const JsonObject& o) {
  std::string text = "{";
  for (const auto& [name, v] : o) text += (text.size() > 1 ? "," : "") + quoted(name) + ":" + printed(v);
  return text + "}";
}

std::optional<JsonObject> parse_json(std::string_view text) {
  JsonObject o;
  if (!Reader(text).object(o)) return {};
  return o;
}

}  // namespace tsr::capi
