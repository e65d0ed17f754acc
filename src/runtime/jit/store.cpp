// SPDX-License-Identifier: Apache-2.0
#include "runtime/jit/store.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/cache_folder.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/settings.hpp"

namespace tsr::jit {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kMagic = "tessera-kernel 2 ";

std::string file_of(const std::string& folder, const std::string& key) { return folder + "/" + key + ".kernel"; }

// "tessera-kernel 2 CHECKSUM LOGBYTES\n", the log, the code. The checksum is that of everything after it.
std::optional<Compiled> parse(std::string_view text) {
  if (text.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  text.remove_prefix(kMagic.size());
  size_t line = text.find('\n');
  if (line == std::string_view::npos || line < 18 || text[16] != ' ') return std::nullopt;
  if (hex(hash_text(text.substr(17))) != text.substr(0, 16)) return std::nullopt;
  std::string_view count = text.substr(17, line - 17), rest = text.substr(line + 1);
  size_t log = 0;
  auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), log);
  if (error != std::errc() || end != count.data() + count.size() || log > rest.size()) return std::nullopt;
  return Compiled{std::string(rest.substr(log)), std::string(rest.substr(0, log))};
}

}  // namespace

std::optional<Compiled> read_kernel(const std::string& folder, const std::string& key) {
  if (folder.empty()) return std::nullopt;
  std::string path = file_of(folder, key);
  auto text = read_file(path);
  if (!text) return std::nullopt;
  auto c = parse(*text);
  if (!c) {
    log_line(2, cat("compiled kernel '", path, "' is damaged and will be made again"));
    return c;
  }
  std::error_code ignored;                                               // a pack may be read-only
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // used now: trimming takes others first
  return c;
}

bool write_kernel(const std::string& folder, const std::string& key, const Compiled& c) {
  std::string sealed = cat(c.log.size(), '\n', c.log, c.code);
  return write_file_atomically(file_of(folder, key), cat(kMagic, hex(hash_text(sealed)), ' ', sealed));
}

std::string pack_folder() {
  static const std::string folder = [] {
    std::error_code ignored;
    std::vector<fs::path> places = {setting("TESSERA_KERNEL_PACK")};
    if (places[0].empty()) {
      // Beside the program or, when this is one, the library; or in the folder of libraries of an installation.
      fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
      places = {program / "kernels", program.parent_path() / TESSERA_LIBDIR / "tessera/kernels"};
      Dl_info here;
      if (dladdr(reinterpret_cast<void*>(&pack_folder), &here) != 0) {
        fs::path library = fs::path(here.dli_fname).parent_path();
        for (const char* name : {"kernels", "tessera/kernels", "lib/tessera/kernels"})
          places.push_back(library / name);  // libcudnn.so.9, libtessera.so, the Python module
      }
    }
    for (const fs::path& p : places)
      if (fs::is_directory(p, ignored)) return p.string();
    return std::string();
  }();
  return folder;
}

std::string disk_folder() {
  static const std::string folder = cache_folder("kernels");
  return folder;
}

void trim_kernels(const std::string& folder) {
  struct File {
    fs::file_time_type when;
    uintmax_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  uintmax_t total = 0;
  std::error_code ignored;  // another process may delete the same files
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    File f{entry.last_write_time(ignored), entry.file_size(ignored), entry.path()};
    if (f.bytes == static_cast<uintmax_t>(-1)) continue;
    total += f.bytes;
    files.push_back(std::move(f));
  }
  uintmax_t bound = static_cast<uintmax_t>(setting_int("TESSERA_KERNEL_CACHE_MB")) << 20;
  if (total <= bound) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.when < b.when; });
  // Some room is made, so that the next kernel does not trim again.
  for (const File& f : files) {
    if (total <= bound / 10 * 9) break;
    fs::remove(f.path, ignored);
    total -= f.bytes;
  }
}

}  // namespace tsr::jit
