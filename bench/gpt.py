#!/usr/bin/env python3
"""Training of examples/gpt.cpp next to the same model in PyTorch: the best of alternating runs, as a row of the benchmark results
whose milliseconds are for 1000 tokens.

    bench/gpt.py --build build --python python3 -- --layers 4 --width 256 --heads 4 --context 128 --steps 20
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tessera(build, flags):
    out = subprocess.run([str(build / "example_gpt"), *flags, "--expect", "100"], cwd=ROOT, capture_output=True, text=True)
    speeds = re.findall(r"(\d+) tokens/s$", out.stdout, re.M)
    return float(speeds[-1]) if speeds else sys.exit(f"example_gpt failed:\n{out.stdout}{out.stderr}")


def torch(python, flags):
    out = subprocess.run([python, str(ROOT / "scripts" / "gpt_torch.py"), *flags], capture_output=True, text=True)
    return json.loads(out.stdout) if out.returncode == 0 else None


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def commit():
    out = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return out.stdout.strip() or "unknown"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    p.add_argument("--python", default="python3", help="a Python that may have PyTorch")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("flags", nargs="*", help="of both programs, behind --")
    a = p.parse_args()
    ours, peers = [], []
    for _ in range(a.runs):
        ours.append(tessera(a.build, a.flags))
        if (peer := torch(a.python, a.flags)) is not None:
            peers.append(peer)
    best = max(ours)
    row = {"suite": "models", "case": " ".join(["gpt", *a.flags]), "op": "gpt training", "dtype": "f32", "engine": "plan",
           "ms": 1e6 / best, "peers": {}, "peer": "torch", "ratio": None, "limit_fraction": None,
           "tokens_per_second": best, "cpu": processor(), "commit": commit()}
    if peers:
        peer = max(p["tokens_per_second"] for p in peers)
        row |= {"peers": {"torch": 1e6 / peer}, "ratio": best / peer, "torch": peers[0]["torch"]}
    print(json.dumps(row))


main()
