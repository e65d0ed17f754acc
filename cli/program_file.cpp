// SPDX-License-Identifier: Apache-2.0
#include "program_file.hpp"

#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "child.hpp"

namespace tsr::cli {
namespace fs = std::filesystem;
namespace {

using Kind = ProgramFile::Kind;

std::vector<std::string> candidates(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/bin:/usr/bin");
  std::vector<std::string> found;
  for (std::string folder; std::getline(folders, folder, ':');)
    found.push_back((folder.empty() ? "." : folder) + "/" + name);
  return found;
}

// The loader that an ELF file of this machine names; empty if it needs none.
std::string interpreter_of(std::ifstream& in, const Elf64_Ehdr& header) {
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    in.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<Elf64_Off>(i) * header.e_phentsize));
    if (!in.read(reinterpret_cast<char*>(&part), sizeof part)) break;
    if (part.p_type != PT_INTERP || part.p_filesz > 4096) continue;
    std::string text(part.p_filesz, '\0');
    in.seekg(static_cast<std::streamoff>(part.p_offset));
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text.c_str();  // ends with a zero
  }
  return {};
}

ProgramFile read(const std::string& path) {
  ProgramFile p{Kind::script, path, {}};
  std::ifstream in(path, std::ios::binary);
  Elf64_Ehdr header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  bool elf = in && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
  if (!elf) return p;  // or a file that cannot be read: the system will say what it thinks of it
  p.interpreter = interpreter_of(in, header);
  p.kind = p.interpreter.empty() ? Kind::static_binary : Kind::dynamic_binary;
  return p;
}

}  // namespace

ProgramFile find_program(const std::string& name) {
  ProgramFile found;
  for (const std::string& path : candidates(name)) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    if (fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0) return read(path);
    if (found.kind == Kind::missing) found = {Kind::forbidden, path, {}};
  }
  return found;
}

std::map<std::string, std::string> libraries_of(const ProgramFile& p) {
  std::map<std::string, std::string> libraries;
  if (p.kind != Kind::dynamic_binary) return libraries;
  std::string listing = output_of_child([&] {
    freopen("/dev/null", "w", stderr);
    execl(p.interpreter.c_str(), p.interpreter.c_str(), "--list", p.path.c_str(), static_cast<char*>(nullptr));
  });
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    // NAME => PATH (ADDRESS)
    std::istringstream words(line);
    std::string name, arrow, path;
    if (words >> name >> arrow >> path && arrow == "=>" && path.front() == '/') libraries[name] = path;
  }
  return libraries;
}

bool holds_cuda_runtime(const ProgramFile& p) {
  if (p.kind != Kind::dynamic_binary) return false;
  std::ifstream in(p.path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // The library that it opens, and one of its own errors' names; programs that only handle errors have no such text.
  return content.find("libcuda.so.1") != std::string::npos &&
         content.find("cudaErrorCudartUnloading") != std::string::npos;
}

}  // namespace tsr::cli
