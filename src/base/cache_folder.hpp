// SPDX-License-Identifier: Apache-2.0
// The folder where the library keeps what is costly to find out again. It belongs to one user: a folder that others
// could write to is refused, since its contents are trusted.
#pragma once

#include <optional>
#include <string>

namespace tsr {

// TESSERA_CACHE, or `tessera` in the user's cache folder; made when it is missing. Empty when there is none to be had
// (the reason is logged once): callers then work without.
std::string cache_folder();
// A folder in it, made when it is missing and as private; empty likewise.
std::string cache_folder(const std::string& part);

std::optional<std::string> read_file(const std::string& path);
// Readers see the old content or the new one, never a part; false when it cannot be written.
bool write_file_atomically(const std::string& path, const std::string& content);

}  // namespace tsr
