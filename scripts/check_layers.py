#!/usr/bin/env python3
"""Each layer may include only itself and the layers before it, each part of a layer only itself and the shared parts
before it; public headers include nothing of src."""
import pathlib
import re
import sys

# Folders of src, each below the next. `device` is what kernels are made of, for hosts and GPUs.
LAYERS = ["base", "graph", "device", "planner", "runtime", "engines", "api", "capi", "harness"]
# Stands alone: the stand-in of CUDA's runtime.
APART = {"cudart"}
# What engines share, each below the next. Every other folder of engines is a family, which may include these, and of
# the other families none.
SHARED = ["attention", "rnn", "reference", "cpu/vector", "cpu/program", "cpu/product",
          "cuda/toolkit", "cuda/products", "cuda/scores"]
EXTERNAL = {"CLI", "nlohmann", "gtest", "benchmark"}


def part_of(path):
    """The part of engines that a path below it belongs to: cpu/gemm, copies; None for files of engines itself."""
    names = path.split("/")[:-1]
    return "/".join(names[:2] if names[:1] in (["cpu"], ["cuda"]) else names[:1]) or None


def check_include(path, name):
    parts = path.split("/")
    layer, target = parts[0], name.split("/")[0]
    if layer not in LAYERS and layer not in APART:
        return f"folder {layer} has no place in LAYERS"
    if "/" not in name:
        return None
    if layer in APART or target in APART:
        return None if layer == target else f"the stand-in of CUDA's runtime stands alone; {name}"
    if target in LAYERS and LAYERS.index(target) > LAYERS.index(layer):
        return f"{layer} must not include {name}"
    if layer != "engines" or target != "engines":
        return None
    mine, other = part_of(path[len("engines/"):]), part_of(name[len("engines/"):])
    if mine is None or mine == other:  # the list knows all
        return None
    if other not in SHARED:
        return f"family {mine} must not include {name}"
    if mine in SHARED and SHARED.index(other) > SHARED.index(mine):
        return f"{mine} must not include {name}"
    return None


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    bad = []
    for path in sorted(p for p in root.glob("src/**/*") if p.suffix in {".cpp", ".hpp", ".h", ".cuh", ".inc"}):
        text = path.read_text()
        place = path.relative_to(root)
        for name in re.findall(r'#include "([^"]+)"', text):
            if why := check_include(str(path.relative_to(root / "src")), name):
                bad.append(f"{place}: {why}")
        for name in re.findall(r"#include <([^>]+)>", text):
            if name.split("/")[0] in EXTERNAL:
                bad.append(f"{place}: the library must not include <{name}>")
        if place.parts[1] != "capi" and re.search(r"\bcudnn", text, re.I):
            bad.append(f"{place}: only src/capi may say cudnn")
    for folder in SHARED:
        if not (root / "src/engines" / folder).is_dir():
            bad.append(f"scripts/check_layers.py: there is no src/engines/{folder}")
    for path in sorted(root.glob("include/tessera/*.hpp")):
        for name in re.findall(r'#include ["<]([^">]+)[">]', path.read_text()):
            if "/" in name and not name.startswith("tessera/"):
                bad.append(f"{path.relative_to(root)}: public headers must not include {name}")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
