// SPDX-License-Identifier: Apache-2.0
// A sub-library of cuDNN (libcudnn_ops.so.9 and so on): each of its functions jumps to the one of the same name in
// libcudnn.so.9. Compiled once for each sub-library, with the functions of its list (*.map).
//
// That file is opened by its path, not named as a dependency: another libcudnn.so.9 in the process would be taken for
// it. NVIDIA's calls its sub-libraries, so that it and ours would call each other for ever.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "functions.hpp"  // FUNCTIONS(DO): DO(name) for each function; written by CMake

// A jump leaves arguments and results where they are, whatever their types.
#if defined(__x86_64__)
#define JUMP(target) "endbr64\njmp *" target "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(target) "hint #34\nadrp x16, " target "\nldr x16, [x16, :lo12:" target "]\nbr x16\n"
#else
#error "the sub-libraries of cuDNN are written for x86-64 and AArch64"
#endif

#define FORWARD(name)                                           \
  extern "C" {                                                  \
  [[gnu::visibility("hidden"), gnu::used]] void* target_##name; \
  }                                                             \
  asm(".pushsection .text\n.globl " #name "\n.type " #name ", %function\n" \
      #name ":\n.cfi_startproc\n" JUMP("target_" #name) ".cfi_endproc\n"   \
      ".size " #name ", .-" #name "\n.popsection\n");
#define ENTRY(name) {#name, &target_##name},

FUNCTIONS(FORWARD)

namespace {

struct Entry {
  const char* name;
  void** target;
};

const Entry kEntries[] = {FUNCTIONS(ENTRY){nullptr, nullptr}};

// There is nobody to give a status to: a missing file is reported as the loader reports one.
[[noreturn]] void stop() {
  const char* problem = dlerror();
  Dl_info self = {};
  dladdr(kEntries, &self);
  std::fprintf(stderr, "%s needs libcudnn.so.9 of the same version in its folder: %s\n", self.dli_fname, problem);
  std::abort();
}

// It stays open when the sub-library is closed: handles and descriptors may live on.
[[gnu::constructor]] void connect() {
  void* library = dlopen("$ORIGIN/libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (!library) stop();
  for (const Entry* e = kEntries; e->name; ++e) {
    *e->target = dlsym(library, e->name);
    if (!*e->target) stop();
  }
}

}  // namespace
