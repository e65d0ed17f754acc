#!/usr/bin/env python3
"""What the cuDNN headers promise to a compiled program, as plain facts.

  abi.py lock FOLDER                  writes the facts of our headers to abi.lock, and the linker's lists of functions
  abi.py check FOLDER                 compares our headers with both; needs nothing of NVIDIA's
  abi.py compare FOLDER [NVIDIA...]   every fact of NVIDIA's headers holds in ours; without folders: those installed here
  abi.py compile FOLDER               every header compiles alone, as C and C++, with and without CUDA's headers

A fact is a line: what it is about, a colon, its value. Names are read from the preprocessed text (declarations.py); all
values come from a generated program, so the compiler has the last word. CXX names the compiler.
"""
import pathlib
import re
import sys

import compiler
import declarations

HERE = pathlib.Path(__file__).resolve().parent
LOCK = HERE / "abi.lock"
CAPI = HERE.parent.parent / "src" / "capi"
# The sub-libraries of cuDNN: a function belongs to the first whose headers declare it. Those without headers export nothing.
SUBLIBRARIES = {"graph": ["cudnn_graph.h"], "ops": ["cudnn_ops.h"], "cnn": ["cudnn_cnn.h"], "adv": ["cudnn_adv.h"],
                "ext": ["cudnn_subquadratic_ops.h", "cudnn_gnn_ops.h"], "engines_precompiled": [],
                "engines_runtime_compiled": [], "engines_tensor_ir": [], "heuristic": []}
RNN_V7 = "-DTESSERA_CUDNN_RNN_V7"  # the calls that version 9 dropped are part of our surface
WARN = "-DCUDNN_WARN_DEPRECATED"
# What may grow from one version to the next.
GROWS = re.compile(r"(enumerator|macro) CUDNN_\w*?(MAJOR|MINOR|PATCH|PATCHLEVEL|VERSION|NUMBER|COUNTS?)$")

PROBE = r"""
#include <cudnn.h>
#include <cxxabi.h>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <typeinfo>
template <typename T>
struct Of {};  // T may be incomplete
template <typename T>
std::string name() {
  char* text = abi::__cxa_demangle(typeid(Of<T>).name(), nullptr, nullptr, nullptr);
  std::string result = text + 3;
  std::free(text);
  result.pop_back();
  return result;
}
template <typename T>
void macro(const char* about, T value) {
  if (std::is_floating_point<T>::value)
    std::printf("macro %s: %s %g\n", about, name<T>().c_str(), double(value));
  else
    std::printf("macro %s: %s %lld\n", about, name<T>().c_str(), static_cast<long long>(value));
}
int main() {
"""


def probe_lines(names, macros):
    """The statements of the generated program; each prints one fact."""
    for enum in names.enums:
        yield f'std::printf("enum {enum}: %s\\n", name<std::underlying_type<{enum}>::type>().c_str());'
    for enumerator in names.enumerators:
        yield (f'std::printf("enumerator {enumerator}: %s %lld\\n", name<decltype({enumerator})>().c_str(), '
               f"static_cast<long long>({enumerator}));")
    for struct, fields in names.structs.items():
        yield f'std::printf("struct {struct}: size %zu align %zu\\n", sizeof({struct}), alignof({struct}));'
        for field in fields:
            yield (f'std::printf("field {struct}.{field}: offset %zu %s\\n", offsetof({struct}, {field}), '
                   f"name<decltype({struct}::{field})>().c_str());")
    for kind in names.types:
        yield f'std::printf("type {kind}: %s\\n", name<{kind}>().c_str());'
    for function in names.functions:
        yield f'std::printf("function {function}: %s\\n", name<decltype({function})>().c_str());'
    for macro, parameters, body in macros:
        if parameters is not None:  # a function of integers, shown by an example
            call = f"{macro}({', '.join(['2003', '7'][:parameters.count(',') + 1])})"
            yield f'macro("{call}", {call});'
        elif body:
            yield f'macro("{macro}", {macro});'
        else:
            yield f'std::puts("macro {macro}: empty");'


def public_headers(folder):
    found = sorted(path.name for path in folder.glob("cudnn*.h") if re.fullmatch(r"cudnn(_[a-z]+)*(_v\d)?\.h", path.name))
    return [name for name in found if not name.startswith("cudnn_frontend")]


def header_facts(folder, flags):
    """Which headers there are, and which of them alone declare a function."""
    seen = {}
    for header in public_headers(folder):
        text, _ = compiler.preprocess(folder, header, flags)
        seen[header] = set(declarations.read(text).functions)
    facts = {f"header {header}": "exists" for header in seen}
    for header in [name for name in seen if name.endswith("_v9.h")]:
        plain = header.replace("_v9", "")
        facts[f"header {header}"] = f"as {plain}" if seen.pop(header) == seen.get(plain) else f"unlike {plain}"
    for name in set().union(*seen.values()):
        facts[f"declared {name}"] = " ".join(header for header in seen if name in seen[header])
    return facts


def facts_of(folder, cuda):
    """All facts of the headers in a folder, as a dictionary from what each is about to its value."""
    flags = ["-I", str(folder), RNN_V7, *cuda]
    text, _ = compiler.preprocess(folder, "cudnn.h", [WARN, *flags])
    _, macros = compiler.preprocess(folder, "cudnn.h", flags)
    names = declarations.read(text)
    if not names.functions:
        raise ValueError(f"{folder}/cudnn.h declares no functions")
    program = PROBE + "\n".join(probe_lines(names, macros)) + "\n}\n"
    facts = dict(line.split(": ", 1) for line in compiler.run_program(program, flags).splitlines())
    facts.update({f"deprecated {name}": "yes" for name in names.deprecated})
    facts.update(header_facts(folder, flags))
    return facts


def to_text(facts):
    return "".join(sorted(f"{about}: {value}\n" for about, value in facts.items()))


def from_text(text):
    return dict(line.split(": ", 1) for line in text.splitlines())


def functions(facts):
    return sorted(about.split()[1] for about in facts if about.startswith("function "))


def map_text(library, names):
    """The linker's version script: these functions and nothing else leave the library."""
    exported = "".join(f"    {name};\n" for name in names)
    exported = f"  global:\n{exported}" if names else ""
    return f"# Written by tests/capi/abi.py lock.\n{library}.so.9 {{\n{exported}  local:\n    *;\n}};\n"


def sublibrary(facts, name):
    declared = facts[f"declared {name}"].split()
    return next(library for library, headers in SUBLIBRARIES.items() if set(headers) & set(declared))


def maps(facts):
    """The version scripts of all libraries, as a dictionary from files to texts."""
    names = functions(facts)
    texts = {CAPI / "cudnn.map": map_text("libcudnn", names)}
    for library in SUBLIBRARIES:
        own = [name for name in names if sublibrary(facts, name) == library]
        texts[CAPI / "sublibraries" / f"{library}.map"] = map_text(f"libcudnn_{library}", own)
    return texts


def differences(wanted, given):
    """One line for each fact that is missing, new or different."""
    for about in sorted(wanted.keys() | given.keys()):
        old, new = wanted.get(about), given.get(about)
        if new is None:
            yield f"gone: {about}: {old}"
        elif old is None:
            yield f"new: {about}: {new}"
        elif old != new:
            yield f"changed: {about}: {old} is now {new}"


def lock(folder):
    facts = facts_of(folder, compiler.without_cuda("c++"))
    LOCK.write_text(to_text(facts))
    for path, text in maps(facts).items():
        path.write_text(text)
    print(f"{len(facts)} facts, {len(functions(facts))} functions")
    return 0


def check(folder):
    """The headers against the lock, with our declarations of CUDA's types and, where there are any, with CUDA's own."""
    wanted = from_text(LOCK.read_text())
    problems = []
    modes = {"without CUDA": compiler.without_cuda("c++")}
    if compiler.cuda_folder():
        modes["with CUDA"] = compiler.with_cuda()
    for mode, flags in modes.items():
        found = list(differences(wanted, facts_of(folder, flags)))
        problems += [f"{mode}: {line}" for line in found]
        print(f"{mode}: {len(wanted)} facts, {len(found)} differ")
    for path, text in maps(wanted).items():
        if path.read_text() != text:
            problems.append(f"{path} does not name the functions of {LOCK.name}")
    if problems:
        print("\n".join(problems))
        print("if the change is meant: tests/capi/abi.py lock include/cudnn")
    return 1 if problems else 0


def version(facts):
    return int(facts["macro CUDNN_VERSION"].split()[-1])


def holds(about, theirs, ours, theirs_is_older):
    """Whether our value of a fact serves a program compiled with theirs."""
    if ours == theirs:
        return True
    if about.startswith("declared "):
        return set(theirs.split()) <= set(ours.split())
    return theirs_is_older and GROWS.match(about) and int(theirs.split()[-1]) <= int(ours.split()[-1])


def compare_with(ours, folder):
    theirs = facts_of(folder, compiler.with_cuda())
    older, newer = version(theirs) < version(ours), version(theirs) > version(ours)
    missing = sorted(about for about in theirs if about not in ours)
    wrong = sorted(about for about in theirs if about in ours and not holds(about, theirs[about], ours[about], older))
    added = sorted(about for about in ours if about not in theirs)
    print(f"{folder}: version {version(theirs)}, {len(theirs)} facts; {len(missing)} missing, {len(wrong)} different; "
          f"ours has {len(added)} more")
    for about in missing:
        print(f"  missing: {about}: {theirs[about]}")
    for about in wrong:
        print(f"  different: {about}: theirs {theirs[about]}, ours {ours[about]}")
    for about in added:
        print(f"  ours only: {about}: {ours[about]}")
    # What a newer version added is no fault of ours.
    return bool(wrong) or bool(missing) and not newer


def installed():
    """Folders with NVIDIA's headers on this machine; links to the same files count once."""
    candidates = compiler.search_folders("c++") + ["/usr/local/cuda/include"]
    candidates += [f"{root}/nvidia/cudnn/include" for root in sys.path]  # Python's packages
    found = {}
    for folder in map(pathlib.Path, candidates):
        header = folder / "cudnn.h"
        if header.exists():
            found.setdefault(header.resolve(), folder)
    return list(found.values())


def compare(folder, *others):
    if not compiler.cuda_folder():
        print("no CUDA headers here, which NVIDIA's need: nothing compared")
        return 0
    others = [pathlib.Path(other) for other in others] or installed()
    print(f"NVIDIA's headers: {', '.join(map(str, others)) or 'none found'}")
    ours = facts_of(folder, compiler.with_cuda())
    return 1 if sum([compare_with(ours, other) for other in others]) else 0


def compile_alone(folder):
    headers = sorted(path.name for path in folder.glob("*.h"))
    runs = [(header, standard, compiler.without_cuda(language)) for header in headers
            for standard, language in (("c99", "c"), ("c++11", "c++"))]
    for standard in ("c99", "c11", "c17", "c++11", "c++14", "c++17", "c++20"):
        language = "c++" if "++" in standard else "c"
        runs.append(("cudnn.h", standard, [RNN_V7, *compiler.without_cuda(language)]))
        runs.append(("cudnn.h", standard, [RNN_V7, *compiler.with_cuda()]))
    for header, standard, flags in runs:
        compiler.compiles_alone(folder, header, standard, flags)
    print(f"{len(headers)} headers compile alone, {len(runs)} compilations")
    return 0


def main(arguments):
    commands = {"lock": lock, "check": check, "compare": compare, "compile": compile_alone}
    if len(arguments) < 2 or arguments[0] not in commands:
        sys.exit(__doc__)
    try:
        return commands[arguments[0]](pathlib.Path(arguments[1]), *arguments[2:])
    except (compiler.CompileError, ValueError) as error:
        return f"{arguments[0]}: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
