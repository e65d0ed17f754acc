"""The kernels that come with the drop-in library's package are unpacked once."""
import os
import tarfile

from tessera.__main__ import unpacked


def test_kernels_are_unpacked_once(tmp_path):
    (tmp_path / "kernels").mkdir()
    for name in ("a", "b"):
        (tmp_path / "kernels" / f"{name}.kernel").write_text(name)
    archive = str(tmp_path / "kernels.tar.xz")
    with tarfile.open(archive, "w:xz") as out:
        out.add(tmp_path / "kernels", "kernels")
    folder = unpacked(archive)
    assert sorted(os.listdir(folder)) == ["a.kernel", "b.kernel", "complete"]
    assert open(f"{folder}/b.kernel").read() == "b"
    os.remove(f"{folder}/b.kernel")
    assert unpacked(archive) == folder and sorted(os.listdir(folder)) == ["a.kernel", "complete"]
    os.remove(f"{folder}/complete")  # as if the first had been interrupted
    assert unpacked(archive) == folder and open(f"{folder}/b.kernel").read() == "b"
