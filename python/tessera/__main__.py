# SPDX-License-Identifier: Apache-2.0
"""The command line: `tessera` and `python -m tessera` start the program that comes with the package."""
import os
import sys


def unpacked(archive):
    """The folder with what the archive of compiled kernels holds, in the cache folder; None where that cannot be written."""
    from . import _tessera
    state = os.stat(archive)
    folder = _tessera._cache_folder(f"pack-{state.st_size}-{int(state.st_mtime)}")
    if not folder:
        return None
    if not os.path.exists(f"{folder}/complete"):
        import tarfile
        with tarfile.open(archive) as kernels:
            for member in filter(tarfile.TarInfo.isfile, kernels):
                with open(os.path.join(folder, os.path.basename(member.name)), "wb") as out:
                    out.write(kernels.extractfile(member).read())
        open(f"{folder}/complete", "w").close()
    return folder


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.realpath(os.path.join(here, "bin", "tessera"))
    libraries, installed = f"{here}/lib/tessera", program.startswith(here)
    if sys.argv[1:2] == ["exec"] and installed:
        if not os.path.exists(f"{libraries}/libcudnn.so.9"):
            sys.exit("error: libcudnn.so.9 of this project comes with the package tessera-cudnn: pip install tessera-cudnn")
        if os.path.exists(f"{libraries}/kernels.tar.xz") and "TESSERA_KERNEL_PACK" not in os.environ:
            folder = unpacked(f"{libraries}/kernels.tar.xz")
            os.environ.update({"TESSERA_KERNEL_PACK": folder} if folder else {})
    os.execv(program, ["tessera", *sys.argv[1:]])


if __name__ == "__main__":
    main()
