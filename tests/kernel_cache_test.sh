#!/usr/bin/env bash
# Where kernels come from, seen from several processes: the compiler, the disk, a pack; damage, sharing, limits.
# Usage: kernel_cache_test.sh path/to/tessera. Exit code 77: skipped, there is no compiler for kernels.
set -u
tessera=$1
if ! "$tessera" doctor --json | python3 -c 'import json,sys; sys.exit(not json.load(sys.stdin)["nvrtc"]["found"])'; then
  echo "skipped: NVRTC was not found, no kernel can be compiled"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
export TESSERA_CACHE=$work/cache TESSERA_KERNEL_PACK=$work/none TESSERA_LOG=2
cat >"$work/graphs.txt" <<'G'
x = input f32[64]; y = relu x; output y
x = input bf16[64,128]; y = softmax x; output y
G

# expect TEXT CONDITION [OPTION...]: compiles the graphs and checks the JSON report `d`.
expect() {
  local text=$1 condition=$2
  shift 2
  "$tessera" compile "$work/graphs.txt" --device h200 --json "$@" >"$work/out" 2>"$work/err"
  if ! python3 -c "import json,sys; d=json.load(open('$work/out')); sys.exit(not ($condition))"; then
    echo "FAIL: $text: $condition"
    cat "$work/out" "$work/err" | head -20
    failures=$((failures + 1))
  fi
}
said() {
  grep -qF -- "$1" "$work/err" || { echo "FAIL: standard error lacks: $1"; failures=$((failures + 1)); }
}
files() { ls "$TESSERA_CACHE/kernels"/*.kernel; }

expect "an empty cache compiles" 'd["compiled"] == 2 and d["from_disk"] == 0'
expect "a second process reads the disk" 'd["compiled"] == 0 and d["from_disk"] == 2'
expect "a pack is written" 'd["problems"] == []' --pack "$work/pack"
TESSERA_KERNEL_PACK=$work/pack expect "a pack comes first" 'd["from_pack"] == 2 and d["compiled"] + d["from_disk"] == 0'
TESSERA_KERNEL_PACK=$work/pack TESSERA_NVRTC=$work/none \
  expect "a pack needs no compiler" 'd["from_pack"] == 2 and d["problems"] == []'

first=$(files | head -1)
printf 'x' | dd of="$first" bs=1 seek=200 conv=notrunc status=none
expect "a damaged file is made again" 'd["compiled"] == 1 and d["from_disk"] == 1'
said "is damaged and will be made again"
truncate -s 100 "$first"
expect "a truncated file is made again" 'd["compiled"] == 1 and d["from_disk"] == 1'
expect "and then read" 'd["from_disk"] == 2'

rm -rf "$TESSERA_CACHE"
pids=()
for i in 1 2 3 4; do
  "$tessera" compile "$work/graphs.txt" --device h200 --json >"$work/out.$i" 2>&1 &
  pids+=($!)
done
for p in "${pids[@]}"; do
  wait "$p" || { echo "FAIL: one of four processes at once failed"; failures=$((failures + 1)); }
done
expect "four processes at once leave a good cache" 'd["from_disk"] == 2'
[ "$(ls "$TESSERA_CACHE/kernels" | wc -l)" -eq 2 ] || { echo "FAIL: files are left over"; ls "$TESSERA_CACHE/kernels"; failures=$((failures + 1)); }

for folder in "$TESSERA_CACHE" "$TESSERA_CACHE/kernels"; do
  chmod 777 "$folder"
  expect "a folder that others can write is not used" 'd["compiled"] == 2 and d["from_disk"] == 0'
  said "could be written by others and is not used"
  chmod 700 "$folder"
done

head -c 3000000 /dev/zero >"$TESSERA_CACHE/kernels/old.kernel"
touch -d '2 days ago' "$TESSERA_CACHE/kernels/old.kernel"
rm "$(files | head -1)"
TESSERA_KERNEL_CACHE_MB=1 expect "old files go when the folder is too large" 'd["compiled"] == 1'
[ ! -e "$TESSERA_CACHE/kernels/old.kernel" ] || { echo "FAIL: the old file is still there"; failures=$((failures + 1)); }
expect "what was used stays" 'd["from_disk"] == 2'

if [ $failures -ne 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "all passed"
