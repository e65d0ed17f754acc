#!/usr/bin/env python3
"""What calls from Python cost: JSON lines with microseconds. Needs the package on the path; PyTorch is measured too where
it is installed. `make bench` runs it."""
import json
import pathlib
import subprocess
import sys
import time

import numpy

import tessera


def fastest(call, calls=1000, rounds=40):
    """Microseconds of a call: the best of several rounds, so that other work on the machine counts little."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return round(best * 1e6, 3)


def where():
    """The processor and the commit, as in the rows of other benchmarks."""
    models = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True,
                            cwd=pathlib.Path(__file__).parent)
    return {"cpu": models[0] if models else "", "commit": commit.stdout.strip()}


def report(case, **values):
    print(json.dumps({"suite": "python", "case": case, **values, **WHERE}), flush=True)


def import_ms():
    code = "import time; t = time.perf_counter(); import tessera; print(1e3 * (time.perf_counter() - t))"
    return min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
               for _ in range(10))


class Lender:
    """An array that can be reached through __dlpack__ alone."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def main():
    tessera.set_thread_count(1)
    report("import", ms=round(import_ms(), 1), goal=50)
    g = tessera.Graph()
    x, s, b = (g.input(name, "f32", [4, 16]) for name in "xsb")
    g.output(tessera.relu(x * s + b), "y")
    plan = g.plan()
    arrays = [numpy.ones((4, 16), "f") for _ in range(4)]
    *inputs, y = arrays
    bound = plan.bind(*inputs, y=y)
    cpp = round(min(bound._seconds(1000) for _ in range(40)) * 1e6, 3)
    report("call from C++", us=cpp)
    us = fastest(bound)
    report("arrays bound once", us=us, above_cpp=round(us - cpp, 3), goal=3)
    cases = {"four arrays of numpy": arrays, "four arrays by __dlpack__": [Lender(a) for a in arrays]}
    try:
        import torch
        cases["four tensors of PyTorch"] = [torch.ones(4, 16) for _ in range(4)]
    except ImportError:
        pass
    for case, (*given, out) in cases.items():
        us = fastest(lambda: plan(*given, y=out))
        report(case, us=us, above_cpp=round(us - cpp, 3), goal=8)
    report("three arrays of numpy, the output allocated", us=fastest(lambda: plan(*inputs)))
    fused = tessera.fuse(lambda x, s, b: tessera.relu(x * s + b))
    report("@fuse", us=fastest(lambda: fused(*inputs)))
    if "torch" in sys.modules:
        tx, ts, tb, _ = cases["four tensors of PyTorch"]
        report("one eager operation of PyTorch", us=fastest(lambda: torch.mul(tx, ts)))
        report("the same three eager operations of PyTorch", us=fastest(lambda: torch.relu(tx * ts + tb)))


WHERE = where()
main()
