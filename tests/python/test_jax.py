"""JAX: plans and functions of tensors as calls of compiled programs, with derivatives."""
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy
import pytest

import tessera
from conftest import expected

jax = pytest.importorskip("jax", reason="JAX is not installed: `pip install jax` into the environment to test with it")
jnp = jax.numpy
pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="calls on a GPU were never tried")


@pytest.fixture
def fuse():
    import tessera.jax
    return tessera.jax.fuse


@pytest.fixture
def rows():
    rng = numpy.random.default_rng(0)
    return jnp.asarray(rng.standard_normal((8, 64), "f")), jnp.asarray(rng.standard_normal((1, 64), "f"))


def norm_gelu(x, scale, eps=1e-5):
    return tessera.gelu(tessera.rms_norm(x, scale, eps=eps))


def reference(x, scale, eps=1e-5):
    return jax.nn.gelu(x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + eps) * scale, approximate=False)


def test_arrays_are_read_by_plans(norm):
    plan, a = norm
    y = plan(**{name: jnp.asarray(x) for name, x in a.items()})
    assert isinstance(y, numpy.ndarray)  # arrays of JAX cannot be written
    numpy.testing.assert_allclose(y, expected(a), atol=1e-5)
    with pytest.raises(tessera.Error, match="output 'y' .* may only be read"):
        plan(**a, y=jnp.zeros((4, 64)))


def test_functions_are_compiled_derived_and_mapped(fuse, rows):
    mine = fuse(norm_gelu)
    assert mine.__name__ == "norm_gelu"
    numpy.testing.assert_allclose(mine(*rows), reference(*rows), atol=1e-5)
    numpy.testing.assert_allclose(jax.jit(mine)(*rows), reference(*rows), atol=1e-5)
    numpy.testing.assert_allclose(mine(*rows, eps=0.5), reference(*rows, 0.5), atol=1e-5)
    numpy.testing.assert_allclose(mine(numpy.asarray(rows[0]), rows[1]), reference(*rows), atol=1e-5)

    def loss(function):
        return lambda x, s: (function(x, s) ** 2).sum()

    for found, wanted in zip(jax.jit(jax.grad(loss(mine), (0, 1)))(*rows), jax.grad(loss(reference), (0, 1))(*rows)):
        numpy.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    several = jnp.stack([rows[0], 2 * rows[0]])
    numpy.testing.assert_allclose(jax.vmap(mine, (0, None))(several, rows[1]), reference(several, rows[1]), atol=1e-5)


def test_several_results_numbers_and_integers(fuse, rows):
    @fuse
    def both(x, index, factor):
        return x * factor, tessera.gather(x, index, axis=0)

    x, index = rows[0], jnp.asarray([3, 1], "int32")
    scaled, picked = jax.jit(both)(x, index, jnp.float32(3))
    numpy.testing.assert_allclose(scaled, 3 * x, rtol=1e-6)
    numpy.testing.assert_array_equal(picked, x[index])
    loss = lambda x, f: sum((y * y).sum() for y in both(x, index, f))
    wanted = lambda x, f: ((x * f) ** 2).sum() + (x[index] ** 2).sum()
    for mine, theirs in zip(jax.grad(loss, (0, 1))(x, jnp.float32(3)), jax.grad(wanted, (0, 1))(x, jnp.float32(3))):
        assert mine.shape == theirs.shape
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-4)


def test_attention_in_bf16(fuse):
    q, k, v = (jax.random.normal(key, (1, 2, 16, 8), "bfloat16") for key in jax.random.split(jax.random.key(0), 3))
    mine, = fuse(lambda q, k, v: tessera.sdpa_fwd(q, k, v, scale=8 ** -0.5, right=0))(q, k, v)
    theirs = jax.nn.dot_product_attention(*(t.swapaxes(1, 2) for t in (q, k, v)), is_causal=True).swapaxes(1, 2)
    numpy.testing.assert_allclose(mine.astype("f"), theirs.astype("f"), atol=3e-2)


def test_plans_and_what_does_not_fit(rows):
    import tessera.jax
    plan = tessera.Graph.parse("x = input f32[8,64]; s = input f32[1,64]; y = mul x s; output y").plan()
    call = jax.jit(lambda *a: tessera.jax.call(plan, *a))
    numpy.testing.assert_allclose(call(*rows), rows[0] * rows[1])
    for given, text in [((rows[1], rows[1]), r"input 'x' f32\[8,64\] was given an array of f32\[1,64\]"),
                        ((rows[0].astype("int32"), rows[1]), r"input 'x' f32\[8,64\] was given an array of i32\[8,64\]"),
                        ((rows[0].astype("uint32"), rows[1]), "XLA's type"),
                        ((rows[0],), "the plan has 2 inputs, but the call has 1")]:
        with pytest.raises(Exception, match=text):
            jax.block_until_ready(call(*given))
    side = tessera.Graph.parse("x = input f32[1,4,3,2]:nhwc; y = relu x; output y").plan()
    with pytest.raises(tessera.Error, match="'x' is f32.1, 4, 3, 2. with strides .* row-major"):
        tessera.jax.call(side, jnp.zeros((1, 4, 3, 2)))


def test_a_compiled_program_is_loaded_by_another_process(tmp_path):
    """Nothing in it is an address of the process that made it."""
    code = """
import jax, numpy, tessera, tessera.jax
plan = tessera.Graph.parse("x = input f32[8,64]; y = exp x; output y").plan()
x = numpy.ones((8, 64), "f")
assert numpy.allclose(jax.jit(lambda x: tessera.jax.call(plan, x))(x), numpy.exp(x))
"""
    settings = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    kept = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **settings})
        kept.append(sorted(p.name for p in tmp_path.iterdir() if p.name.endswith("-cache")))
    assert kept[0] and kept[0] == kept[1], kept


def test_threads_share_a_call(fuse, rows):
    call, wrong = jax.jit(fuse(norm_gelu)), []

    def work(factor):
        for _ in range(50):
            if not numpy.allclose(call(rows[0] * factor, rows[1]), reference(rows[0] * factor, rows[1]), atol=1e-5):
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(float(i + 1),)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


FIELDS = {
    "XLA_FFI_Api_Version Version": "major_version major, minor_version minor",
    "XLA_FFI_Extension_Base Extension": "type type, next next",
    "XLA_FFI_Buffer Buffer": "dtype dtype, data data, rank rank, dims dims",
    "XLA_FFI_ByteSpan Bytes": "ptr data, len size",
    "XLA_FFI_Args Buffers": "size count, types types, args list",
    "XLA_FFI_Rets Buffers": "size count, types types, rets list",
    "XLA_FFI_Attrs Attributes": "size count, types types, names names, attrs list",
    "XLA_FFI_Error_Create_Args ErrorCreate": "message message, errc code",
    "XLA_FFI_Stream_Get_Args StreamGet": "ctx context, stream stream",
    "XLA_FFI_DeviceOrdinal_Get_Args OrdinalGet": "ctx context, device_ordinal ordinal",
    "XLA_FFI_Api Api": "api_version version, XLA_FFI_Error_Create error_create, XLA_FFI_Stream_Get stream_get, "
                       "XLA_FFI_DeviceOrdinal_Get ordinal_get",
    "XLA_FFI_CallFrame CallFrame": "api api, ctx context, stage stage, args arguments, rets results, attrs attributes",
    "XLA_FFI_Metadata Metadata": "api_version version, traits traits, state_type_id state_type",
    "XLA_FFI_Metadata_Extension MetadataExtension": "metadata metadata",
}
VALUES = {"XLA_FFI_Extension_Metadata": "kMetadata", "XLA_FFI_ExecutionStage_EXECUTE": "kExecute",
          "XLA_FFI_AttrType_STRING": "kString", "XLA_FFI_Error_Code_INVALID_ARGUMENT": "kInvalidArgument",
          "XLA_FFI_Error_Code_RESOURCE_EXHAUSTED": "kResourceExhausted", "XLA_FFI_Error_Code_UNIMPLEMENTED": "kUnimplemented",
          "XLA_FFI_Error_Code_INTERNAL": "kInternal"}


def test_the_layout_is_that_of_the_header():
    compiler = shutil.which("g++")
    source = pathlib.Path(__file__).resolve().parents[2] / "python" / "src"
    if not compiler:
        pytest.skip("there is no g++")
    lines = ["#include <xla/ffi/api/c_api.h>", '#include "xla_ffi.hpp"', "using namespace tessera::python;"]
    for pair, fields in FIELDS.items():
        theirs, ours = pair.split()
        for field in fields.split(", "):
            a, b = field.split()
            lines.append(f"static_assert(offsetof({theirs}, {a}) == offsetof(xla::{ours}, {b}));")
            lines.append(f"static_assert(sizeof({theirs}::{a}) == sizeof(xla::{ours}::{b}));")
    lines += [f"static_assert(int({theirs}) == int(xla::{ours}));" for theirs, ours in VALUES.items()]
    lines.append("static_assert(XLA_FFI_API_MAJOR == xla::kMajor && XLA_FFI_API_MINOR >= xla::kMinor);")
    subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{jax.ffi.include_dir()}", f"-I{source}", "-x", "c++", "-"],
                   input="\n".join(lines), text=True, check=True)
