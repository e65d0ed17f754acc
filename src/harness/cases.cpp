// SPDX-License-Identifier: Apache-2.0
#include "harness/cases.hpp"

#include <fstream>
#include <sstream>

namespace tsr {
namespace {

std::string replace_all(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = s.find(from); at != std::string::npos; at = s.find(from, at + to.size()))
    s.replace(at, from.size(), to);
  return s;
}

void directives(const std::string& text, Case& c) {
  size_t i = 0;
  while (i < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
      continue;
    }
    size_t eq = text.find('=', i);
    require(eq != std::string::npos, c.file, ":", c.line, ": directive '", text.substr(i), "' has no '='");
    std::string key = text.substr(i, eq - i), value;
    if (eq + 1 < text.size() && text[eq + 1] == '"') {
      size_t end = text.find('"', eq + 2);
      require(end != std::string::npos, c.file, ":", c.line, ": a quote is not closed");
      value = text.substr(eq + 2, end - eq - 2);
      i = end + 1;
    } else {
      size_t end = text.find_first_of(" \t", eq);
      value = text.substr(eq + 1, end == std::string::npos ? end : end - eq - 1);
      i = end == std::string::npos ? text.size() : end;
    }
    if (key == "error" || key == "peer") {
      (key == "error" ? c.error : c.peer) = value;
      continue;
    }
    check_data_kind(value);
    (key == "all" ? c.data.all : c.data.by_name[key]) = value;
  }
}

void finish(std::string block, const std::string& file, int line, std::vector<Case>& out) {
  if (block.find_first_not_of(" \t\n") == std::string::npos) return;
  for (std::string& text : expand(block)) {
    Case c;
    c.file = file;
    c.line = line;
    std::istringstream lines(text);
    std::string l;
    while (std::getline(lines, l)) {
      size_t mark = l.find("#!");
      if (mark != std::string::npos) directives(l.substr(mark + 2), c), l = l.substr(0, mark);
      size_t last = l.find_last_not_of(" \t");
      if (last == std::string::npos) continue;
      c.text += (c.text.empty() ? "" : "\n") + l.substr(0, last + 1);
    }
    out.push_back(std::move(c));
  }
}

}  // namespace

std::vector<std::string> expand(const std::string& text) {
  size_t open = text.find('<');
  if (open == std::string::npos) return {text};
  size_t close = text.find('>', open);
  require(close != std::string::npos, "'<' without '>' in case: ", text);
  std::string body = text.substr(open + 1, close - open - 1), name;
  size_t eq = body.find('=');
  bool named = eq != std::string::npos &&
               body.substr(0, eq).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos && eq > 0;
  if (named) name = body.substr(0, eq), body = body.substr(eq + 1);
  std::vector<std::string> out;
  std::istringstream choices(body + "|");
  std::string choice;
  while (std::getline(choices, choice, '|')) {
    std::string t = text.substr(0, open) + choice + text.substr(close + 1);
    if (named) t = replace_all(t, "<" + name + ">", choice);
    for (std::string& s : expand(t)) out.push_back(std::move(s));
  }
  return out;
}

std::vector<Case> parse_cases(const std::string& content, const std::string& file) {
  std::vector<Case> out;
  std::istringstream lines(content);
  std::string l, block;
  int number = 0, start = 0;
  while (std::getline(lines, l)) {
    ++number;
    bool comment = l.empty() || (l[0] == '#' && l.substr(0, 2) != "#!");
    bool continues = !l.empty() && (l[0] == ' ' || l[0] == '\t');
    if (continues) {
      block += "\n" + l;
      continue;
    }
    finish(std::move(block), file, start, out);
    block = comment ? "" : l;
    start = number;
  }
  finish(std::move(block), file, start, out);
  return out;
}

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream in(path);
  require(in.good(), "cannot read case file '", path, "'");
  std::string content((std::istreambuf_iterator<char>(in)), {});
  return parse_cases(content, path);
}

}  // namespace tsr
