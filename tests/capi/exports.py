#!/usr/bin/env python3
"""exports.py FOLDER LISTS: the libraries in a folder against the lists (*.map) that their functions were exported by.

Every function of a list is exported by its library, under the version node of the library's name, and nothing else is.
"""
import pathlib
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def listed(path):
    """The node that a list names, and the functions under it as the linker writes them."""
    text = path.read_text()
    node = re.search(r"^(\S+) \{", text, re.M).group(1)
    return node, {f"{name}@@{node}" for name in re.findall(r"^ +(cudnn\w+);", text, re.M)}


def problems(folder, path):
    node, wanted = listed(path)
    library = folder / node
    if not library.exists():
        return [f"{library} is missing"]
    lines = output("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    given = {line.split()[-1] for line in lines} - {node}  # some linkers make a symbol of the node itself
    found = [f"{library} lacks {name}" for name in sorted(wanted - given)]
    found += [f"{library} exports {name}, which is in no list" for name in sorted(given - wanted)]
    if f"Library soname: [{node}]" not in output("readelf", "-d", library):
        found.append(f"the soname of {library} is not {node}")
    if not re.search(rf"Flags: none .*Name: {re.escape(node)}$", output("readelf", "-V", library), re.M):
        found.append(f"{library} has no version node {node}")
    return found


def main(folder, lists):
    paths = [lists / "cudnn.map", *sorted((lists / "sublibraries").glob("*.map"))]
    found = [line for path in paths for line in problems(folder, path)]
    print("\n".join(found) or f"{len(paths)} libraries export what their lists say")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
