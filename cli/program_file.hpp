// SPDX-License-Identifier: Apache-2.0
// A program on disk: where it is, and which libraries the system's loader would give it.
#pragma once

#include <map>
#include <string>

namespace tsr::cli {

struct ProgramFile {
  enum class Kind { missing, forbidden, script, static_binary, dynamic_binary };
  Kind kind = Kind::missing;
  std::string path;         // of the file that would be executed
  std::string interpreter;  // of a dynamic binary: its loader
};

// As a shell would find it.
ProgramFile find_program(const std::string& name);

// The files that the loader finds in the present environment for a dynamic binary, by the names that it asks for;
// nothing is run. Empty where the loader cannot say.
std::map<std::string, std::string> libraries_of(const ProgramFile& p);

// Whether a binary holds CUDA's runtime itself, as nvcc links it unless told otherwise.
bool holds_cuda_runtime(const ProgramFile& p);

}  // namespace tsr::cli
