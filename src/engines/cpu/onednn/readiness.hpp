// SPDX-License-Identifier: Apache-2.0
// Whether oneDNN can be used on this machine, decided before its first use. Its code is generated for the processor,
// and some of it ends the program on some machines: versions that are known for it are held to other instructions, and
// a few small graphs are tried in a child process, once for each machine.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace tsr::onednn {

// Why this version of oneDNN must not use AMX on a processor that has it; empty: it may, or would not anyway. `user` is
// the program's own limit, the value of ONEDNN_MAX_CPU_ISA.
std::string why_without_amx(int major_version, bool has_amx, std::string_view user);

// Holds oneDNN to what it may use here, at the first call, which must come before anything else of oneDNN. Gives the
// reason for a limit, empty where there is none.
const std::string& hold_isa();

struct Readiness {
  std::string isa;  // in force, as oneDNN names it
  Reason works;     // or what died
};
const Readiness& readiness();

}  // namespace tsr::onednn
