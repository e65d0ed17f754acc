#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the built program through its main paths: exit codes and key phrases. Usage: cli_test.sh path/to/tessera
set -u
tessera=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
relu='x = input f32[2,3]; y = relu x; output y'

# expect CODE PHRASE ARGS...: runs the program; stdout and stderr together must contain PHRASE.
expect() {
  local code=$1 phrase=$2 got
  shift 2
  "$tessera" "$@" >"$work/log" 2>&1
  got=$?
  if [ $got -ne "$code" ] || ! grep -qF -- "$phrase" "$work/log"; then
    echo "FAIL: tessera $*"
    echo "  exit code $got, expected $code; output must contain: $phrase"
    sed 's/^/  | /' "$work/log" | head -20
    failures=$((failures + 1))
  fi
}

# check TEXT COMMAND...: any other condition.
check() {
  local text=$1
  shift
  if ! "$@"; then
    echo "FAIL: $text"
    failures=$((failures + 1))
  fi
}

json() { python3 -c "import json,sys; d=json.load(open('$work/log')); sys.exit(not ($1))"; }

# usage
expect 0 "Exit codes: 0 all is well" --help
expect 0 "tessera 0." --version
expect 2 "error: A subcommand is required"
expect 2 "did you mean 'run'?" runn
expect 2 "error:" run "$relu" --no-such-option
expect 2 "error: GRAPH is required" run
expect 0 "tessera 0." version
for command in run explain test bench tune list dump compile doctor exec version; do
  expect 0 "tessera $command" $command --help
  check "the examples of $command are of that command" bash -c "grep -A9 -E '^Examples?:' '$work/log' | grep -q 'tessera $command'"
done
expect 2 "--seed: At Most 1 required but received 2" run "$relu" --seed 1 --seed 2
expect 2 "'-1' is no whole number >= 0" run "$relu" --seed -1
expect 2 "'99999999999999999999' does not fit in 64 bits" run "$relu" --seed 99999999999999999999
expect 2 "'99999999999999999999' does not fit in 64 bits" test --fuzz 99999999999999999999
expect 2 "disallowed flag override" run "$relu" --json=5
expect 2 "did you mean '--help'?" help
expect 2 "--fuzz is -3" test --fuzz -3
expect 2 "'-1' is no whole number >= 0" test --fuzz 1 --seed -1
TESSERA_THREADS=abc expect 2 "TESSERA_THREADS='abc': it must be a whole number >= 0" run "$relu"
expect 2 "engine gemm_cuda does not run on the device cpu" run "$relu" --engine gemm_cuda
expect 2 "engine gemm_cuda does not run on the device cpu" test --engine gemm_cuda --fuzz 1
TESSERA_LOG=3 TESSERA_LOG_FILE="$work/none/log" expect 0 "cannot be written; lines go to standard error" run "$relu"
"$tessera" runn >"$work/out" 2>/dev/null
check "errors go to stderr" test ! -s "$work/out"

# run
expect 0 "y f32[2,3]:" run "$relu"
expect 0 "agree with the oracle" run "$relu" --check
expect 0 "min 0, max 1, mean 0.5, NaN 0" run "$relu" --data x=values:1,-1
expect 0 '"run_ms"' run "$relu" --json
check "run --json is JSON" json "d['outputs'][0]['sizes'] == [2, 3]"
check "its elements are numbers" json "all(isinstance(v, (int, float)) for v in d['outputs'][0]['first'])"
for arguments in "run nonsense --json" "run --json" "list colours --json"; do
  "$tessera" $arguments >"$work/log" 2>/dev/null
  check "errors of '$arguments' are JSON" json "d['exit_code'] == 2 and len(d['error']) > 10"
done
expect 2 "'a' is no number" run "$relu" --data x=values:1,a
expect 2 "'' is no number" run "$relu" --data x=values:1,
expect 2 "has 3 values after the colon; it takes 2" run "$relu" --data x=range:1,2,3
expect 2 "the first number must not exceed the second" run "$relu" --data x=range:2,1
expect 2 "must count 1 or more" run "$relu" --data x=below:0
expect 2 "'x' u8[2]: 300 does not fit in u8" run 'x = input u8[2]; y = identity x; output y' --data x=values:1,300
expect 2 "'1.5' is no whole number" run 'x = input u8[2]; y = identity x; output y' --data x=values:1.5
expect 2 "input 'x' is given twice" run "$relu" --data x=ones --data x=zeros
expect 2 "output 'y' is given twice" run "$relu" --out y="$work/a.npy" --out y="$work/b.npy"
expect 0 "NaN 3" run 'x = input f32[6]; y = log x; output y' --data x=values:1,-1
expect 0 "empty" run 'x = input f32[0,3]; y = relu x; output y' --check
echo "$relu" >"$work/graph.txt"
expect 0 "y f32[2,3]:" run "$work/graph.txt"
expect 2 "neither a file nor a graph" run "$work/none.txt"
for command in run explain dump "test" "bench --seconds 0.01" "tune --seconds 0.01 --out $work/pipe.tuning"; do
  echo "$relu" | "$tessera" $command - >"$work/log" 2>&1
  check "$command reads standard input" test $? -eq 0
  "$tessera" $command <(echo "$relu") >"$work/log" 2>&1
  check "$command reads a pipe" test $? -eq 0
done
# a file that holds one graph, a statement on each line, is a case as well
printf '# a graph\nx = input f32[2,3]\n\ny = relu x\r\noutput y\n' >"$work/lines.txt"
for command in run "test" "bench --seconds 0.01"; do
  expect 0 "" $command "$work/lines.txt"
done
expect 0 "3 passed, 0 failed, 0 skipped" test - <"$work/lines.txt"
printf '\xef\xbb\xbf%s\n' "$relu" >"$work/mark.txt"
expect 0 "y f32[2,3]:" run "$work/mark.txt"
expect 0 "0 failed" test "$work/mark.txt"
expect 0 "0 failed" test "$relu"
expect 0 "plan " bench "$relu" --seconds 0.01
expect 0 "y f32[4]:" run 'x = input f32[4]; y = silu(x); output y' --check
expect 0 "y f32[1,1]:" run 'x = input f32[4,3]; y = mean (sum x axes=1); output y' --check
expect 2 "arguments are separated by spaces" run 'x = input f32[4]; y = add(x, x); output y'
expect 2 "did you mean 'relu'?" run 'x = input f32[2,3]; y = relo x; output y'
expect 2 "line 1, column 25" run 'x = input f32[2,3]; y = relo x; output y'
expect 2 "there is no engine named 'abc'" run "$relu" --engine abc
expect 0 "reference(1)" run "$relu" --engine reference
expect 2 "no input named 'z'" run "$relu" --in z=a.npy
expect 2 "must read NAME=VALUE" run "$relu" --in x
expect 2 "cannot read" run "$relu" --in x="$work/none.npy"
expect 2 "unknown kind of data" run "$relu" --data x=pink
check "two seeds differ" test "$("$tessera" run "$relu" --seed 1 | head -1)" != "$("$tessera" run "$relu" --seed 2 | head -1)"
check "one seed repeats" test "$("$tessera" run "$relu" --seed 1 | head -1)" == "$("$tessera" run "$relu" --seed 1 | head -1)"

# devices
expect 0 "emulated" list devices
expect 0 '"copy_gb_s"' list devices --json
check "list devices --json is JSON" json "[d for d in d if d['name'] == 'h200'][0]['target'] == 'sm_90a'"
expect 2 "there is no device 'gpu'; devices: cpu" run "$relu" --device gpu
expect 2 "must read cuda:NUMBER" run "$relu" --device cuda:
expect 0 "agree with the oracle" run "$relu" --device emulated --check
expect 0 "host_cuda(1)" run "$relu" --device emulated --engine host_cuda --check
expect 0 "measured" explain "$relu" --device emulated --measure
expect 2 "tune on cpu or cuda" tune "$relu" --device emulated --out "$work/tuning"
TESSERA_CUDA_DRIVER="$work/none.so" expect 2 "there is no CUDA device: the CUDA driver was not found" run "$relu" --device cuda
for command in "run" "explain --measure" "tune --out $work/tuning"; do
  expect 2 "not run; to run use cpu, cuda or emulated" $command "$relu" --device h200 --engine host_cuda
done
expect 2 "not run; to run use cpu, cuda or emulated" test --device h200

# .npy files: what is written reads back the same, for every kind of type and for strides
for type in f64 f32 f16 bf16 e4m3 e5m2 e5m3 e8m0 e2m1 i64 i32 i8 u8 i4 u4 bool bit c64; do
  expect 0 "y $type" run "x = input $type[3,5]; y = identity x; output y $type" --out y="$work/a.npy" --seed 3
  expect 0 "y $type" run "x = input $type[3,5]; y = identity x; output y $type" --in x="$work/a.npy" --out y="$work/b.npy" --seed 4
  check "npy round trip of $type" cmp "$work/a.npy" "$work/b.npy"
done
expect 0 "y f32" run 'x = input f32[2,3,4,5]; y = identity x; output y f32[2,3,4,5]:nhwc' --out y="$work/a.npy"
expect 0 "y f32" run 'x = input f32[2,3,4,5]:nhwc; y = identity x; output y f32[2,3,4,5]:nchw' --in x="$work/a.npy" --out y="$work/b.npy" --seed 4
check "npy files are row-major whatever the strides" cmp "$work/a.npy" "$work/b.npy"
expect 0 "y f32" run 'x = input f32[2,2]; y = identity x; output y' --data x=values:1,2.5,-3,0 --out y="$work/f.npy"
expect 0 "1 2.5 -3 0" run 'x = input bf16[2,2]; y = identity x; output y f32' --in x="$work/f.npy"
expect 2 "input 'x' f32[3,2]: the file '$work/f.npy' holds <f4 [2,2]; its sizes must be [3,2]" run 'x = input f32[3,2]; y = relu x; output y' --in x="$work/f.npy"
expect 2 "allowed types: integers or bool" run 'x = input i32[2,2]; y = neg x; output y' --in x="$work/f.npy"
expect 0 "y i64" run 'x = input i64[2]; y = identity x; output y' --data x=values:300,2 --out y="$work/i.npy"
expect 0 "300 2" run 'x = input i32[2]; y = identity x; output y' --in x="$work/i.npy"
expect 2 "its value 300 does not fit in i8" run 'x = input i8[2]; y = identity x; output y' --in x="$work/i.npy"
# files as NumPy and ml_dtypes write them: big-endian, first dimension fastest, 16 bits, types that NumPy has no name for
python3 - "$work" <<'END'
import struct, sys
def save(name, descr, shape, data, fortran=False):
    header = str({"descr": descr, "fortran_order": fortran, "shape": shape})
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    open(f"{sys.argv[1]}/{name}.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
save("big", ">f4", (2, 2), struct.pack(">4f", 1, 2.5, -3, 4))
save("columns", "<f8", (2, 2), struct.pack("<4d", 1, -3, 2.5, 4), True)
save("i2", "<i2", (4,), struct.pack("<4h", 1, -2, 300, 4))
save("u2", ">u2", (4,), struct.pack(">4H", 1, 2, 65535, 4))
save("bf16", "<V2", (4,), bytes([0x80, 0x3f, 0x20, 0x40, 0x40, 0xc0, 0x80, 0x40]))
save("e5m2", "<f1", (4,), bytes([0x3c, 0x41, 0xc2, 0x44]))
save("e4m3", "<V1", (4,), bytes([0x38, 0x42, 0xc4, 0x48]))
save("e2m1", "|V1", (4,), bytes([2, 4, 13, 6]))
save("i4", "<V1", (4,), bytes([1, 14, 7, 8]))
for i, shape in enumerate([(-2, 2), (10**20,), (2**62,), (2**40, 2**40), (1,) * 9]):
    save(f"odd{i}", "<f4", shape, bytes(16))
save("records", [("a", "<f4"), ("b", "<i4")], (2,), bytes(16))
END
for name in big columns; do
  expect 0 "1 2.5 -3 4" run 'x = input f32[2,2]; y = identity x; output y' --in x="$work/$name.npy"
done
expect 0 "1 -2 300 4" run 'x = input i32[4]; y = identity x; output y' --in x="$work/i2.npy"
expect 0 "1 2 65535 4" run 'x = input i64[4]; y = identity x; output y' --in x="$work/u2.npy"
for type in bf16 e5m2 e4m3; do
  expect 0 "1 2.5 -3 4" run "x = input $type[4]; y = identity x; output y f32" --in x="$work/$type.npy"
done
expect 0 "1 2 -3 4" run 'x = input e2m1[4]; y = identity x; output y f32' --in x="$work/e2m1.npy"
expect 0 "1 -2 7 -8" run 'x = input i4[4]; y = identity x; output y i32' --in x="$work/i4.npy"
for i in 0 1 2 3 4; do
  expect 2 "error: " run 'x = input f32[2,2]; y = relu x; output y' --in x="$work/odd$i.npy"
  check "odd sizes are no internal error" bash -c "! grep -q internal '$work/log'"
done
expect 2 "sizes (-2, 2) are not understood" run 'x = input f32[2,2]; y = relu x; output y' --in x="$work/odd0.npy"
expect 2 "NumPy's records, [('a', '<f4'), ('b', '<i4')]" run 'x = input f32[2,2]; y = relu x; output y' --in x="$work/records.npy"
head -c 20 "$work/f.npy" >"$work/short.npy"
expect 2 "truncated" run 'x = input f32[2,2]; y = relu x; output y' --in x="$work/short.npy"
expect 2 "cannot read '$work'" run "$relu" --in x="$work"
expect 2 "is given by --in and by --data" run 'x = input f32[2,2]; y = relu x; output y' --in x="$work/f.npy" --data x=ones
expect 2 "is not a .npy file" run 'x = input f32[2,2]; y = relu x; output y' --in x="$work/graph.txt"
expect 2 "cannot write" run "$relu" --out y="$work/none/y.npy"

# another library
expect 2 "cannot open a libcudnn.so.9: $work/none" test --cudnn "$work/none"
expect 2 "is a name; give the path" test --cudnn libcudnn.so.9

# explain
expect 0 "step 1: " explain "$relu"
expect 0 "step 1: reference" explain "$relu" --engine reference --no-fuse
expect 0 '"answers"' explain "$relu" --json --engine reference
check "explain --json is JSON" json "d['steps'][0]['engine'] == 'reference' and d['nodes'][0]['op'] == 'relu'"
expect 0 "digraph plan" explain "$relu" --dot
expect 0 "wrote" explain "$relu" --html "$work/page.html"
check "the page holds a drawing" grep -q "<svg" "$work/page.html"
check "the page fetches nothing" bash -c "! grep -E 'src=|href=\"[^#]|@import|url\(http' '$work/page.html'"
check "steps and drawing are linked both ways" bash -c "grep -q 'href=\"#step1\"' '$work/page.html' && grep -q 'id=\"step1\"' '$work/page.html' && grep -q 'href=\"#row1\"' '$work/page.html' && grep -q 'id=\"row1\"' '$work/page.html'"
check "refusals are folded" grep -q "<details><summary>[0-9]* engines* declined" "$work/page.html"
check "the page fits a phone" bash -c "grep -q 'initial-scale=1' '$work/page.html' && grep -q 'max-width:760px' '$work/page.html'"
expect 2 "--json and --dot exclude each other" explain "$relu" --json --dot
"$tessera" explain "$relu" >/dev/full 2>"$work/log"
check "a full disk is an error" test $? -eq 2
check "and said so" grep -q "could not be written" "$work/log"
expect 2 "cannot write" explain "$relu" --html "$work/none/page.html"

# test
printf '%s\n' "$relu" 'x = input f32[2,3]; y = relu z; output y  #! error="unknown tensor"' >"$work/good.txt"
printf '%s\n' "$relu" 'x = input f32[2,3]; y = relu x; output y  #! error="impossible"' >"$work/bad.txt"
expect 0 "0 failed, 0 skipped" test "$work/good.txt"
expect 1 "1 failed, 0 skipped" test "$work/bad.txt"
expect 1 "expected to be refused with 'impossible'" test "$work/bad.txt"
expect 1 '"failed": 1' test "$work/bad.txt" --json
check "test --json is JSON" json "len(d['failures']) == 1"
expect 2 "no case matches" test "$work/good.txt" --filter nothing_like_this
expect 2 "neither a file nor a graph" test "$work/none.txt"
expect 2 "there is no engine named" test "$work/good.txt" --engine abc
expect 2 "engine gemm_cpu accepts no case that was given" test "$relu" --engine gemm_cpu
expect 2 "there is no case in what was given" test - </dev/null
"$tessera" test "$relu" --filter nothing_like_this --json >"$work/log" 2>/dev/null
check "a filter that matches nothing is one JSON value" json "d['exit_code'] == 2"
expect 2 "--fuzz runs random graphs" test --fuzz 3 "$relu"
expect 2 "--fuzz runs random graphs" test --fuzz 3 --filter relu
expect 2 "--heavy is for --fuzz" test --heavy
expect 2 "--kind is for --fuzz" test --kind product
expect 2 "there is no kind of heavy graph 'matmul'; kinds: attention, convolution" test --fuzz 3 --kind matmul
expect 2 "--ways is 0" test "$relu" --ways 0
expect 0 "0 failed" test --fuzz 32 --kind attention --ways 2
check "the last line sums up" bash -c "'$tessera' test '$work/good.txt' | tail -1 | grep -Eq '^[0-9]+ passed, 0 failed, [0-9]+ skipped$'"

expect 2 "--conversions compares device code" test --conversions
expect 0 "stopped after 0.5 seconds" test --fuzz 1000000 --seconds 0.5
expect 0 "stopped after 0.5 seconds" test --filter x --seconds 0.5

# compile and dump, as far as they need no compiler for kernels
TESSERA_NVRTC="$work/none" TESSERA_KERNEL_PACK="$work/none" expect 2 "no kernel can be compiled: NVIDIA's run-time compiler" compile "$work/good.txt"
(
  export TESSERA_NVRTC="$work/none" TESSERA_KERNEL_PACK="$work/none" TESSERA_CACHE="$work/no_kernels"
  expect 0 "h200" explain "$relu" --device h200
  expect 0 "not compiled: NVIDIA's run-time compiler" dump "$relu"
  expect 0 "__global__" dump "$relu" --src
  expect 2 "there is no machine code: NVIDIA's run-time compiler" dump "$relu" --sass
  expect 2 "a kernel must be compiled, but NVIDIA's run-time compiler" dump "$relu" --ptx
  exit $failures
)
failures=$?
expect 2 "plans for --device cpu have no kernels" compile "$work/good.txt" --device cpu
expect 2 "there is no device 'h300'" compile "$work/good.txt" --device h300
expect 2 "no case matches" compile "$work/good.txt" --filter nothing_like_this
expect 2 "one or the other" dump --json --src "$relu"
expect 0 '"op": "relu"' dump --json "$relu"
check "dump --json is JSON" json "d['nodes'][0]['out'] == d['outputs'] == ['y']"

# the record of the last run on a GPU
root=$(dirname "$0")/..
record() { "$root/scripts/check_gpu_record" "$(realpath "$tessera")" "$work/record.json" >"$work/log" 2>&1; }
record
check "a missing GPU record is a warning" grep -q "never tested on a GPU" "$work/log"
echo '{"failed": 0, "kernels_hash": "0", "commit": "abc"}' >"$work/record.json"
record
check "an old GPU record is a warning" grep -q "newer than its last GPU run" "$work/log"
"$tessera" doctor --json | python3 -c "import json,sys; print(json.dumps({'failed': 0, 'commit': 'abc', 'kernels_hash': json.load(sys.stdin)['kernels_hash']}))" >"$work/record.json"
record
check "a current GPU record is not" grep -q "^0 warnings" "$work/log"

# bench
echo 'x = input f32[64]; y = relu (add x 1); output y' >"$work/suite.txt"
expect 0 "look up a cached plan" bench "$work/suite.txt" --seconds 0.01 --json "$work/bench.json"
head -1 "$work/bench.json" >"$work/log"
check "bench writes JSON lines" json "all(k in d for k in 'suite case op dtype engine ms peers ratio cpu commit'.split()) and d['peers']['copy'] > 0"
expect 2 "no case matches" bench "$work/suite.txt" --filter nothing_like_this
expect 2 "--candidates is for GPUs" bench "$work/suite.txt" --candidates
expect 2 "--peer is for GPUs" bench "$work/suite.txt" --peer cudnn=libcudnn.so.9
expect 2 "cannot write '/dev/full'" bench "$work/suite.txt" --seconds 0.01 --json /dev/full
expect 0 "is not there for '$work/none'" bench "$work/suite.txt" --seconds 0.01 --python "$work/none"

# tune: measures, remembers, and plans by what it found
softmax='x = input f32[64,64]; y = softmax x; output y'
expect 0 "1 records of this machine" tune "$softmax" --out "$work/tuning" --seconds 0.01
export TESSERA_TUNING="$work/tuning"
expect 0 "measured" explain "$softmax"
head -c 70 "$work/tuning" >"$work/cut"
export TESSERA_TUNING="$work/cut"
expect 0 "is not used: serialised tuning: the checksum does not match" run "$softmax"
sed '1s/ [0-9.]* / 9.9.9 /' "$work/tuning" >"$work/newer"
export TESSERA_TUNING="$work/newer"
expect 0 "made by version 9.9.9" run "$softmax"
export TESSERA_TUNING="$work/missing"
expect 0 "cannot be read; planning by the cost model" run "$softmax"
unset TESSERA_TUNING
expect 2 "'/dev/full' is no file" tune "$softmax" --out /dev/full
expect 2 "cannot write" tune "$softmax" --out "$work/none/tuning" --seconds 100
expect 2 "exists and cannot be added to" tune "$softmax" --out "$work/cut"
expect 0 "of the memory limit" explain --measure "$softmax"
export TESSERA_CACHE="$work/open"
mkdir -m 777 "$work/open"
expect 0 "could be written by others" run "$softmax"
unset TESSERA_CACHE
expect 2 "too large to allocate here: 4000000000000 bytes" run 'x = input f32[1000000,1000000]; y = relu x; output y'

# list, doctor
for what in ops engines dtypes settings layouts; do
  expect 0 "" list $what
  expect 0 "" list $what --json
  check "list $what --json is JSON" json "len(d) > 0 and 'name' in d[0]"
done
expect 0 "## matmul" list ops --markdown
expect 2 "--markdown is for" list engines --markdown
expect 2 "exclude each other" list ops --markdown --json
expect 2 "not in" list colours
expect 0 "engines" doctor
TESSERA_CUDA_DRIVER="$work/none.so" expect 0 "To use a GPU, install NVIDIA's driver" doctor
TESSERA_NVRTC="$work/none.so" expect 0 "kernels cannot be compiled for a GPU" doctor
expect 0 '"features"' doctor --json
check "doctor --json is JSON" json "d['cpu']['threads'] >= 1"
TESSERA_THREADS=3 "$tessera" doctor >"$work/log"
check "doctor shows changed settings" grep -q "TESSERA_THREADS=3  (changed)" "$work/log"

if [ $failures -ne 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "all passed"
