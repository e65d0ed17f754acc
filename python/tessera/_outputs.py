# SPDX-License-Identifier: Apache-2.0
"""New arrays for the outputs of a plan, made by the library of its first input that is an array."""
import sys

from ._streams import library_of

# Names of types as numpy and PyTorch spell them. A type that a library lacks is given as unsigned numbers of its size,
# or as bytes.
NUMPY = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i8": "int8",
         "u8": "uint8", "bool": "bool", "c64": "complex64", "c128": "complex128"}
TORCH = NUMPY | {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e8m0": "float8_e8m0fnu"}
UNSIGNED = {"bf16": "uint16", "e4m3": "uint8", "e5m2": "uint8", "e8m0": "uint8", "e5m3": "uint8"}
FORMATS = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "i8": "b", "u8": "B", "bool": "?"}


class Output:
    """An output of a plan. Called with the arrays of the inputs, it makes one for the output."""

    def __init__(self, name, dtype, dims, strides, span, size, input_types):
        """`span`: elements from the first to the last; `size`: bytes."""
        self.name, self.dtype, self.dims, self.strides = name, dtype, tuple(dims), tuple(strides)
        self.span, self.size, self.input_types = span, size, input_types
        self.makers = {}  # by the type of the array whose library allocates

    def __call__(self, *inputs):
        for array in inputs:
            kind = type(array)
            if kind not in self.makers:
                self.makers[kind] = self._maker(array)
            if self.makers[kind]:
                return self.makers[kind](array, inputs)
        raise ValueError(f"output '{self.name}' was not given, and no input is an array whose library could allocate it")

    def _maker(self, array):
        library = library_of(array)
        if library == "torch" and hasattr(array, "new_empty"):
            return self._torch()
        if library in ("numpy", "cupy"):
            return self._numpy(sys.modules[library])
        if library in ("jax", "jaxlib"):
            return self._jax
        return None if isinstance(array, (int, float, complex)) else self._memory

    def _torch(self):
        torch = sys.modules["torch"]
        if self.dtype not in TORCH:
            return lambda like, _: torch.empty(self.size, dtype=torch.uint8, device=like.device)
        kind = getattr(torch, TORCH[self.dtype])
        return lambda like, _: torch.empty_strided(self.dims, self.strides, dtype=kind, device=like.device)

    def _numpy(self, numpy):
        if self.dtype in UNSIGNED:
            # As the caller writes this type himself, for instance with ml_dtypes.
            place = next((i for i, t in enumerate(self.input_types) if t == self.dtype), None)
            if place is not None:
                return lambda _, inputs: self._strided(numpy, inputs[place].dtype)
            return lambda *_: self._strided(numpy, UNSIGNED[self.dtype])
        if self.dtype not in NUMPY:
            return lambda *_: numpy.empty(self.size, "uint8")
        kind, dims, empty = numpy.dtype(NUMPY[self.dtype]), self.dims, numpy.empty
        if self._row_major():
            return lambda *_: empty(dims, kind)
        return lambda *_: self._strided(numpy, kind)

    def _strided(self, numpy, kind):
        memory = numpy.empty(self.span, kind)
        return numpy.lib.stride_tricks.as_strided(memory, self.dims, [s * memory.itemsize for s in self.strides])

    def _jax(self, array, inputs):
        # Arrays of JAX cannot be written. On the host it takes numpy's for its own.
        if next(iter(array.devices())).platform != "cpu":
            raise ValueError(f"output '{self.name}': arrays of JAX cannot be written; give one of another library")
        import numpy
        return self._numpy(numpy)(array, inputs)

    def _memory(self, *_):
        if self.dtype not in FORMATS or not self._row_major() or not self.size:
            raise ValueError(f"output '{self.name}' was not given, and the first input belongs to no library that "
                             "could allocate it")
        return memoryview(bytearray(self.size)).cast(FORMATS[self.dtype], self.dims)

    def _row_major(self):
        step = 1
        for d, s in zip(reversed(self.dims), reversed(self.strides)):
            if d > 1 and s != step:
                return False
            step *= d
        return True
