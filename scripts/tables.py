#!/usr/bin/env python3
"""Writes the tables of the documentation from the committed benchmark results; with --check only compares."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def sizes(case):
    """What tells a case from its neighbours: the types and sizes of its inputs."""
    found = re.findall(r"= input (\w+\[[\d,]+\])", case)
    return " ".join(found[:2])


def rows(name):
    for path in [ROOT / "bench" / "results" / "cpu" / f"{name}.jsonl"]:
        if path.exists():
            for line in path.read_text().splitlines():
                yield json.loads(line)


def number(v):
    return "" if v is None else f"{v:.3g}"


def table(name):
    lines = ["| operation | inputs | engine | ms | peer | ratio | limit |", "|---|---|---|---:|---|---:|---:|"]
    about = ""
    for r in rows(name):
        if r["suite"] not in (name, "models"):
            continue
        peers = ", ".join(f"{k} {number(v)}" for k, v in r["peers"].items())
        limit = "" if r["limit_fraction"] is None else f"{100 * r['limit_fraction']:.0f}%"
        ratio = "" if r["ratio"] is None else f"{r['ratio']:.2f} of {r['peer']}"
        op = r["op"] if r["suite"] == name else r["case"]
        lines.append(f"| {op} | {sizes(r['case'])} | {r['engine']} | {number(r['ms'])} | {peers} | {ratio} | {limit} |")
        about = f"\nProcessor: {r['cpu']}, {r.get('threads', '?')} threads.\n"
    return "\n".join(lines) + "\n" + about if len(lines) > 2 else "No results yet.\n"


def call_table():
    """What calls of cuDNN's interface cost, in microseconds."""
    found = list(rows("capi"))
    lines = ["| call | what | us | p10 | p90 |", "|---|---|---:|---:|---:|"]
    for r in found:
        times = " | ".join(number(r[k] * 1e3) for k in ("ms", "p10", "p90"))
        lines.append(f"| `{r['op']}` | {r['case']} | {times} |")
    return "\n".join(lines) + f"\n\nProcessor: {found[0]['cpu']}, commit {found[0]['commit']}.\n" if found else "No results yet.\n"


def refused(r, peer):
    """Whether a peer was asked and has no time; older records tell of one peer only."""
    return peer in r["refused"] if "refused" in r else r["peer_reason"] != "not asked for"


def gpu_table(name):
    """Rows of bench/results/GPU/SUITE.jsonl, `name` being GPU/SUITE."""
    path = ROOT / "bench" / "results" / f"{name}.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if not found:
        return "No results yet.\n"
    blas = any("cublaslt" in r["peers"] for r in found)
    lines = ["| operation | inputs | engine | ms | GB/s | TFLOP/s | cuDNN's ms | ratio |" + " cuBLASLt's ms |" * blas,
             "|---|---|---|---:|---:|---:|---:|---:|" + "---:|" * blas]
    for r in found:
        theirs = number(r["peers"].get("cudnn")) or ("refused" if refused(r, "cudnn") else "")
        lines.append(f"| {r['op']} | {sizes(r['case'])} | {r['engine']} | {number(r['ms'])} | {r['gb_s']:.0f} | "
                     f"{number(r['tflop_s'])} | {theirs} | {number(r['ratio'])} |" +
                     f" {number(r['peers'].get('cublaslt'))} |" * blas)
    commits = sorted({r["commit"] for r in found})
    return "\n".join(lines) + f"\n\nGPU: {found[0]['gpu']}, commit {', '.join(commits)}.\n"


def choice_table(name):
    """How far the planner's choice is behind the best candidate, by type of the operands."""
    path = ROOT / "bench" / "results" / f"{name}.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = [r for r in found if r["loss"] is not None]
    if not found:
        return "No results yet.\n"
    lines = ["| operands | products | within 5 % of the best | mean loss | worst |", "|---|---:|---:|---:|---|"]
    for kind in sorted({r["dtype"] for r in found}) + ["all"]:
        of = [r for r in found if kind in (r["dtype"], "all")]
        near = sum(r["loss"] <= 0.05 for r in of)
        worst = max(of, key=lambda r: r["loss"])
        lines.append(f"| {kind} | {len(of)} | {100 * near / len(of):.0f} % | {100 * sum(r['loss'] for r in of) / len(of):.1f} % | "
                     f"{100 * worst['loss']:.0f} %, {sizes(worst['case'])} |")
    return "\n".join(lines) + f"\n\nGPU: {found[0]['gpu']}, commit {found[0]['commit']}.\n"


def client_table(name):
    """How programs built for cuDNN ended on a GPU: the records that run_clients leaves in bench/results/GPU/clients."""
    folder = ROOT / "bench" / "results" / name
    if not (folder / "about.json").exists():
        return "No results yet.\n"
    read = lambda client: json.loads((folder / f"{client}.json").read_text())
    lines = ["| client | passed | failed | skipped |", "|---|---:|---:|---:|"]
    for client, title in [("capi", "client tests (`tests/capi`)"), ("cases", "every case of `tests/cases` through the graph interface"),
                          ("frontend_cpp", "cudnn-frontend, C++"), ("frontend_python", "cudnn-frontend, Python")]:
        r = read(client)
        failed, skipped = (r.get(k, 0) for k in ("failed", "skipped"))
        lines.append(f"| {title} | {r['passed']} | {failed if isinstance(failed, int) else len(failed)} | "
                     f"{skipped if isinstance(skipped, int) else len(skipped)} |")
    for client, title in [("torch", "PyTorch"), ("jax", "JAX")]:
        for suffix, whose in [("", "with this library"), ("_nvidia", "with NVIDIA's")]:
            r = read(client + suffix)
            passed = [c["passed"] for c in r["checks"].values()]
            lines.append(f"| {title} {r[client]}, {whose} ({r['library']}) | {sum(passed)} | {len(passed) - sum(passed)} | 0 |")
    about = read("about")
    return "\n".join(lines) + f"\n\nGPU: {about['gpu']}, commit {about['commit']}.\n"


def made(name):
    if name.endswith("/clients"):
        return client_table(name)
    if name.endswith("/choice"):
        return choice_table(name)
    return gpu_table(name) if "/" in name else call_table() if name == "capi" else table(name)


def main():
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        new = re.sub(r"<!-- table ([\w/]+) -->\n.*?<!-- end -->",
                     lambda m: f"<!-- table {m.group(1)} -->\n{made(m.group(1))}<!-- end -->", text, flags=re.S)
        if new == text:
            continue
        if "--check" in sys.argv:
            stale.append(str(page.relative_to(ROOT)))
        else:
            page.write_text(new)
    if stale:
        sys.exit("tables are not those of bench/results: " + ", ".join(stale) + "; run 'make docs'")


main()
