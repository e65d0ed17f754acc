#!/usr/bin/env python3
"""Compares the declarations of the stand-in (src/cudart) with NVIDIA's headers, where there are any: sizes of
arguments and results of functions, sizes of structs and offsets of their members, values of enumerators.

Usage: abi.py [FOLDER...]   folders of CUDA headers; without any, the one that the compiler or CUDA_HOME knows.
Exit code 77 if there are none."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/capi"))
import compiler  # noqa: E402

# Of structs that NVIDIA has under the same name; members that the stand-in names.
STRUCTS = ["dim3", "cudaPos", "cudaExtent", "cudaPitchedPtr", "cudaMemcpy3DParms", "cudaMemcpy3DPeerParms",
           "cudaMemsetParams", "cudaHostNodeParams", "cudaPointerAttributes", "cudaMemLocation", "cudaMemAccessDesc",
           "cudaMemPoolProps", "cudaMemcpyNodeParams", "cudaMemAllocNodeParams", "cudaGraphNodeParams",
           "cudaGraphEdgeData", "cudaGraphExecUpdateResultInfo", "cudaGraphInstantiateParams",
           "cudaLaunchAttributeValue", "cudaLaunchConfig_t", "cudaFuncAttributes", "cudaUUID_t", "cudaDeviceProp"]
# Ours alone: names for what stands in a union, and for what only newer headers name.
OURS = {("cudaGraphNodeParams", "event"), ("cudaGraphNodeParams", "free_dptr"), ("cudaDeviceProp", "reserved")}

PROBE = """
#include <cstddef>
#include <cstdio>
#include <type_traits>
template <class T> constexpr int kind() {
  if constexpr (std::is_void_v<T>) return 0;
  else return (int)sizeof(T) + (std::is_floating_point_v<T> ? 1000 : 0);
}
template <class R, class... A> void show(const char* name, R (*)(A...)) {
  std::printf("%s: %d <-", name, kind<R>());
  ((std::printf(" %d", kind<A>())), ...);
  std::printf("\\n");
}
template <class R, class... A> void show(const char* name, R (*f)(A...) noexcept) { show(name, (R(*)(A...))f); }
int main() {
"""


def body_of(text, struct):
    match = re.search(r"\b(?:struct|union) " + struct + r" \{(.*?)\n\};", text, re.S)
    return match[1]


def members(text, struct, version):
    """Names of the members of a struct of ours; those of nested unions too."""
    found, keep = [], True
    for line in body_of(text, struct).splitlines():
        condition = re.match(r"#if TESSERA_CUDART (<|>=) 13", line.strip())
        if condition:
            keep = (version < 13) == (condition[1] == "<")
        elif line.strip() == "#endif":
            keep = True
        elif keep and ";" in line and "}" not in line:
            declared = re.sub(r"//.*", "", line).strip().rstrip(";")
            parts = declared.split(",")
            found += [re.sub(r"\[.*|=.*", "", p).split()[-1].lstrip("*") for p in parts]
    return [m for m in found if (struct, m) not in OURS]


def functions(text, version):
    """Names of the functions that a program for this version knows."""
    older = text.split("#if TESSERA_CUDART >= 13")
    newer, rest = older[1].split("#else")
    text = older[0] + (newer if version >= 13 else rest)
    text = re.sub(r"//.*", "", text)
    return sorted(set(re.findall(r"\b(cuda[A-Z]\w*)\(", text)))


def facts(includes, names, types, headers, flags):
    lines = [f'  show("{n}", {n});' for n in names]
    for struct, its in headers:
        lines.append(f'  std::printf("{struct}: %zu\\n", sizeof({struct}));')
        lines += [f'  std::printf("{struct}.{m} at %zu\\n", offsetof({struct}, {m}));' for m in its]
    lines += [f'  std::printf("{e} = %d\\n", (int){e});' for e in types]
    source = includes + PROBE + "\n".join(lines) + "\n  return 0;\n}\n"
    # Only addresses are taken, which the linker need not know.
    return compiler.run_program(source, [*flags, "-Wl,--unresolved-symbols=ignore-all", "-Wno-invalid-offsetof"])


def compare(folder):
    probe = compiler.run([compiler.CXX, "-x", "c++", "-E", "-P", "-I", folder, "-"],
                         "#include <cuda_runtime_api.h>\nversion CUDART_VERSION\n")
    version = int(re.search(r"version (\d+)", probe)[1]) // 1000
    if version not in (12, 13):
        return [f"{folder}: CUDA {version} is not 12 or 13"]
    types = (ROOT / "src/cudart/types.hpp").read_text()
    calls = (ROOT / "src/cudart/cudart.hpp").read_text()
    # Names that headers give by macros, or declare only for their own use.
    hidden = {"cudaGetDeviceProperties", "cudaStreamGetCaptureInfo"} if version == 12 else set()
    declared = set(re.findall(r"\b(cuda[A-Z]\w*)\s*\(", probe))
    names = [n for n in functions(calls, version) if n in declared and n not in hidden]
    enumerators = re.findall(r"\b(cuda\w+) = -?\d+", types)
    structs = [(s, members(types, s, version)) for s in STRUCTS]
    flags = ["-I", str(ROOT / "src"), f"-DTESSERA_CUDART={version}"]
    ours = facts('#include "cudart/cudart.hpp"\n', names, enumerators, structs, flags).splitlines()
    theirs = facts("#include <cuda_runtime_api.h>\n#include <cuda_profiler_api.h>\n", names, enumerators, structs,
                   ["-I", folder]).splitlines()
    print(f"{folder}: CUDA {version}, {len(names)} functions, {len(structs)} structs, {len(enumerators)} values")
    return [f"{folder}: ours '{a}', NVIDIA's '{b}'" for a, b in zip(ours, theirs) if a != b]


def check_exports():
    """Whatever is declared is exported, and what programs commonly name."""
    exported = set(re.findall(r"(\w+);", (ROOT / "src/cudart/exports.map.in").read_text()))
    calls = re.sub(r"//.*", "", (ROOT / "src/cudart/cudart.hpp").read_text())
    wanted = set(re.findall(r"\b((?:__)?cuda[A-Z]\w*|tessera\w+)\(", calls))
    wanted |= set((ROOT / "tests/cudart/functions.txt").read_text().split())
    return [f"{name} is not in src/cudart/exports.map.in" for name in sorted(wanted - exported)]


def main():
    wrong = check_exports()
    folders = sys.argv[1:] or [f for f in [compiler.cuda_folder()] if f]
    for folder in folders:
        wrong += compare(folder)
    print("\n".join(wrong))
    if wrong:
        return 1
    return 0 if folders else 77


sys.exit(main())
