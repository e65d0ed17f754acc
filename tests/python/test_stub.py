"""The type stub is what its generator makes of the module now."""
import pathlib
import runpy

import tessera


def test_stub_is_current():
    generator = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "python_stub"
    stub = pathlib.Path(tessera.__file__).with_name("_tessera.pyi")
    assert stub.read_text() == runpy.run_path(str(generator))["stub"](), "run `make docs`"
