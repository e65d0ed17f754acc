// SPDX-License-Identifier: Apache-2.0
// JSON as this interface needs it: one object of texts, numbers and lists of texts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tsr::capi {

using JsonValue = std::variant<std::string, double, std::vector<std::string>>;
using JsonObject = std::map<std::string, JsonValue>;

std::string print_json(const JsonObject& o);
// Nothing for what is not such an object.
std::optional<JsonObject> parse_json(std::string_view text);

// A member of this type, or null.
template <class T>
const T* find(const JsonObject& o, const std::string& name) {
  auto it = o.find(name);
  return it == o.end() ? nullptr : std::get_if<T>(&it->second);
}

}  // namespace tsr::capi
