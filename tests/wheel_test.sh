#!/usr/bin/env bash
# Both wheels, installed into a fresh environment and used without the source tree. Usage: wheel_test.sh SOURCE BUILD.
# Skipped (77) where the tools that make wheels cannot be had.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
"$source/scripts/wheel" "$build" || exit $?
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$build"/wheels/*.whl "$work"
python3 -m venv --without-pip "$work/env"
install() { "$build/python/env/bin/pip" --python "$work/env/bin/python" --disable-pip-version-check install --quiet --no-index --no-deps "$@"; }
run() { env -i HOME="$work" PATH="$work/env/bin:/usr/bin:/bin" OMP_WAIT_POLICY=passive "$@"; }
cd "$work"

install tessera-[0-9]*.whl
run python - <<'END'
import array, sys
import tessera
assert tessera.__file__.startswith(sys.prefix), tessera.__file__
g = tessera.Graph()
g.output(tessera.exp(g.input("x", "f32", [3])), "y")
y = g.plan()(array.array("f", [0, 1, 2]))
assert abs(y[1] - 2.718281828) < 1e-6, y.tolist()
c = tessera.Graph.parse("x = input f32[1,16,14,14]; w = input f32[16,16,3,3]; y = conv_fprop x w pad=1,1; output y").plan()
ones = lambda *dims: memoryview(array.array("f", [1] * eval("*".join(map(str, dims))))).cast("B").cast("f", dims)
assert c(ones(1, 16, 14, 14), ones(16, 16, 3, 3))[0, 0, 5, 5] == 144
END
run tessera run 'x = input f32[4,64]; y = gelu (rms_norm x axes=1); output y' --check | grep -q "agree with the oracle"
run python -m tessera doctor >/dev/null
if run python -m tessera exec -- true 2>message; then echo "exec ran without libcudnn.so.9" >&2; exit 1; fi
grep -q "pip install tessera-cudnn" message

install tessera_cudnn-[0-9]*.whl
cat >client.py <<'END'
import ctypes
cudnn = ctypes.CDLL("libcudnn.so.9")
cudnn.cudnnGetVersion.restype = ctypes.c_size_t
assert cudnn.cudnnGetVersion() >= 90000
handle = ctypes.c_void_p()
assert cudnn.cudnnCreate(ctypes.byref(handle)) == 0
ctypes.CDLL("libcudnn_ops.so.9")
END
run python -m tessera exec --device cpu -- python client.py 2>message || { cat message >&2; exit 1; }
grep -q "reports 9" message
if [ -e "$build/kernels" ]; then  # a pack: its kernels are at hand
  run python -m tessera exec --device cpu -- sh -c 'ls "$TESSERA_KERNEL_PACK"' >kernels 2>/dev/null
  grep -q '\.kernel$' kernels
fi
if run python client.py 2>/dev/null; then echo "libcudnn.so.9 is found without exec" >&2; exit 1; fi
echo "both wheels work without the source tree"
