#!/usr/bin/env python3
"""PyTorch beside the rows of `tessera bench --device cuda`: reads a .jsonl file, measures each row's graph in PyTorch
eager and with torch.compile, and adds `torch` and `inductor` to the row's peers. Like there, the work is captured into
a CUDA graph, once for each of several sets of buffers, so that every execution reads from memory. A row that PyTorch
cannot run says why in `torch_reason`."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import torch

from torch_peer import run_graph, tensor

MOVED = 4 * 60 << 20  # bytes until a set of buffers comes round again: several times the cache


def read_graph(program, text):
    done = subprocess.run([program, "dump", "--json", text], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return json.loads(done.stdout)


def buffer_sets(graph):
    """Inputs, as many times as it takes."""
    first = [tensor(t) for t in graph["tensors"]]
    moved = sum(x.numel() * x.element_size() for x in first)
    count = min(64, max(2, -(-MOVED // max(moved, 1))))
    return [first] + [[tensor(t) for t in graph["tensors"]] for _ in range(count - 1)]


def capture(function, sets):
    """A CUDA graph of the function on every set. Results are kept, so that each set has its own."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function(sets[0])
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [function(s) for s in sets]
    return graph, kept


def seconds_of(graph, parts, seconds):
    """Median of one part."""
    graph.replay()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1e-3 / parts)
    return statistics.median(times)


def ways_of(graph):
    names = [t["name"] for t in graph["tensors"]]

    def eager(tensors):
        return run_graph(graph, dict(zip(names, tensors)))

    torch._dynamo.reset()
    return {"torch": eager, "inductor": torch.compile(eager, dynamic=False)}


def compile_rows(rows, part, parts, program):
    """Fills the compiler's cache on disk with every `parts`-th row; a failure will show when the row is measured."""
    for row in rows[part::parts]:
        try:
            graph = read_graph(program, row["case"])
            ways_of(graph)["inductor"]([tensor(t) for t in graph["tensors"]])
            torch.cuda.synchronize()
        except Exception as e:
            print(f"{row['case'][:80]}: {type(e).__name__}", flush=True)
        torch.cuda.empty_cache()


def measure(graph, seconds):
    """Milliseconds by name, and reasons by name."""
    ways = ways_of(graph)
    times, reasons = {}, {}
    sets = buffer_sets(graph)
    for name, function in ways.items():
        try:
            captured, kept = capture(function, sets)
            times[name] = seconds_of(captured, len(sets), seconds) * 1e3
            del captured, kept
        except Exception as e:  # any failure is a reason, not the end of the run
            reasons[name] = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:300]
            torch.cuda.synchronize()
    return times, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", help="the .jsonl file of `tessera bench --device cuda --json`; rewritten")
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each measurement")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which the rest is not measured")
    parser.add_argument("--compile", metavar="PART/PARTS", help="only compile a part of the rows, for several processes")
    a = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.set_default_device("cuda")
    path = pathlib.Path(a.rows)
    rows = [json.loads(line) for line in path.read_text().splitlines() if line]
    if a.compile:
        return compile_rows(rows, *map(int, a.compile.split("/")), a.tessera)
    measured, begin = 0, time.perf_counter()
    for row in rows:
        try:
            if time.perf_counter() - begin > a.limit:
                raise TimeoutError("not measured, the time was up")
            times, reasons = measure(read_graph(a.tessera, row["case"]), a.seconds)
        except Exception as e:
            times, reasons = {}, {"torch": f"{type(e).__name__}: {e}"[:300]}
        row["peers"].update(times)
        row["torch_version"] = torch.__version__
        row["torch_reason"] = reasons or None
        measured += bool(times)
        print(row["case"][:100], {k: f"{v:.4f} ms" for k, v in times.items()}, reasons or "", flush=True)
        torch.cuda.empty_cache()
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.replace(part, path)
    print(f"{measured} of {len(rows)} rows measured with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
