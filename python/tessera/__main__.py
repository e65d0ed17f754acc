# SPDX-License-Identifier: Apache-2.0
"""The command line: `tessera` and `python -m tessera` start the program that comes with the package."""
import os
import sys


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.realpath(os.path.join(here, "bin", "tessera"))
    installed = program.startswith(here)
    if sys.argv[1:2] == ["exec"] and installed and not os.path.exists(f"{here}/lib/tessera/libcudnn.so.9"):
        sys.exit("error: libcudnn.so.9 of this project comes with the package tessera-cudnn: pip install tessera-cudnn")
    os.execv(program, ["tessera", *sys.argv[1:]])


if __name__ == "__main__":
    main()
