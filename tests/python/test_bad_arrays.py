"""Whatever is given in the place of an array, an exception names the tensor, what was given and what is wanted."""
import ctypes
import threading

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera
from conftest import expected


def plan_of(dtype="f32", dims=(2, 3, 4)):
    g = tessera.Graph()
    x = g.input("x", dtype, dims)
    g.output(tessera.identity(x), "y")
    return g.plan()


PLAN = plan_of()
GOOD = numpy.arange(24, dtype="f").reshape(2, 3, 4)


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(dtype=st.one_of(hnp.scalar_dtypes(), hnp.unicode_string_dtypes()), shape=hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)),
       st.permutations(range(5)), st.booleans(), st.sampled_from(["x", "y"]))
def test_any_array(array, order, read_only, place):
    array = array.transpose([i for i in order if i < array.ndim])
    if read_only:
        array.flags.writeable = False
    fits = array.dtype == "float32" and array.dtype.isnative and array.shape == (2, 3, 4) and array.flags.c_contiguous
    arrays = {"x": GOOD, "y": numpy.empty((2, 3, 4), "f"), place: array}
    if fits and (place == "x" or not read_only):
        numpy.testing.assert_array_equal(PLAN.run(arrays)["y"], arrays["x"])
    else:
        with pytest.raises(tessera.Error, match=f"put '{place}' f32.2,3,4."):
            PLAN.run(arrays)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from([-2, -1, 1, 2, 3])), min_size=3, max_size=3))
def test_any_view(slices):
    base = numpy.arange(8 * 8 * 8, dtype="f").reshape(8, 8, 8)
    view = base[tuple(slice(a, None if s < 0 else a + n * s, s) for a, n, s in slices)]
    if view.shape == (2, 3, 4) and view.strides == GOOD.strides:
        numpy.testing.assert_array_equal(PLAN(view), view)
    else:
        with pytest.raises(tessera.Error, match="input 'x' f32.2,3,4. was given an array of f32"):
            PLAN(view)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.floats(), max_size=3),
                 st.dictionaries(st.text(), st.integers(), max_size=2), st.just(object()), st.just(int), st.just(len)))
def test_any_object(thing):
    for place in ("x", "y"):
        with pytest.raises(tessera.Error, match=f"put '{place}' f32.2,3,4."):
            PLAN.run({"x": GOOD, "y": numpy.empty((2, 3, 4), "f"), place: thing})


class Lender:
    """An object that lends memory as `capsule` says."""

    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule


def test_dlpack():
    class NoBuffer:  # numpy's arrays lend through the buffer protocol first
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **named):
            return self.array.__dlpack__(**named)

    y = numpy.zeros((2, 3, 4), "f")
    PLAN(NoBuffer(GOOD), y=NoBuffer(y))
    numpy.testing.assert_array_equal(y, GOOD)
    locked = y.copy()
    locked.flags.writeable = False
    with pytest.raises(tessera.Error, match="output 'y' f32.2,3,4. was given an array of .* which may only be read"):
        PLAN(NoBuffer(GOOD), y=NoBuffer(locked))
    with pytest.raises(tessera.Error, match="of f64.2,3,4. on the host; its elements must be f32"):
        PLAN(NoBuffer(GOOD.astype("d")))

    class Old(NoBuffer):  # a library from before max_version
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    PLAN(Old(GOOD + 1), y=Old(y))
    numpy.testing.assert_array_equal(y, GOOD + 1)


@pytest.mark.parametrize("lender, text", [
    (Lender(None), "returned no DLPack capsule"),
    (Lender(3), "returned no DLPack capsule"),
    (Lender(BufferError("cannot export a tensor that requires grad")), "requires grad"),
    (Lender(GOOD.__dlpack__(), device="gpu"), "input 'x'"),
    (Lender(GOOD.__dlpack__(), device=()), "input 'x'"),
])
def test_bad_dlpack(lender, text):
    with pytest.raises(tessera.Error, match=text):
        PLAN(lender)


def test_a_capsule_is_used_once():
    lender = Lender(GOOD.__dlpack__())
    numpy.testing.assert_array_equal(PLAN(lender, y=numpy.empty((2, 3, 4), "f")), GOOD)
    with pytest.raises(tessera.Error, match="input 'x' .* or one that was used before"):
        PLAN(lender, y=numpy.empty((2, 3, 4), "f"))


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


def capsule_of(structure, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(structure), name, None)


DLTENSOR, VERSIONED = ctypes.create_string_buffer(b"dltensor"), ctypes.create_string_buffer(b"dltensor_versioned")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 20), st.integers(0, 255), st.integers(0, 4), st.integers(0, 9), st.integers(0, 20), st.integers(-3, 3))
def test_any_dlpack_tensor(code, bits, lanes, ndim, device_type, device_id):
    shape = (ctypes.c_int64 * 10)(2, 3, 4, 1, 1, 1, 1, 1, 1, 1)
    t = DLTensor(GOOD.ctypes.data, device_type, device_id, ndim, code, bits, lanes, ctypes.addressof(shape), None, 0, None, None)
    capsule = capsule_of(t, DLTENSOR)
    if (code, bits, lanes, ndim) == (2, 32, 1, 3) and device_type in (1, 3):
        PLAN(Lender(capsule), y=numpy.empty((2, 3, 4), "f"))
        return
    with pytest.raises(tessera.Error, match="input 'x' f32.2,3,4."):
        PLAN(Lender(capsule, device=(1, 0)), y=numpy.empty((2, 3, 4), "f"))


ANY_SIZE = st.one_of(st.integers(-3, 5), st.sampled_from([2 ** 31, 2 ** 62, -2 ** 63, 2 ** 63 - 1]))


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_SIZE, min_size=3, max_size=3), st.lists(ANY_SIZE, min_size=3, max_size=3), st.booleans(), st.sampled_from([0, 1, 2, 9]),
       st.sampled_from(["x", "y"]), st.booleans())
def test_any_dlpack_sizes_strides_and_versions(dims, steps, freed, major, place, read_only):
    shape, strides, own = (ctypes.c_int64 * 3)(*dims), (ctypes.c_int64 * 3)(*steps), numpy.zeros((2, 3, 4), "f")
    t = DLTensor(0 if freed else own.ctypes.data, 1, 0, 3, 2, 32, 1, ctypes.addressof(shape), ctypes.addressof(strides), 0, None, None)
    v = Versioned(major, 0, None, None, int(read_only), t)
    arrays = {"x": GOOD, "y": numpy.zeros((2, 3, 4), "f"), place: Lender(capsule_of(v, VERSIONED))}
    fits = dims == [2, 3, 4] and steps == [12, 4, 1] and not freed and major == 1 and not (place == "y" and read_only)
    if fits:
        PLAN.run(arrays)
    else:
        with pytest.raises(tessera.Error, match=f"put '{place}' f32.2,3,4."):
            PLAN.run(arrays)


def test_threads_with_good_and_bad_arrays():
    """Errors of one thread are its own, whatever the others give to the same plan."""
    wrong = []

    def work(seed):
        rng = numpy.random.default_rng(seed)
        for _ in range(300):
            x = rng.standard_normal((2, 3, 4), "f")
            if rng.random() < 0.5:
                x = [x.astype("d"), x[:, :2], x.transpose(1, 0, 2), None, b"", "x"][rng.integers(6)]
                try:
                    PLAN.run({"x": x, "y": numpy.empty((2, 3, 4), "f")})
                    wrong.append(x)
                except tessera.Error as e:
                    if "input 'x' f32[2,3,4]" not in str(e):
                        wrong.append(e)
            elif not (PLAN(x) == x).all():
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


class Interface:
    def __init__(self, **fields):
        self.__array_interface__ = {"version": 3, "shape": (2, 3, 4), "typestr": "<f4", "data": (GOOD.ctypes.data, True), **fields}


def test_array_interface():
    numpy.testing.assert_array_equal(PLAN(Interface(), y=numpy.empty((2, 3, 4), "f")), GOOD)
    for fields in [{"typestr": ">f4"}, {"typestr": "<f8"}, {"typestr": ""}, {"shape": (2, 3)}, {"shape": 3}, {"data": None},
                   {"strides": (48, 16, 3)}, {"strides": (1, 2)}, {"data": (0, False)}, {"shape": ("a",)}]:
        with pytest.raises(tessera.Error, match="input 'x' f32.2,3,4."):
            PLAN(Interface(**fields), y=numpy.empty((2, 3, 4), "f"))


def test_freed_arrays_and_other_devices():
    with pytest.raises(tessera.Error, match="on GPU 0; its memory must be on the host"):
        class OnGpu:
            __cuda_array_interface__ = {"version": 3, "shape": (2, 3, 4), "typestr": "<f4", "data": (4096, False)}
        PLAN(OnGpu(), y=numpy.empty((2, 3, 4), "f"))
    view = memoryview(bytearray(96)).cast("f", (2, 3, 4))
    view.release()
    with pytest.raises(tessera.Error, match="input 'x'"):
        PLAN(view, y=numpy.empty((2, 3, 4), "f"))


def test_bound_memory_cannot_be_freed():
    import array
    x = array.array("f", range(24))
    g = tessera.Graph()
    g.output(g.input("x", "f32", [24]) + 1, "y")
    bound = g.plan().bind(x)
    with pytest.raises(BufferError):
        x.append(1)
    del x
    bound()
    assert bound.outputs[23] == 24


def test_overlapping_memory_is_refused(norm):
    plan, a = norm
    memory = numpy.zeros(4 * 64 + 16, "f")
    x, y = memory[:256].reshape(4, 64), memory[16:].reshape(4, 64)
    x[:] = a["x"]
    with pytest.raises(tessera.Error, match="output 'y' .* shares a part of its memory with input 'x'"):
        plan(x, a["s"], a["b"], y=y)
    numpy.testing.assert_allclose(plan(x, a["s"], a["b"], y=x), expected(a), atol=1e-5)  # the same memory is allowed
