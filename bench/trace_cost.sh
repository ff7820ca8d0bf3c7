#!/usr/bin/env bash
# What recording costs in decode time (T11: at most 2 %): decode speed without and with an encode trace, in turns.
#
#   bench/trace_cost.sh [MODEL.gguf]      (default: the built-in model)
#
# ROUNDS (5), GEN (128), THREADS (0: one a core) come from the environment.
set -euo pipefail
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
model=()
[ $# -eq 0 ] || model=(-m "$1")
rounds=${ROUNDS:-5} gen=${GEN:-128} threads=${THREADS:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bench_decode() {  # NAME [FLAG...]
  local name=$1
  shift
  "$assay" bench -q "${model[@]}" -p 0 -n "$gen" -t "$threads" -r 3 --json "$@" >"$work/out.json"
  row_of "$work/out.json" decode >>"$work/$name"
}

for ((round = 1; round <= rounds; ++round)); do
  bench_decode off
  bench_decode on --trace "$work/bench.trace"
done
off=$(median <"$work/off") on=$(median <"$work/on")
printf 'decode, tokens a second (medians of %s rounds): trace off %.1f, on %.1f; recording costs %s %%\n' \
  "$rounds" "$off" "$on" "$(awk -v a="$off" -v b="$on" 'BEGIN {printf "%.1f", (a / b - 1) * 100}')"
printf 'trace: %s bytes\n' "$(stat -c %s "$work/bench.trace")"
