"""Every operation of the registry is there, with its documentation; options and inputs are converted or refused."""
import json
import pathlib
import subprocess
from fractions import Fraction

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera


def registry():
    program = pathlib.Path(tessera.__file__).parent / "bin" / "tessera"
    return json.loads(subprocess.run([program, "list", "ops", "--json"], capture_output=True, check=True).stdout)


def test_every_operation_is_a_function_with_its_inputs_and_options():
    ops = registry()
    assert len(ops) > 40
    for op in ops:
        for name in op["spellings"]:
            function = getattr(tessera, name)
            signature = function.__doc__.partition("\n")[0]
            assert signature.startswith(name + "("), signature
            for option in op["options"]:
                assert f"{option['name']}:" in signature, (name, option)
            if op["name"] != "pointwise":
                assert op["formula"] in function.__doc__
                for slot in op["inputs"]:
                    assert f"{slot['name']}:" in signature, (name, slot)
            if op["inputs"] and op["inputs"][0]["kind"] == "required":
                assert getattr(tessera.Tensor, name)


def test_every_example_reads_prints_and_plans():
    for op in registry():
        graph = tessera.Graph.parse(op["example"])
        assert tessera.Graph.parse(graph.text()).text() == graph.text()
        assert graph.plan().steps >= 1, op["name"]


@pytest.fixture
def x():
    return tessera.Graph().input("x", "f32", [2, 8, 6, 6])


def test_options_of_every_kind(x):
    assert tessera.resample(x, mode="max_pool", window=(2, 2), stride=[2, 2], pad=(0, 0)).dims == (2, 8, 3, 3)
    assert tessera.resample(x, mode="bilinear", window=(2, 2), stride=(Fraction(1, 2), Fraction(1, 2)), pad=(0, 0),
                            size=(12, 12)).dims == (2, 8, 12, 12)
    assert x.reduce_max(axes=(2, 3)).dims == (2, 8, 1, 1)
    assert x.softmax(axes=1).dims == x.dims
    assert tessera.relu(x, upper=6).dims == x.dims
    assert x.transpose(perm=[0, 2, 3, 1]).dims == (2, 6, 6, 8)
    assert tessera.concat([x, x], axis=1).dims == (2, 16, 6, 6)
    assert x.dropout(p=0.1, seed=3).dims == x.dims


def test_an_option_that_is_also_an_input_takes_either():
    g = tessera.Graph()
    q = g.input("q", "f32", [1, 2, 8, 16])
    assert "scale=0.25" in (q.sdpa_fwd(q, q, scale=0.25), g.text())[1]
    s = g.scalar("s", "f32")
    assert "scale=s" in (q.sdpa_fwd(q, q, scale=s), g.text())[1]
    assert "scale=0.5" in (q.sdpa_fwd(q, q, 0.5), g.text())[1]


def test_outputs_by_name_and_in_order():
    g = tessera.Graph()
    q = g.input("q", "f32", [1, 2, 8, 16])
    r = tessera.sdpa_fwd(q, q, q, wanted=["stats", "max"])
    o, stats, largest = r
    assert o.dims == q.dims and stats.dims == (1, 2, 8, 1) and largest.uid == r["max"].uid and len(r) == 3
    assert tessera.relu(r).dims == q.dims  # it is its first output
    with pytest.raises(tessera.Error, match="there is no output 'sum_exp' here, but o, stats or max"):
        r["sum_exp"]
    with pytest.raises(tessera.Error, match="sdpa_fwd has no output named 'stat'; did you mean 'stats'"):
        tessera.sdpa_fwd(q, q, q, wanted="stat")


def test_functions_become_sub_graphs():
    g = tessera.Graph()
    q = g.input("q", "f32", [1, 2, 8, 16])
    bias = g.input("bias", "f32", [1, 1, 8, 8])
    g.output(tessera.sdpa_fwd(q, q, q, score_mod=lambda s: (s * 0.1).tanh() * 10 + bias), "o")
    assert "score_mod={" in g.text() and "tanh" in g.text() and "bias" in g.text()
    with pytest.raises(ZeroDivisionError):
        tessera.sdpa_fwd(q, q, q, score_mod=lambda s: 1 / 0)
    with pytest.raises(tessera.Error, match="must return a tensor"):
        tessera.sdpa_fwd(q, q, q, score_mod=lambda s: 3)
    with pytest.raises(tessera.Error, match="takes a function of tensors"):
        tessera.sdpa_fwd(q, q, q, score_mod=3)


def test_operators(x):
    assert (2 * x + 1 - x / 3).dims == x.dims
    assert (1 / (1 + (-x).exp())).dtype == "f32"
    assert (x < 0).dtype == "bool" and (0 <= x).dtype == "bool"
    assert abs(x ** 2).dims == x.dims
    assert (x @ x).dims == (2, 8, 6, 6)
    with pytest.raises(TypeError):
        x + "1"


@pytest.mark.parametrize("call, text", [
    (lambda x: x.relu(uper=6), "relu has no input or option named 'uper'; did you mean 'upper'"),
    (lambda x: x.relu(upper="six"), "relu: option upper was given 'six'; it takes a number"),
    (lambda x: x.reduce_add(axes=1.5), "reduce_add: option axes was given 1.5; it takes whole numbers"),
    (lambda x: x.reduce_add(axes=99), "99"),
    (lambda x: tessera.resample(x, mode="maxpool"), "allowed are nearest, bilinear, avg_pool_include"),
    (lambda x: tessera.relu(3), "an operation needs at least one tensor"),
    (lambda x: tessera.add(x, "a"), "an operation was given 'a'; it takes tensors of a graph and numbers"),
    (lambda x: tessera.add(x, x, x), "add takes at most 2 inputs, 3 given; options are given by name"),
    (lambda x: tessera.add(x, b=x, x=x), "input 'x' is given twice"),
    (lambda x: tessera.add(x, tessera.Graph().input("z", "f32", [1])), "belongs to another graph"),
    (lambda x: tessera.concat(x), "concat takes a list of tensors"),
    (lambda x: tessera.matmul(x, tessera.transpose(x, perm=[0, 1])), "perm"),
])
def test_what_is_wrong_is_named(x, call, text):
    with pytest.raises(tessera.Error, match=text) as e:
        call(x)
    assert e.value.status == "bad_parameter"


def test_names_people_look_for():
    g = tessera.Graph()
    x = g.input("x", "f32", [2, 3])
    g.output(tessera.silu(x).sum(axes=[1]), "y")
    values = numpy.array([[0, 1, 2], [3, 4, 5]], "f")
    expected = (values / (1 + numpy.exp(-values))).sum(axis=1, keepdims=True)
    numpy.testing.assert_allclose(g.plan()(values), expected, rtol=1e-6)


OPERATIONS = sorted(name for op in registry() for name in op["spellings"])
WORDS = sorted({o["name"] for op in registry() for o in op["options"]} | {s["name"] for op in registry() for s in op["inputs"]})
ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(-2 ** 65, 2 ** 65), st.integers(-2, 4), st.floats(), st.text(max_size=8), st.sampled_from(
    ["TENSOR", "OTHER", len, lambda s: s, lambda *s: s[0] * 2, [1, 2], (0,), [0.5], {}, Fraction(1, 3), b"x"]),
    st.lists(st.integers(-3, 9), max_size=5))


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(OPERATIONS), st.lists(ANYTHING, max_size=4), st.dictionaries(st.sampled_from(WORDS + ["wanted"]), ANYTHING, max_size=3))
def test_any_arguments_of_operations(name, arguments, named):
    """Whatever operations are called with, they return tensors or raise."""
    g = tessera.Graph()
    tensors = {"TENSOR": g.input("x", "f32", [2, 8, 6, 6]), "OTHER": g.input("i", "i32", [4])}
    given_as = lambda v: tensors.get(v, v) if isinstance(v, str) else v
    try:
        result = getattr(tessera, name)(*map(given_as, arguments), **{k: given_as(v) for k, v in named.items()})
    except (tessera.Error, TypeError, ValueError, OverflowError):
        return
    for t in result if isinstance(result, (tuple, list)) else [result]:
        assert isinstance(t, tessera.Tensor) and t.dims


@settings(max_examples=300, deadline=None)
@given(ANYTHING, ANYTHING, ANYTHING)
def test_any_arguments_of_graphs(name, dtype, dims):
    g = tessera.Graph()
    for call in (lambda: g.input(name, dtype, dims), lambda: g.scalar(name, dtype), lambda: g.constant(dims, name, dtype),
                 lambda: g.output(g.input("x", "f32", [2]) + 1, name, dtype), lambda: g.plan(name), lambda: tessera.Graph.parse(name)):
        try:
            call()
        except (tessera.Error, TypeError, ValueError, OverflowError):
            pass
    g.text()
