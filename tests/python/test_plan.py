"""Plans: arrays in and out, by position and name, bound, saved, explained, tuned, called from threads."""
import subprocess
import sys
import threading

import numpy
import pytest

import tessera
from conftest import expected


def test_call_by_position_and_by_name(norm):
    plan, a = norm
    assert plan.inputs == ["x", "s", "b"] and plan.outputs == ["y"] and plan.device == "cpu"
    numpy.testing.assert_allclose(plan(a["x"], a["s"], a["b"]), expected(a), atol=1e-5)
    numpy.testing.assert_allclose(plan(a["x"], b=a["b"], s=a["s"]), expected(a), atol=1e-5)
    numpy.testing.assert_allclose(plan.run(a)["y"], expected(a), atol=1e-5)


def test_a_given_output_is_written_in_place(norm):
    plan, a = norm
    y = numpy.empty((4, 64), "f")
    assert plan(**a, y=y) is y
    numpy.testing.assert_allclose(y, expected(a), atol=1e-5)


def test_bound_arrays_are_read_at_each_call(norm):
    plan, a = norm
    bound = plan.bind(**a)
    del plan
    bound()
    first = bound.outputs.copy()
    a["x"] *= -1
    bound()
    assert not numpy.allclose(first, bound.outputs)
    numpy.testing.assert_allclose(bound.outputs, expected(a), atol=1e-5)


def test_several_outputs_scalars_and_types():
    g = tessera.Graph()
    x, k = g.input("x", "i32", [3]), g.scalar("k", "i32")
    g.output(x * k, "y")
    g.output((x + k).astype("i64"), "z")
    plan = g.plan()
    y, z = plan(numpy.arange(3, dtype="i"), 7)
    assert plan(numpy.arange(3, dtype="i"), numpy.array(7, "i"))[0].tolist() == [0, 7, 14]
    assert y.tolist() == [0, 7, 14] and z.tolist() == [7, 8, 9] and z.dtype == "int64"
    with pytest.raises(tessera.Error, match="scalar 'k' i32.1. was given 0.5; it takes a whole number"):
        plan(numpy.arange(3, dtype="i"), 0.5)
    with pytest.raises(tessera.Error, match="scalar 'k' i32.1. was given 2147483648, which is no number of its type"):
        plan(numpy.arange(3, dtype="i"), 1 << 31)
    with pytest.raises(ValueError, match="output 'y' was not given, and"):
        tessera.Graph.parse("a = scalar f32; y = add a a; output y").plan()(1.5)


def test_layouts_and_types_that_numpy_lacks():
    g = tessera.Graph()
    x = g.input("x", "bf16", [1, 4, 3, 2], layout="nhwc")
    g.output(x * 2, "y", "bf16")
    plan = g.plan()
    bits = (numpy.arange(24, dtype="f").view("u4") >> 16).astype("u2").reshape(1, 3, 2, 4).transpose(0, 3, 1, 2)
    y = plan(bits)
    assert y.dtype == "uint16" and y.strides == bits.strides
    values = (y.astype("u4") << 16).view("f4") if y.flags.c_contiguous else (numpy.ascontiguousarray(y).astype("u4") << 16).view("f")
    assert values.reshape(-1).tolist() == (2 * numpy.arange(24.)).reshape(1, 3, 2, 4).transpose(0, 3, 1, 2).reshape(-1).tolist()


def test_memory_without_a_library():
    g = tessera.Graph()
    g.output(g.input("x", "f32", [4]) + 1, "y")
    import array
    y = g.plan()(array.array("f", [1, 2, 3, 4]))
    assert isinstance(y, memoryview) and y.tolist() == [2, 3, 4, 5]


def test_text_save_and_load(norm):
    plan, a = norm
    again = tessera.Plan.load(plan.save())
    numpy.testing.assert_allclose(again(**a), expected(a), atol=1e-5)
    g = tessera.Graph.parse("x = input f32[4]; y = exp x; output y")
    assert tessera.Graph.load(g.save()).text() == g.text() == str(g)
    with pytest.raises(tessera.Error, match="checksum") as e:
        tessera.Graph.load(g.save().replace("exp", "log"))
    assert e.value.status == "corrupt_data"
    with pytest.raises(tessera.Error, match="line 1, column"):
        tessera.Graph.parse("x = inptu f32[4]")


def test_gradient():
    g = tessera.Graph()
    x = g.input("x", "f64", [5])
    dx, = tessera.gradient(tessera.sum(x * x * x), [x])
    g.output(dx, "dx")
    v = numpy.arange(5.)
    numpy.testing.assert_allclose(g.plan()(v), 3 * v * v)


def test_explain(norm):
    plan, _ = norm
    text = plan.explain()
    assert "step 1" in text and repr(text) == str(text)
    assert "<iframe" in text._repr_html_() and "&lt;svg" in plan._repr_html_()
    assert plan.page().startswith("<!") and "<svg" in plan.page()
    far = tessera.Graph.parse("x = input f32[4]; y = exp x; output y").plan("h200")
    assert "h200" in far.explain().lower()
    with pytest.raises(tessera.Error, match="not run; to run use cpu, cuda or emulated"):
        far(numpy.zeros(4, "f"))


def test_tuned_choices_are_followed_at_once():
    g = tessera.Graph.parse("x = input f32[64,64]; y = softmax x; output y")
    before = g.plan().explain()
    report = g.tune(seconds=0.01)
    assert "1 records of this machine" in report and "measured" not in before
    assert "measured" in g.plan().explain()


def test_options_of_plans():
    g = tessera.Graph.parse("x = input f32[64,64]; y = exp (softmax x); output y")
    assert g.plan(fuse=False).steps == 2 and g.plan().steps == 1
    assert "reference" in g.plan(engines=["reference"]).explain()
    c = tessera.Graph.parse("x = input f32[1,4,8,8]; w = input f32[4,4,3,3]; y = conv_fprop x w; output y")
    assert "fourier" in c.plan(stages="fourier").explain() and "fourier" not in c.plan().explain()
    with pytest.raises(tessera.Error, match="there are no stages named 'fft'; stages: .*fourier"):
        c.plan(stages="fft")
    with pytest.raises(tessera.Error, match="there is no device 'gpu'; devices: cpu"):
        g.plan("gpu")


def test_threads_share_a_plan(norm):
    plan, a = norm
    wrong = []

    def work(seed):
        mine = dict(a, x=numpy.random.default_rng(seed).standard_normal((4, 64), "f"))
        bound = plan.bind(**mine)
        for _ in range(200):
            bound()
            if not (numpy.allclose(plan(**mine), expected(mine), atol=1e-5) and numpy.allclose(bound.outputs, expected(mine), atol=1e-5)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_the_gil_is_free_while_a_plan_runs():
    g = tessera.Graph()
    a = g.input("a", "f32", [384, 384])
    g.output(a @ a, "c")
    bound = g.plan(engines=["reference"]).bind(numpy.ones((384, 384), "f"))  # the definition takes its time
    started, count = threading.Event(), 0

    def run():
        started.set()
        bound()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    while thread.is_alive():
        count += 1
        thread.join(0.001)
    assert count > 3


def test_a_graph_may_grow_while_it_is_planned():
    g = tessera.Graph()
    x = g.input("x", "f32", [8])
    g.output(x + 1, "y")
    threads = [threading.Thread(target=g.plan) for _ in range(4)]
    [t.start() for t in threads]
    for i in range(50):
        g.output(x * float(i), f"z{i}")
    [t.join() for t in threads]
    assert len(g.plan().outputs) == 51


def test_import_is_fast_and_brings_no_library():
    code = ("import time, sys; t = time.perf_counter(); import tessera; t = time.perf_counter() - t;"
            "print(t, 'numpy' in sys.modules, 'torch' in sys.modules)")
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(5)]
    assert all(r[1:] == ["False", "False"] for r in runs)
    assert min(float(r[0]) for r in runs) < 0.25, "the goal of 50 ms is measured by `make bench`, on a quiet machine"
