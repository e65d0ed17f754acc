"""@tessera.fuse: plans are made once for each kind of arguments."""
import numpy
import pytest

import tessera


def test_one_plan_for_each_kind_of_arguments():
    calls = []

    @tessera.fuse
    def scaled(x, y, factor=2):
        """Doc."""
        calls.append(factor)
        return tessera.relu(x + y) * factor

    a, b = numpy.arange(-4, 4, dtype="f"), numpy.ones(8, "f")
    for _ in range(3):
        numpy.testing.assert_array_equal(scaled(a, b), numpy.maximum(a + 1, 0) * 2)
    numpy.testing.assert_array_equal(scaled(a, y=b, factor=3), numpy.maximum(a + 1, 0) * 3)
    scaled(a.astype("d"), b.astype("d"))
    scaled(a[:4], b[:4])
    numpy.testing.assert_array_equal(scaled(a[1:5], b[1:5]), numpy.maximum(a[1:5] + 1, 0) * 2)  # less aligned
    assert calls == [2, 3, 2, 2, 2] and scaled.__doc__ == "Doc."
    assert "step 1" in scaled.plan(a, b).explain()


def test_several_results_and_inputs_as_results():
    @tessera.fuse(engines=["reference"])
    def both(x):
        return x, x.exp(), x

    x = numpy.arange(3, dtype="f")
    same, e, again = both(x)
    numpy.testing.assert_allclose(e, numpy.exp(x), rtol=1e-6)
    assert same is not x and (same == x).all() and (again == x).all()


def test_errors():
    @tessera.fuse
    def wrong(x):
        return 3 if isinstance(x, tessera.Tensor) else x

    with pytest.raises(TypeError):
        wrong(numpy.zeros(3, "f"))
    with pytest.raises(TypeError, match="none of the arguments is an array"):
        wrong(3)
