#!/usr/bin/env python3
"""Runs every example of the documentation: ```tessera blocks, `build/tessera` lines of ```sh blocks, ```cpp programs,
```c programs that are clients of cuDNN's interface, ```python programs."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, where):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, shell=isinstance(command, str), timeout=300)
    if done.returncode != 0:
        print(f"{where}: failed\n{command}\n{done.stdout}{done.stderr}")
        sys.exit(1)


def has_nvrtc(build):
    report = subprocess.run([str(build / "tessera"), "doctor", "--json"], cwd=ROOT, capture_output=True, text=True)
    return json.loads(report.stdout)["nvrtc"]["found"]


def lacking(python, program):
    """Frameworks that a program imports and that are not installed."""
    named = {m for m in ("torch", "jax") if re.search(rf"^import (tessera\.)?{m}\b", program, re.M)}
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    return {m for m in named if subprocess.run([python, "-c", code, m]).returncode != 0}


def main():
    build = pathlib.Path(sys.argv[1])
    counts = {"tessera": 0, "sh": 0, "cpp": 0, "c": 0, "python": 0}
    skipped, nvrtc, missing = 0, has_nvrtc(build), []
    package = bool(list(build.glob("python/tessera/_tessera*.so")))
    if not package:
        print("examples in Python are not run: the package is not built")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        for match in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.S | re.M):
            kind, body = match.groups()
            where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
            if kind == "tessera":
                run([str(build / "tessera"), "run", body, "--check"], where)
                counts[kind] += 1
            elif kind == "sh":
                for line in re.sub(r"\\\n", " ", body).splitlines():
                    # Kernels for GPUs need their compiler.
                    if re.search(r"--device (h|a|b|rtx)\d", line) and not nvrtc:
                        skipped += 1
                    elif line.startswith("build/tessera"):
                        run(line, where)
                        counts[kind] += 1
            elif kind == "python" and "import tessera" in body:
                if package and lacking(build / "python/env/bin/python", body):
                    missing.append(where)
                    continue
                if package:
                    with tempfile.TemporaryDirectory() as folder:
                        source = pathlib.Path(folder) / "example.py"
                        source.write_text(body)
                        run(f"PYTHONPATH={build}/python {build}/python/env/bin/python {source}", where)
                counts[kind] += 1
            elif kind == "c":
                with tempfile.TemporaryDirectory() as folder:
                    source, program = f"{folder}/example.c", f"{folder}/example"
                    pathlib.Path(source).write_text(body)
                    run(["cc", source, "-Iinclude/cudnn", f"-L{build}", "-lcudnn", "-o", program], where)
                    run(f"TESSERA_DEVICE=cpu LD_LIBRARY_PATH={build} {program}", where)
                counts[kind] += 1
            elif kind == "cpp" and "int main" in body:
                with tempfile.TemporaryDirectory() as folder:
                    source = pathlib.Path(folder) / "example.cpp"
                    source.write_text(body)
                    program = str(pathlib.Path(folder) / "example")
                    libraries = [str(build / "libtessera.a"), *(build / "link_flags").read_text().split()]
                    run(["g++", "-std=c++20", "-Iinclude", str(source), *libraries, "-o", program], where)
                    run([program], where)
                    counts[kind] += 1
    print(", ".join(f"{n} {kind}" for kind, n in counts.items()), f"examples ran, {skipped} skipped for want of NVRTC")
    if missing:
        print("not run for want of PyTorch or JAX:", ", ".join(missing))
    if min(counts.values()) == 0:
        sys.exit("a kind of example is missing")


main()
