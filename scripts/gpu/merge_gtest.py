#!/usr/bin/env python3
"""Adds up what GoogleTest printed, NAME-SHARD.log in a folder, into NAME.json: how many tests passed, which failed or never
ended, and why others were skipped. Usage: merge_gtest.py FOLDER"""
import collections
import json
import pathlib
import re
import sys


def read(text, record):
    running, last = None, ""
    for line in text.splitlines():
        found = re.match(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([\w/.]+)", line)
        if found and found[1] == "RUN":
            running = found[2]
        elif found and found[2] == running:  # a list of names at the end is none of these
            if found[1] == "OK":
                record["passed"] += 1
            elif found[1] == "FAILED":
                record["failed"].append(running)
            else:
                record["skipped"][running] = last
            running = None
        last = line or last
    if running:
        record["failed"].append(f"{running}: did not end")


def main():
    folder = pathlib.Path(sys.argv[1])
    if not folder.is_dir():
        sys.exit(f"there is no folder {folder}")
    records = collections.defaultdict(lambda: {"passed": 0, "failed": [], "skipped": {}})
    for path in sorted(folder.glob("*-*.log")):
        read(path.read_text(errors="replace"), records[path.stem.rsplit("-", 1)[0]])
    for name, record in records.items():
        (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
        print(f"{name}: {record['passed']} passed, {len(record['failed'])} failed, {len(record['skipped'])} skipped")


main()
