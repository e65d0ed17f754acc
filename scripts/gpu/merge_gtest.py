#!/usr/bin/env python3
"""Adds up GoogleTest's reports NAME-SHARD.json in a folder into NAME.json: how many passed, which failed, and why others were
skipped. Usage: merge_gtest.py FOLDER"""
import collections
import json
import pathlib
import sys


def main():
    folder = pathlib.Path(sys.argv[1])
    reports = collections.defaultdict(list)
    for path in sorted(folder.glob("*-*.json")):
        reports[path.stem.rsplit("-", 1)[0]].append(path)
    for name, paths in reports.items():
        passed, failed, skipped = 0, [], {}
        for path in paths:
            for suite in json.loads(path.read_text())["testsuites"]:
                for test in suite["testsuite"]:
                    title = f"{suite['name']}.{test['name']}"
                    if "failures" in test:
                        failed.append(title)
                    elif test["result"] == "SKIPPED":
                        skipped[title] = test["skipped"][0]["message"].strip().splitlines()[-1]
                    else:
                        passed += test["result"] == "COMPLETED"
            path.unlink()
        record = {"passed": passed, "failed": failed, "skipped": skipped}
        (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
        print(f"{name}: {passed} passed, {len(failed)} failed, {len(skipped)} skipped")


main()
