"""What the tests of the Python package share."""
import importlib.util
import pathlib

import numpy
import pytest

import tessera


@pytest.fixture
def norm():
    """A plan with three inputs and one output, and arrays for them."""
    g = tessera.Graph()
    x, s, b = g.input("x", "f32", [4, 64]), g.input("s", "f32", [1, 64]), g.input("b", "f32", [1, 64])
    g.output(tessera.relu(tessera.layer_norm(x, s, b)), "y")
    rng = numpy.random.default_rng(1)
    arrays = {"x": rng.standard_normal((4, 64), "f"), "s": rng.standard_normal((1, 64), "f"), "b": numpy.ones((1, 64), "f")}
    return g.plan(), arrays


def expected(a):
    x, s, b = a["x"], a["s"], a["b"]
    centred = x - x.mean(1, keepdims=True)
    return numpy.maximum(centred / numpy.sqrt((centred ** 2).mean(1, keepdims=True) + 1e-5) * s + b, 0)


EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def example(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
