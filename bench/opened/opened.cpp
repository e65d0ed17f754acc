// SPDX-License-Identifier: Apache-2.0
#include "opened/opened.hpp"

#include <dlfcn.h>
#include <link.h>
#include <climits>
#include <cstdlib>

namespace opened {
namespace {

std::string real_path(const char* path) {
  char buffer[PATH_MAX];
  return realpath(path, buffer) ? buffer : path;
}

}  // namespace

Library::Library(const std::string& path, const std::string& kind) {
  if (path.find('/') == std::string::npos) throw Error("'" + path + "' is a name; give the path of a " + kind);
  // Never closed: CUDA libraries do not survive that.
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw Error("cannot open a " + kind + ": " + dlerror());
  link_map* loaded = nullptr;
  if (dlinfo(library_, RTLD_DI_LINKMAP, &loaded) != 0 || !loaded)
    throw Error("cannot tell which file '" + path + "' was loaded from");
  path_ = real_path(loaded->l_name);
  if (path_ != real_path(path.c_str())) throw Error("'" + path + "' was asked for, '" + path_ + "' was loaded");
}

void* Library::symbol(const char* name) const {
  void* found = dlsym(library_, name);
  if (!found) throw Error("'" + path_ + "' has no " + name);
  return found;
}

}  // namespace opened
