// SPDX-License-Identifier: Apache-2.0
#include "runtime/jit/sources.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace tsr::jit {
namespace {

// Calls `visit` with the path of each `#include "..."` line.
template <class Visit>
void each_include(std::string_view text, const Visit& visit) {
  constexpr std::string_view kWord = "#include \"";
  for (size_t at = text.find(kWord); at != std::string_view::npos; at = text.find(kWord, at)) {
    at += kWord.size();
    visit(text.substr(at, text.find('"', at) - at));
  }
}

uint64_t hash_closure(std::string_view path, std::set<std::string_view>& seen, uint64_t h) {
  if (!seen.insert(path).second) return h;
  const Source& s = find_source(path);
  h = hash_text(s.text, hash_text(s.path, h));
  each_include(s.text, [&](std::string_view p) { h = hash_closure(p, seen, h); });
  return h;
}

}  // namespace

const Source& find_source(std::string_view path) {
  auto all = sources();
  auto it =
      std::lower_bound(all.begin(), all.end(), path, [](const Source& s, std::string_view p) { return s.path < p; });
  if (it == all.end() || it->path != path) fail(Status::internal_error, "no device source '", path, "' is built in");
  return *it;
}

uint64_t closure_hash(std::string_view path) {
  static std::map<std::string, uint64_t, std::less<>> known;
  static std::mutex lock;
  std::lock_guard guard(lock);
  auto it = known.find(path);
  if (it != known.end()) return it->second;
  std::set<std::string_view> seen;
  uint64_t h = hash_closure(path, seen, hash_text(""));
  known.emplace(path, h);
  return h;
}

uint64_t all_sources_hash() {
  static const uint64_t value = [] {
    uint64_t h = hash_text("");
    for (const Source& s : sources()) h = hash_text(s.text, hash_text(s.path, h));
    return h;
  }();
  return value;
}

}  // namespace tsr::jit
