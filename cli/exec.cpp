// SPDX-License-Identifier: Apache-2.0
// `tessera exec`: starts a program with this project's libcudnn.so.9 in the place of NVIDIA's and, with --device cpu,
// with a stand-in of CUDA's runtime that works on the host.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "base/settings.hpp"
#include "child.hpp"
#include "command.hpp"
#include "program_file.hpp"
#include "runtime/devices.hpp"

namespace tsr::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLibrary = "libcudnn.so.9";
constexpr const char* kPreloaded = "libtessera_exec.so";  // cli/preload
enum { kCannotRun = 126, kNotFound = 127 };               // as `env` and shells say it

struct Folders {
  fs::path cudnn, host;
};

// In the folder of the build, or of an installation.
Folders find_folders() {
  fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<Folders> places = {{here, here / "host_cuda"}};
  for (const char* lib : {TESSERA_LIBDIR, "lib", "lib64"}) {
    fs::path folder = (here.parent_path() / lib / "tessera").lexically_normal();
    places.push_back({folder, folder / "host"});
  }
  std::string searched;
  for (const Folders& f : places) {
    if (fs::exists(f.cudnn / kLibrary)) return f;
    searched += cat(searched.empty() ? "" : ", ", f.cudnn.string());
  }
  fail(Status::bad_parameter, kLibrary, " of this project is in none of ", searched,
       "; build the target `cudnn`, or install the project or its package tessera-cudnn");
}

struct Library {
  std::string path, version, problem;
};

// Opens a library, in another process, and asks it for its version.
Library look_at(const std::string& name) {
  std::istringstream answer(output_of_child([&] {
    void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    const link_map* map = nullptr;
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
      std::cout << "\n\n" << dlerror() << std::endl;
      return;
    }
    auto version = reinterpret_cast<size_t (*)()>(dlsym(library, "cudnnGetVersion"));
    std::cout << map->l_name << "\n" << (version ? version() : 0) << "\n" << std::endl;
  }));
  Library l;
  std::getline(answer, l.path);
  std::getline(answer, l.version);
  std::getline(answer, l.problem);
  return l;
}

// Puts values in front of what a variable holds.
void prepend(const char* variable, const std::vector<std::string>& values) {
  std::string all;
  for (const std::string& v : values) all += (all.empty() ? "" : ":") + v;
  const char* old = std::getenv(variable);
  if (old && *old) all += cat(":", old);
  setenv(variable, all.c_str(), 1);
}

void preload(const fs::path& file) {
  // The loader reads both as ends of a name, and knows no quotes.
  require(file.string().find_first_of(" :") == std::string::npos, "'", file.string(),
          "' cannot be preloaded: its name has a space or a colon; build or install elsewhere");
  prepend("LD_PRELOAD", {file.string()});
}

// Libraries are found by their names in LD_LIBRARY_PATH, so that a program gets those that it was made for. Only a path
// inside the program (RPATH) is stronger; what is loaded before the program asks is stronger still.
void preload_against_paths(const ProgramFile& program, const fs::path& folder) {
  for (const auto& [name, path] : libraries_of(program))
    if (fs::exists(folder / name) && !fs::equivalent(path, folder / name)) preload(folder / name);
}

void stand_in_for_runtime(const ProgramFile& program, const fs::path& folder) {
  std::map<std::string, std::string> linked = libraries_of(program);
  fs::path wanted = folder / (linked.count("libcudart.so.12") ? "libcudart.so.12" : "libcudart.so.13");
  for (const char* name : {"libcudart.so.12", "libcudart.so.13"})
    require(fs::exists(folder / name), "the stand-in of CUDA's runtime, ", (folder / name).string(), ", is missing");
  preload_against_paths(program, folder);
  // cudnn-frontend opens it by this name; older ones try all versions (cli/preload lets them find one).
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", wanted.c_str(), 0);
}

// Paths that the program opens itself are recognised by what is preloaded.
void serve_opened_paths(const fs::path& preloaded, const std::vector<std::string>& folders) {
  require(fs::exists(preloaded), preloaded.string(), " is missing; build the target `tessera_exec`");
  preload(preloaded);
  std::string all;
  for (const std::string& f : folders) all += (all.empty() ? "" : ":") + f;
  setenv("TESSERA_EXEC_FOLDERS", all.c_str(), 1);
}

std::string replaced_by(const ProgramFile& program) {
  std::map<std::string, std::string> libraries = libraries_of(program);
  auto it = libraries.find(kLibrary);
  std::string path = it != libraries.end() ? it->second : look_at(kLibrary).path;
  return path.empty() ? "none was installed" : cat("in place of ", path);
}

int refuse(int code, const std::string& text) {
  std::cerr << "error: " << text << "\n";
  return code;
}

int refuse_program(const ProgramFile& p, const std::string& name) {
  switch (p.kind) {
    case ProgramFile::Kind::missing:
      return refuse(kNotFound, cat("there is no program '", name, "'"));
    case ProgramFile::Kind::forbidden:
      return refuse(kCannotRun, cat("'", p.path, "' is not a file that may be executed"));
    case ProgramFile::Kind::static_binary:
      return refuse(kCannotRun,
                    cat("'", p.path, "' is linked statically: it loads no libraries that could be replaced"));
    default:
      return kOk;
  }
}

// The device that handles of the program will stand for.
Device device_of_program(const std::string& asked) {
  std::string name = asked.empty() ? setting("TESSERA_DEVICE") : asked;
  Device d = name.empty() ? (gpus().empty() ? cpu_device() : cuda_device(0)) : find_device(name);
  require_present(d);
  return d;
}

void set_environment(const ProgramFile& program, const Folders& folders, const std::string& device) {
  bool host = device == "cpu";
  std::vector<std::string> searched = {folders.cudnn.string()};
  if (host) searched.push_back(folders.host.string());
  prepend("LD_LIBRARY_PATH", searched);
  preload(folders.cudnn / kLibrary);
  preload_against_paths(program, folders.cudnn);
  serve_opened_paths(folders.cudnn / kPreloaded, searched);
  if (host) stand_in_for_runtime(program, folders.host);
  if (!device.empty()) setenv("TESSERA_DEVICE", device.c_str(), 1);
}

void warn_of_static_runtime(const ProgramFile& program) {
  if (holds_cuda_runtime(program))
    std::cerr << "tessera exec: warning: '" << program.path
              << "' holds CUDA's runtime itself, so nothing can stand in for it and its calls will fail without a GPU; "
                 "link it with `nvcc -cudart shared`"
              << std::endl;
}

int start(const ProgramFile& program, const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  execvp(program.path.c_str(), arguments.data());
  return refuse(errno == ENOENT ? kNotFound : kCannotRun,
                cat("'", program.path, "' cannot be executed: ", std::strerror(errno)));
}

int run_program(const std::vector<std::string>& words, const std::string& device) {
  Device on = device_of_program(device);
  Folders folders = find_folders();
  Library ours = look_at((folders.cudnn / kLibrary).string());
  require(ours.problem.empty(), "cannot load ", (folders.cudnn / kLibrary).string(), ": ", ours.problem);
  ProgramFile program = find_program(words[0]);
  if (int code = refuse_program(program, words[0])) return code;
  std::string replaced = replaced_by(program);
  set_environment(program, folders, device);
  std::cerr << "tessera exec: " << ours.path << " reports " << ours.version << ", " << replaced << "; on " << on.name
            << (device == "cpu" ? ", with a stand-in of CUDA's runtime" : "") << std::endl;
  if (device == "cpu") warn_of_static_runtime(program);
  return start(program, words);
}

}  // namespace

void add_exec(Command& app) {
  Command c = app.add_command("exec", "Start a program that uses cuDNN with this library in its place");
  auto device = std::make_shared<std::string>();
  c.add_option("--device", *device,
               "cpu (with a stand-in of CUDA's runtime, so that no GPU is needed), cuda or cuda:NUMBER; otherwise a GPU"
               " if there is one")
      .check([](const std::string& d) {
        return d == "cpu" || d.rfind("cuda", 0) == 0 ? "" : "'" + d + "' is not cpu, cuda or cuda:NUMBER";
      });
  auto words = std::make_shared<std::vector<std::string>>();
  c.add_option("PROGRAM", *words, "the program and its arguments").required();
  c.positionals_at_end();  // what looks like an option behind the program is the program's
  c.footer("Example: tessera exec --device cpu -- ./mnist --epochs 1");
  c.runs([=] { return run_program(*words, *device); });
}

}  // namespace tsr::cli
