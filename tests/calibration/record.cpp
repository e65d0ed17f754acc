// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <sstream>

#include "base/hash.hpp"

namespace tsr::calibration {
namespace {

constexpr size_t kShown = 8;

std::string text_of(uint32_t word) { return hex(word).substr(8); }

}  // namespace

Entry entry(const MicroKernel& k, const Words& result) {
  if (k.all_words) return {"", result};
  std::string_view bytes(reinterpret_cast<const char*>(result.data()), result.size() * 4);
  return {hex(hash_text(bytes)), Words(result.begin(), result.begin() + std::min<ptrdiff_t>(kShown, result.size()))};
}

std::string line(const std::string& name, const Entry& e) {
  std::string s = cat(name, "\t", e.hash.empty() ? std::string("sums") : e.hash, "\t");
  for (size_t i = 0; i < e.words.size(); ++i) s += (i ? " " : "") + text_of(e.words[i]);
  return s + "\n";
}

Record parse_record(const std::string& text) {
  Record r;
  std::istringstream lines(text);
  for (std::string l; std::getline(lines, l);) {
    if (l.empty() || l[0] == '#') continue;
    size_t first = l.find('\t'), second = l.find('\t', first + 1);
    require(second != std::string::npos, "a line of a calibration record reads NAME, HASH and WORDS: '", l, "'");
    Entry e{l.substr(first + 1, second - first - 1), {}};
    if (e.hash == "sums") e.hash.clear();
    std::istringstream words(l.substr(second + 1));
    for (std::string w; words >> w;) e.words.push_back(static_cast<uint32_t>(std::stoul(w, nullptr, 16)));
    r[l.substr(0, first)] = e;
  }
  return r;
}

std::string difference(const MicroKernel& k, const Words& result, const Entry& recorded) {
  Entry mine = entry(k, result);
  std::string why;
  int shown = 0;
  for (size_t i = 0; i < mine.words.size() && i < recorded.words.size(); ++i) {
    uint32_t a = mine.words[i], b = recorded.words[i];
    if (a == b) continue;
    if (shown++ < 4) why += cat(" word ", i, " is ", text_of(a), ", recorded ", text_of(b), ";");
  }
  if (mine.words.size() != recorded.words.size()) why += " another number of words;";
  if (why.empty() && mine.hash != recorded.hash) why = cat(" words behind the first ", kShown, " differ;");
  return why.empty() ? "" : k.name + ":" + why;
}

}  // namespace tsr::calibration
