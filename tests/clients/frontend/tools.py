"""What the checks of the Python client share: tensors of any type between guard bytes, graphs that are built, tried and
saved in every way the package has, and tolerances that follow from types and lengths of sums."""
import ctypes
import functools
import itertools
import math
import os
import time
import weakref
import zlib

import cudnn
import ml_dtypes
import numpy as np

D = cudnn.data_type
# By a short name: the package's enumerator, what numpy stores, bits of the mantissa, smallest exponent of normal numbers.
TYPES = {
    "f64": (D.DOUBLE, np.float64, 52, -1022),
    "f32": (D.FLOAT, np.float32, 23, -126),
    "f16": (D.HALF, np.float16, 10, -14),
    "bf16": (D.BFLOAT16, ml_dtypes.bfloat16, 7, -126),
    "e4m3": (D.FP8_E4M3, ml_dtypes.float8_e4m3fn, 3, -6),
    "e5m2": (D.FP8_E5M2, ml_dtypes.float8_e5m2, 2, -14),
    "e5m3": (D.FP8_E5M3, np.float64, 3, -14),  # numpy has no such type: one byte, by way of E5M3
    "e8m0": (D.FP8_E8M0, ml_dtypes.float8_e8m0fnu, 0, -127),
    "e2m1": (D.FP4_E2M1, ml_dtypes.float4_e2m1fn, 1, 0),  # two in a byte
    "i8": (D.INT8, np.int8, None, None),
    "u8": (D.UINT8, np.uint8, None, None),
    "i32": (D.INT32, np.int32, None, None),
    "i64": (D.INT64, np.int64, None, None),
    "bit": (D.BOOLEAN, np.bool_, None, None),  # eight in a byte
}
# The number of each byte: no sign, 5 bits of exponent, 3 of mantissa.
E5M3 = np.array([math.ldexp(b % 8 + 8 * (b >= 8), max(b // 8, 1) - 18) for b in range(255)] + [math.nan])
GUARD, PATTERN = 256, 0xA5
A, B, FALLBACK = cudnn.heur_mode.A, cudnn.heur_mode.B, cudnn.heur_mode.FALLBACK
SM = 90  # the package asks a CUDA run time unless it is told


class Skipped(Exception):
    """Raised by a check that has nothing to do here, with the reason."""


@functools.cache
def runtime():
    return Runtime()


class Runtime:
    """CUDA's run time, the package's own; each function must succeed."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["CUDNN_FRONTEND_CUDART_LIB_NAME"])

    def __getattr__(self, name):
        def call(*arguments):
            code = getattr(self.library, name)(*arguments)
            assert code == 0, f"{name} answers {code}"
        return call


ON_GPU = os.environ.get("TESSERA_DEVICE", "").startswith("cuda")


def memory(bytes_):
    """What the device can reach: on a GPU, memory of the host that it sees at the same address."""
    if not ON_GPU:
        return np.empty(bytes_, np.uint8)
    address = ctypes.c_void_p()
    runtime().cudaHostAlloc(ctypes.byref(address), ctypes.c_size_t(bytes_), 0)
    array = np.ctypeslib.as_array((ctypes.c_uint8 * bytes_).from_address(address.value))
    weakref.finalize(array, runtime().cudaFreeHost, address)
    return array


def wait():
    if ON_GPU:
        runtime().cudaDeviceSynchronize()


def epsilon(name):
    bits = TYPES[name][2]
    return 0.0 if bits is None else 2.0 ** -(bits + 1)


def spacing(values, name):
    """The distance of neighbours among the numbers of a type, around each value."""
    _, _, bits, smallest = TYPES[name]
    if not bits:  # integers, and powers of two: exact
        return np.zeros_like(values)
    finite = np.where(np.isfinite(values), np.abs(values), 0)
    exponent = np.maximum(np.frexp(np.maximum(finite, 1e-300))[1] - 1, smallest)
    return np.ldexp(1.0, exponent - bits)


def e5m3_codes(values):
    """The byte of the nearest number."""
    return np.abs(E5M3[:255] - np.asarray(values)[..., None]).argmin(-1)


def packed(dims, order=None):
    """Strides without gaps; `order` lists dimensions from the outermost to the innermost."""
    strides, step = [0] * len(dims), 1
    for d in reversed(order if order is not None else range(len(dims))):
        strides[d] = step
        step *= dims[d]
    return strides


def channels_last(dims):
    return packed(dims, [0, *range(2, len(dims)), 1])


class Buffer:
    """Memory of a tensor between guard bytes. Values are what the type holds of those given, in f64."""

    def __init__(self, name, dims, strides=None, values=None, elements=None):
        self.name, self.dims, self.strides = name, list(dims), list(strides or packed(dims))
        self.type, self.store, _, _ = TYPES[name]
        self.elements = elements or 1 + sum((n - 1) * s for n, s in zip(self.dims, self.strides))
        self.in_byte = {"bit": 8, "e2m1": 2}.get(name, 1)
        bytes_ = -(-self.elements // self.in_byte) * (1 if self.in_byte > 1 or name == "e5m3" else np.dtype(self.store).itemsize)
        self.raw = memory(bytes_ + 2 * GUARD + 64)
        self.raw[:] = PATTERN
        self.front = GUARD + -(self.raw.ctypes.data + GUARD) % 64
        self.data = self.raw[self.front:self.front + bytes_]
        if values is not None:
            self.fill(values)

    def address(self):
        return self.data.ctypes.data

    def places(self):
        """The position of each element in memory."""
        at = np.zeros(self.dims, np.int64)
        for d, (n, s) in enumerate(zip(self.dims, self.strides)):
            at += (np.arange(n) * s).reshape([-1 if i == d else 1 for i in range(len(self.dims))])
        return at

    def fill(self, values, places=None):
        given = np.broadcast_to(np.asarray(values), self.dims if places is None else places.shape)
        flat = self.flat()
        flat[self.places() if places is None else places] = given.astype(self.store)
        self.put(flat)

    def flat(self):
        """All elements as numpy stores them, also those between strides."""
        if self.name == "bit":
            return np.unpackbits(self.data, bitorder="little")[:self.elements].astype(np.bool_)
        if self.name == "e2m1":
            return np.stack([self.data & 15, self.data >> 4], -1).reshape(-1)[:self.elements].view(self.store)
        if self.name == "e5m3":
            return E5M3[self.data]
        return self.data.view(self.store)

    def put(self, flat):
        if self.name == "bit":
            self.data[:] = np.packbits(flat, bitorder="little")
        elif self.name == "e2m1":
            codes = np.zeros(2 * len(self.data), np.uint8)
            codes[:self.elements] = flat.view(np.uint8) & 15
            self.data[:] = codes[0::2] | codes[1::2] << 4
        elif self.name == "e5m3":
            self.data[:] = e5m3_codes(flat)

    def values(self, places=None):
        return self.flat()[self.places() if places is None else places].astype(np.float64)

    def poison(self):
        self.raw[:] = PATTERN
        if self.name not in ("bit", "e2m1", "e8m0"):
            self.data[:] = 0xFF  # NaN in every type of floating-point numbers

    def check_guards(self, label):
        touched = self.raw.copy()
        touched[self.front:self.front + len(self.data)] = PATTERN
        assert (touched == PATTERN).all(), f"{label}: bytes beside the tensor were written"


class Result:
    """What a tensor of the graph should hold: compared element by element."""

    def __init__(self, buffer, expected, terms, through, size, places):
        self.buffer, self.expected, self.places = buffer, np.asarray(expected, np.float64), places
        largest = np.max(np.abs(self.expected[np.isfinite(self.expected)]), initial=0.0)
        # Sums in f32 (f64 for doubles), intermediate numbers in the types of `through`, the rounding of the result.
        sums = epsilon("f64" if buffer.name == "f64" else "f32")
        relative = 8 * sums * math.sqrt(terms) + 2 * sum(epsilon(t) for t in through)
        self.allowed = spacing(self.expected, buffer.name) + relative * (largest if size is None else np.asarray(size))

    def check(self, label):
        self.buffer.check_guards(label)
        got = self.buffer.values(self.places)
        same = (got == self.expected) | (np.isnan(got) & np.isnan(self.expected))
        with np.errstate(invalid="ignore"):
            error = np.where(same, 0.0, np.abs(got - self.expected))
        wrong = ~(error <= self.allowed)  # NaN is wrong
        if wrong.any():
            i = tuple(int(v) for v in np.argwhere(wrong)[0])
            raise AssertionError(f"{label}: {int(wrong.sum())} of {wrong.size} elements differ, the first at {list(i)}: "
                                 f"{got[i]:g} instead of {self.expected[i]:g}, allowed {np.broadcast_to(self.allowed, got.shape)[i]:g}")


class Client:
    """A graph of the package with its data."""

    def __init__(self, handle, name, **options):
        self.handle, self.random = handle, np.random.default_rng(zlib.crc32(name.encode()))
        options = {"intermediate_data_type": D.FLOAT, "compute_data_type": D.FLOAT, "sm_version": SM, "handle": handle, **options}
        self.graph = cudnn.pygraph(**options)
        self.bound, self.results, self.workspace = {}, {}, None

    def normal(self, dims, scale=1.0):
        return self.random.standard_normal(dims) * scale

    def input(self, values, name="f32", strides=None, **options):
        """A tensor of the graph and its values as the type holds them."""
        values = np.asarray(values)
        buffer = Buffer(name, values.shape, strides, values)
        t = self.graph.tensor(dim=buffer.dims, stride=buffer.strides, data_type=buffer.type, **options)
        self.bound[t] = buffer
        return t, buffer.values()

    def whole(self, values):
        return self.input(np.asarray(values), "i32")[0]

    def scalar(self, value, name="f32", rank=4):
        """A number in host memory that is read at execution."""
        buffer = Buffer(name, [1] * rank, values=value)
        t = self.graph.tensor(dim=[1] * rank, stride=[1] * rank, data_type=buffer.type, is_pass_by_value=True)
        self.bound[t] = buffer
        return t

    def bind(self, t, buffer):
        self.bound[t] = buffer

    def output(self, t, expected, name="f32", strides=None, terms=1, through=(), size=None, places=None, buffer=None):
        """Marks a tensor as a result. `terms`: the longest sum; `through`: types of numbers on the way; `size`: what the
        numbers that were added up amount to, for results in which they cancel. `places` where the tensor is packed."""
        expected = np.asarray(expected)
        buffer = buffer or Buffer(name, expected.shape, strides)
        t.set_output(True).set_data_type(buffer.type).set_dim(buffer.dims).set_stride(buffer.strides)
        self.bound[t] = buffer
        self.results[t] = Result(buffer, expected, terms, through, size, places)

    def build(self, modes, policy=cudnn.build_plan_policy.ALL):
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans(modes)
        self.graph.check_support()
        self.graph.build_plans(policy)

    def pack(self):
        return {t.get_uid(): b.address() for t, b in self.bound.items()}

    def space(self, bytes_):
        self.workspace = Buffer("u8", [max(bytes_, 1)])
        return self.workspace.address()

    def checked(self, label, execute):
        for r in self.results.values():
            r.buffer.poison()
        execute()
        wait()
        self.workspace.check_guards(f"{label}, workspace")
        for t, r in self.results.items():
            r.check(f"{label}, {t.get_name()}")

    def try_all(self, label):
        """Every plan at its index; gives the seconds of each."""
        seconds = []
        for i in range(self.graph.get_execution_plan_count()):
            at = f"{label}, plan {i} ({self.graph.get_plan_name_at_index(i)})"
            space = self.space(self.graph.get_workspace_size_plan_at_index(i))
            start = time.perf_counter()
            self.checked(at, lambda: self.graph.execute_plan_at_index(self.pack(), space, i, handle=self.handle))
            seconds.append(time.perf_counter() - start)
        assert seconds, f"{label}: no plan"
        return seconds

    def run(self, label, graph=None):
        graph = graph or self.graph
        space = self.space(graph.get_workspace_size())
        self.checked(label, lambda: graph.execute(self.pack(), space, handle=self.handle))


CASES = []


def case(**choices):
    """A function that fills a Client; once for each combination of the choices. `sm` is the GPU that the package thinks
    of: it refuses some graphs by itself. `runtime`: the package copies data itself and needs a CUDA run time for it."""
    def keep(f):
        for values in itertools.product(*choices.values()):
            chosen = dict(zip(choices, values))
            text = " ".join(f"{k}={v}" for k, v in chosen.items())
            CASES.append((f"{f.__module__.split('.')[-1]}.{f.__name__}" + (f" {text}" if text else ""), f, chosen))
        return f
    return keep


CHECKS = []


def check(f):
    """A function of the handle that asserts something by itself."""
    CHECKS.append((f"{f.__module__.split('.')[-1]}.{f.__name__}", f))
    return f


def saved(c, label, runtime):
    """The plan as bytes, loaded into a graph that knows nothing else."""
    blob = c.graph.serialize()
    loaded = cudnn.pygraph(device_property=cudnn.create_device_properties(0))
    loaded.deserialize(blob)
    c.run(f"{label}, loaded without a handle", loaded)
    if runtime:  # the package runs the plan once while it captures a stream
        loaded = cudnn.pygraph(handle=c.handle)
        loaded.deserialize(c.handle, blob)
        c.run(f"{label}, loaded with a handle", loaded)


def run_case(handle, name, fill, chosen, runtime):
    def made(modes):
        c = Client(handle, name, sm_version=chosen.get("sm", SM))
        fill(c, **{k: v for k, v in chosen.items() if k not in ("sm", "runtime")})
        c.build(modes)
        return c
    c = made([A, FALLBACK])
    seconds = c.try_all("A")
    c.graph.build_plan_at_index(int(np.argmin(seconds)))  # and selects it
    c.run("the fastest")
    saved(c, "the fastest", runtime)
    made([B]).run("B")
    made([FALLBACK]).run("FALLBACK")
    return len(seconds)
