// SPDX-License-Identifier: Apache-2.0
// The folder where the library keeps what is costly to find out again. It belongs to one user: a folder that others
// could write to is refused, since its contents are trusted.
#pragma once

#include <functional>
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

// Something that is costly to find out, kept in a file of the cache folder. `load` takes the file's text and throws an
// Error when that does not fit; then, and when there is no file, `find_out` does the work and gives the text to keep,
// or an empty one.
void recall(const std::string& file, const std::function<void(const std::string& text)>& load,
            const std::function<std::string()>& find_out);

}  // namespace tsr
