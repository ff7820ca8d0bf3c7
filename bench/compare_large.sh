#!/usr/bin/env bash
# How fast `assay compare` is on traces of ten million lines (C5), beside `cmp` and `diff` on the same files in the same
# run: equal, renumbered, one dispatch inserted, one argument changed, one buffer inserted (which shifts every number).
#
#   bench/compare_large.sh [FOLDER]       (default: a temporary folder; about 4 GB are needed)
#
# LINES (10000000), ROUNDS (3) and DIFF_LIMIT (120: seconds after which `diff` is stopped) come from the environment.
set -euo pipefail
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
make_trace=${MAKE_TRACE:-$bench_root/build/make_trace}
lines=${LINES:-10000000} rounds=${ROUNDS:-3} diff_limit=${DIFF_LIMIT:-120}
work=$(mktemp -d -p "${1:-${TMPDIR:-/tmp}}")
trap 'rm -rf "$work"' EXIT

"$make_trace" "$work/plain.trace" "$lines" plain
printf 'trace: %s lines, %s bytes\n' "$(wc -l <"$work/plain.trace")" "$(stat -c %s "$work/plain.trace")"

# Seconds and peak memory in MB of a command, whose output is dropped; its exit status is in `status`.
measure() {
  status=0
  /usr/bin/time -f '%e %M' -o "$work/time" timeout "$diff_limit" "$@" >"$work/out" 2>&1 || status=$?
  tail -n 1 "$work/time" | awk '{printf "%s %d\n", $1, $2 / 1024}'
}

for variant in plain renumbered inserted changed inserted-buffer; do
  other=$work/other.trace
  "$make_trace" "$other" "$lines" "$variant"
  cat "$work/plain.trace" "$other" >/dev/null  # Both lie in the page cache.
  for ((round = 1; round <= rounds; ++round)); do
    measure "$assay" compare -q "$work/plain.trace" "$other" >>"$work/assay"
    verdict=$status
    measure cmp -s "$work/plain.trace" "$other" >>"$work/cmp"
    # A single run of the slow ones is enough.
    if ((round == 1)); then
      measure diff -q "$work/plain.trace" "$other" >>"$work/diff_q"
      measure diff "$work/plain.trace" "$other" >>"$work/diff"
      diff_status=$status
    fi
  done
  seconds() { cut -d ' ' -f 1 "$work/$1" | median; }
  memory() { cut -d ' ' -f 2 "$work/$1" | sort -n | tail -n 1; }
  printf '%-16s assay rc %s %6.2f s %5s MB | cmp %6.2f s | diff -q %6.2f s | diff %6.2f s %5s MB%s\n' "$variant" \
    "$verdict" "$(seconds assay)" "$(memory assay)" "$(seconds cmp)" "$(seconds diff_q)" "$(seconds diff)" \
    "$(memory diff)" "$( ((diff_status == 124)) && echo ' (stopped)' || true)"
  printf '%-16s assay / cmp %s, assay / diff %s\n' '' "$(ratio "$(seconds assay)" "$(seconds cmp)")" \
    "$(ratio "$(seconds assay)" "$(seconds diff)")"
  rm -f "$work"/assay "$work"/cmp "$work"/diff "$work"/diff_q "$work"/out "$other"
done
