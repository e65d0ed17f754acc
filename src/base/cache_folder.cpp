// SPDX-License-Identifier: Apache-2.0
#include "base/cache_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/settings.hpp"

namespace tsr {
namespace {

namespace fs = std::filesystem;

std::string wanted_folder() {
  if (std::string given = setting("TESSERA_CACHE"); !given.empty()) return given;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/tessera";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/tessera";
  return "";
}

// The folder itself when it is there, or can be made, and nobody else can write to it.
std::string private_folder(const std::string& path) {
  if (path.empty()) return "";
  std::error_code ignored;
  if (fs::create_directories(path, ignored)) chmod(path.c_str(), 0700);
  struct stat s = {};
  if (stat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode)) {
    log_line(2, cat("cache folder '", path, "' cannot be made; nothing is cached on disk"));
    return "";
  }
  if (s.st_uid != geteuid() || (s.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    log_line(1, cat("cache folder '", path, "' could be written by others and is not used; chmod 700 it, or set ",
                    "TESSERA_CACHE to a folder of your own"));
    return "";
  }
  return path;
}

}  // namespace

std::string cache_folder() {
  static const std::string folder = private_folder(wanted_folder());
  return folder;
}

std::string cache_folder(const std::string& part) {
  std::string base = cache_folder();
  return base.empty() ? base : private_folder(base + "/" + part);
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good()) return std::nullopt;
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

bool write_file_atomically(const std::string& path, const std::string& content) {
  static std::atomic<int> count{0};
  std::string part = cat(path, ".", getpid(), ".", count.fetch_add(1));
  {
    std::ofstream out(part, std::ios::binary);
    out << content;
    out.close();
    if (!out.good()) return std::remove(part.c_str()), false;
  }
  if (std::rename(part.c_str(), path.c_str()) == 0) return true;
  std::remove(part.c_str());
  return false;
}

void recall(const std::string& file, const std::function<void(const std::string& text)>& load,
            const std::function<std::string()>& find_out) {
  std::string folder = cache_folder(), path = folder.empty() ? "" : cat(folder, "/", file);
  if (auto text = path.empty() ? std::nullopt : read_file(path)) {
    try {
      return load(*text);
    } catch (const Error& e) {
      log_line(2, cat("'", path, "': ", e.what(), "; found out anew"));
    }
  }
  std::string text = find_out();
  if (!path.empty() && !text.empty() && !write_file_atomically(path, text))
    log_line(2, cat("cannot write '", path, "': it is found out again next time"));
}

}  // namespace tsr
