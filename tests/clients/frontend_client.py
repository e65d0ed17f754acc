#!/usr/bin/env python3
"""The public package nvidia-cudnn-frontend as a client of the library: graphs of every kind are built with each mode of
the heuristics, every plan is executed at its index, the fastest is saved, loaded and executed again, and all results are
compared with numpy in f64. Usage: LD_LIBRARY_PATH=build frontend_client.py [--json FILE] [PART_OF_A_NAME..]"""
import argparse
import importlib
import json
import os
import pathlib
import sys
import time
import traceback

import cudnn

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
tools = importlib.import_module("frontend.tools")
for file in sorted((HERE / "frontend").glob("*.py")):  # cases and checks list themselves
    importlib.import_module(f"frontend.{file.stem}")


def loaded_library():
    files = {line.split()[-1] for line in open("/proc/self/maps") if "/libcudnn" in line}
    assert len(files) == 1, f"one libcudnn should be loaded, not {sorted(files)}"
    return pathlib.Path(files.pop())


def wanted_library():
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if (pathlib.Path(folder) / "libcudnn.so.9").exists():
            return (pathlib.Path(folder) / "libcudnn.so.9").resolve()
    sys.exit("LD_LIBRARY_PATH names no folder with libcudnn.so.9")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("parts", nargs="*", metavar="PART_OF_A_NAME")
    arguments.add_argument("--json", help="where to write how it ended")
    arguments = arguments.parse_args()
    wanted, handle = wanted_library(), cudnn.create_handle()
    assert loaded_library() == wanted, f"{loaded_library()} was loaded instead of {wanted}"
    runtime = "CUDNN_FRONTEND_CUDART_LIB_NAME" in os.environ
    print(f"cudnn-frontend {cudnn.__version__}, {wanted}, version {cudnn.backend_version()}, "
          f"{'with' if runtime else 'without'} a CUDA run time")
    parts, failed, skipped, count, plans_run, start = arguments.parts, [], {}, 0, 0, time.time()
    todo = [(name, lambda n=name, f=fill, c=chosen: tools.run_case(handle, n, f, c, runtime)) for name, fill, chosen in tools.CASES
            if runtime or not chosen.get("runtime")]
    todo += [(name, lambda f=f: f(handle)) for name, f in tools.CHECKS]
    for name, run in todo:
        if parts and not any(p in name for p in parts):
            continue
        count += 1
        try:
            plans_run += run() or 0
        except tools.Skipped as why:
            skipped[name] = str(why)
        except Exception:
            failed.append(name)
            print(f"FAILED {name}\n{traceback.format_exc(limit=-3)}", flush=True)
    passed = count - len(failed) - len(skipped)
    print(f"{passed} of {count} passed, {plans_run} plans, {time.time() - start:.0f} s")
    for name in failed:
        print(f"failed: {name}")
    for name, why in skipped.items():
        print(f"skipped: {name}: {why}")
    if arguments.json:
        record = {"frontend": cudnn.__version__, "library": cudnn.backend_version(), "passed": passed,
                  "plans": plans_run, "failed": failed, "skipped": skipped}
        pathlib.Path(arguments.json).write_text(json.dumps(record, indent=2) + "\n")
    return int(bool(failed) or not count)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the package complains about its own objects when Python ends
