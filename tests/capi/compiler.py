"""Calls of the C++ compiler for the tests of the cuDNN headers."""
import os
import pathlib
import re
import subprocess
import tempfile

CXX = os.environ.get("CXX", "c++")
CUDA_HEADER = "cuda_runtime_api.h"


class CompileError(Exception):
    pass


def run(command, text=""):
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode != 0:
        raise CompileError(f"{' '.join(command)}\n{result.stderr}{text if len(text) < 500 else ''}")
    return result.stdout


def search_folders(language):
    """The folders in which the compiler looks for <...>."""
    output = subprocess.run([CXX, "-x", language, "-E", "-v", os.devnull], capture_output=True, text=True).stderr
    listed = output.split("#include <...> search starts here:")[1].split("End of search list.")[0]
    return [line.strip() for line in listed.splitlines() if line.strip()]


def without_cuda(language):
    """Flags that hide CUDA's headers even where they lie beside those of the system."""
    kept = [folder for folder in search_folders(language) if not os.path.exists(os.path.join(folder, CUDA_HEADER))]
    return ["-nostdinc"] + [flag for folder in kept for flag in ("-isystem", folder)]


def cuda_folder():
    """Where CUDA's headers are, or None."""
    candidates = search_folders("c++") + [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")]
    return next((folder for folder in candidates if os.path.exists(os.path.join(folder, CUDA_HEADER))), None)


def with_cuda():
    folder = cuda_folder()
    return ["-idirafter", folder] if folder else []


def preprocess(folder, header, flags):
    """What the cudnn* files of this folder contribute to `header`: declarations, and macros (name, parameters, body)."""
    output = run([CXX, "-std=c++17", "-x", "c++", "-E", "-dD", *flags, "-"], f'#include "{header}"\n')
    declarations, macros, ours = [], [], False
    for line in output.splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        macro = re.match(r"#define (\w+)(?:\(([^)]*)\))?\s*(.*)", line)
        if marker:
            path = pathlib.Path(marker[1])
            ours = path.name.startswith("cudnn") and path.parent.resolve() == folder.resolve()
        elif ours and macro:
            macros.append((macro[1], macro[2], macro[3].strip()))
        elif ours and not line.startswith("#"):
            declarations.append(line)
    return "\n".join(declarations), macros


def run_program(source, flags):
    """Compiles and runs a C++ program; what it prints."""
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "probe")
        run([CXX, "-std=c++17", "-x", "c++", *flags, "-o", program, "-"], source)
        return run([program])


def compiles_alone(folder, header, standard, flags):
    """Raises CompileError unless a file that includes nothing but this header compiles without a warning."""
    language = "c++" if "++" in standard else "c"
    run([CXX, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
         "-I", str(folder), *flags, "-"], f"#include <{header}>\nint nothing_else;\n")
