// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk: one file for each, checksummed, written so that readers never see a part, bounded in size.
// A pack is such a folder that ships with the program.
#pragma once

#include <optional>
#include <string>

#include "runtime/jit/nvrtc.hpp"

namespace tsr::jit {

std::optional<Compiled> read_kernel(const std::string& folder, const std::string& key);
bool write_kernel(const std::string& folder, const std::string& key, const Compiled& c);

std::string pack_folder();  // empty: none
std::string disk_folder();  // empty: nothing is kept on disk
// Deletes the files that were used least recently until the folder is below its bound (TESSERA_KERNEL_CACHE_MB).
void trim_kernels(const std::string& folder);

}  // namespace tsr::jit
