// SPDX-License-Identifier: Apache-2.0
// All settings of the library are rows of one table, read once from the environment. None changes numerics.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tsr {

struct Setting {
  std::string_view name;      // the environment variable
  std::string_view fallback;  // its default
  std::string_view text;      // what it does
};

std::span<const Setting> settings();
std::string setting(std::string_view name);  // value in force
int64_t setting_int(std::string_view name);  // a bad number counts as the default, with a warning

// Log levels: 0 nothing, 1 errors, 2 warnings, 3 plans chosen, 4 candidates and reasons, 5 everything.
bool log_enabled(int level);
void log_line(int level, const std::string& text);  // to stderr, or to the file named by TESSERA_LOG_FILE

constexpr std::string_view kVersion = "0.1.0";

}  // namespace tsr
