#!/usr/bin/env python3
"""Each layer may include only itself and the layers before it; public headers include nothing of src."""
import pathlib
import re
import sys

LAYERS = ["base", "graph", "planner", "runtime", "engines", "api", "capi", "harness"]
EXTERNAL = {"CLI", "nlohmann", "gtest", "benchmark"}


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    bad = []
    for path in sorted(root.glob("src/**/*.[chi]*")):
        layer = path.relative_to(root / "src").parts[0]
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            target = name.split("/")[0]
            if target in LAYERS and LAYERS.index(target) > LAYERS.index(layer):
                bad.append(f"{path.relative_to(root)}: {layer} must not include {name}")
            if (layer == "cudart") != (target == "cudart"):
                bad.append(f"{path.relative_to(root)}: the stand-in of CUDA's runtime stands alone; {name}")
        for name in re.findall(r"#include <([^>]+)>", path.read_text()):
            if name.split("/")[0] in EXTERNAL:
                bad.append(f"{path.relative_to(root)}: the library must not include <{name}>")
    for path in sorted(root.glob("include/tessera/*.hpp")):
        for name in re.findall(r'#include ["<]([^">]+)[">]', path.read_text()):
            if "/" in name and not name.startswith("tessera/"):
                bad.append(f"{path.relative_to(root)}: public headers must not include {name}")
    for path in sorted(root.glob("src/**/*.[chi]*")):
        if path.relative_to(root / "src").parts[0] != "capi" and re.search(r"\bcudnn", path.read_text(), re.I):
            bad.append(f"{path.relative_to(root)}: only src/capi may say cudnn")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
