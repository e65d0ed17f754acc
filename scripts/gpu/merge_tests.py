#!/usr/bin/env python3
"""Adds up the records of `tessera test --record` in a folder into one tests.json. Usage: merge_tests.py FOLDER OUT
SECONDS. A process that left no record, and an engine that ran no case, are failures."""
import collections
import json
import pathlib
import sys

SAME = ["gpu", "cpu", "commit", "kernels_hash"]


def main():
    folder, out, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    total = {"passed": 0, "failed": 0, "skipped": 0}
    sums = {k: collections.Counter() for k in ("engines", "ops", "skips")}
    about, failures = {}, []
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        for key in total:
            total[key] += record[key]
        for key, counter in sums.items():
            counter.update(record.get(key, {}))
        failures += record["failures"]
        for key in SAME:
            if about.setdefault(key, record.get(key)) != record.get(key):
                sys.exit(f"{path} has another {key}: {record.get(key)}, not {about[key]}")
    for path in sorted(folder.glob("*.failed")):
        said = path.with_suffix(".log").read_text().strip().splitlines()[-3:]
        failures.append(f"{path.stem}: ended with code {path.read_text().strip()} and no record: " + " / ".join(said))
        total["failed"] += 1
    engines = folder / "engines"  # that must have run; none by way of cuDNN's interface, which numbers them itself
    for engine in json.loads(engines.read_text()) if engines.exists() else []:
        if engine["device"] == "cuda" and not sums["engines"][engine["name"]]:
            failures.append(f"engine {engine['name']} ran no case: it accepts nothing, or no case covers it")
            total["failed"] += 1
    files = len(list(folder.glob("*.json")))
    result = {**about, **total, "records": files, "seconds": seconds,
              **{k: dict(sorted(c.items())) for k, c in sums.items()}, "failures": failures[:100]}
    pathlib.Path(out).write_text(json.dumps(result, indent=2) + "\n")
    for text in failures[:20]:
        print("FAIL", text)
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped on {about.get('gpu')} in {seconds} s")
    print(f"{out} belongs in bench/results/{about.get('gpu')}/")
    sys.exit(1 if total["failed"] or not files else 0)


main()
