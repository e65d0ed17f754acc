"""Checks of a framework as a client: functions marked with @check, run by name, with a record of how each ended."""
import argparse
import json
import sys
import time
import traceback

CHECKS = {}
EPSILON = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 8e-2}  # of the largest value; TF32 is allowed


def check(f):
    CHECKS[f.__name__] = f
    return f


def parser(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("names", nargs="*")
    p.add_argument("--json")
    return p


def run(record, names):
    """Adds to the record what each check says: it raises, or may give more to record."""
    print(", ".join(f"{k} {v}" for k, v in record.items()), flush=True)
    record["checks"] = {}
    for name, f in CHECKS.items():
        if names and name not in names:
            continue
        start = time.time()
        try:
            said = {"passed": True, **(f() or {})}
        except Exception as e:
            said = {"passed": False, "why": f"{type(e).__name__}: {e}"[:600]}
            traceback.print_exc(limit=3)
        said["seconds"] = round(time.time() - start, 2)
        record["checks"][name] = said
        print("ok  " if said["passed"] else "FAIL", name, said.get("why", ""), flush=True)


def finish(record, path):
    if path:
        with open(path, "w") as out:
            json.dump(record, out, indent=2)
    sys.exit(0 if all(said["passed"] for said in record["checks"].values()) else 1)
