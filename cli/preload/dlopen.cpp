// SPDX-License-Identifier: Apache-2.0
// What `tessera exec` preloads beside libcudnn.so.9. Python packages open libraries of NVIDIA's by a path of their own,
// .../nvidia/cudnn/lib/libcudnn.so.9, where neither LD_LIBRARY_PATH nor what is loaded already counts. So the path is
// recognised when it is opened, and the file of that name in one of our folders is opened instead.
//
// This library becomes part of any program, and so needs C's library alone.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

using Open = void* (*)(const char*, int);
Open next_open() {
  static const Open next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  return next;
}

struct Path {
  char text[PATH_MAX];
  // False where it does not fit.
  template <class... Values>
  bool print(const char* format, Values... values) {
    int length = std::snprintf(text, sizeof text, format, values...);
    return length > 0 && static_cast<size_t>(length) < sizeof text;
  }
};

bool starts_with(const char* text, const char* beginning) {
  return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

// The name by which programs are linked with the library in this file: libcudnn.so.9 of libcudnn.so.9.1.0. False for
// libraries that we have nothing for.
bool linked_name(const char* file, Path& name) {
  const char* slash = std::strrchr(file, '/');
  const char* base = slash ? slash + 1 : file;
  const char* suffix = std::strstr(base, ".so");
  if (!suffix || !(starts_with(base, "libcudnn") || starts_with(base, "libcudart."))) return false;
  const char* end = suffix + std::strlen(".so");
  if (*end == '.') end += 1 + std::strspn(end + 1, "0123456789");
  if (*end != '\0' && *end != '.') return false;
  return name.print("%.*s", static_cast<int>(end - base), base);
}

bool is_loaded(const char* file) {
  void* library = next_open()(file, RTLD_LAZY | RTLD_NOLOAD);
  if (library) dlclose(library);
  return library != nullptr;
}

// Front ends that look for CUDA's runtime try the names of all versions, and some give up where there are several. So a
// process has one: who asks for a second by its name gets a path where there is nothing.
void keep_to_one_runtime(const char* folder, int length, const char* name, Path& found) {
  if (!starts_with(name, "libcudart.") || is_loaded(found.text)) return;
  for (const char* other : {"libcudart.so.12", "libcudart.so.13"}) {
    Path file;
    if (std::strcmp(name, other) == 0 || !file.print("%.*s/%s", length, folder, other) || !is_loaded(file.text))
      continue;
    found.print("%.*s/(%s is loaded)", length, folder, other);
    return;
  }
}

// Our file in the place of `file`, or `file` itself.
const char* file_instead_of(const char* file) {
  static thread_local Path found;
  const char* folders = std::getenv("TESSERA_EXEC_FOLDERS");
  Path name;
  if (!file || !folders || !linked_name(file, name)) return file;
  for (const char* folder = folders;; ++folder) {
    auto length = static_cast<int>(std::strcspn(folder, ":"));
    if (found.print("%.*s/%s", length, folder, name.text) && access(found.text, R_OK) == 0) {
      bool by_name = !std::strchr(file, '/');
      if (by_name) keep_to_one_runtime(folder, length, name.text, found);
      return found.text;
    }
    folder += length;
    if (!*folder) return file;
  }
}

}  // namespace

// The last call must be a jump, as it is from -O2 on: for names without a folder the loader looks at the search path of
// whoever called it.
extern "C" __attribute__((visibility("default"))) void* dlopen(const char* file, int mode) {
  const char* instead = file_instead_of(file);
  return next_open()(instead, mode);
}
