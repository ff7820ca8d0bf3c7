#!/usr/bin/env bash
# What plans gain: decode speed without and with them, in turns, and dispatches and barriers a token.
#
#   bench/graph.sh [MODEL.gguf]      (default: the built-in model)
#
# ROUNDS (7), GEN (128), THREADS (0: one a core) come from the environment.
set -euo pipefail
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
model=()
[ $# -eq 0 ] || model=(-m "$1")
rounds=${ROUNDS:-7} gen=${GEN:-128} threads=${THREADS:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bench_decode() {  # off or on
  "$assay" bench -q "${model[@]}" -p 0 -n "$gen" -t "$threads" -r 3 --json --graph "$1" >"$work/out.json"
  row_of "$work/out.json" decode >"$work/last"
  cat "$work/last" >>"$work/$1"
}

for ((round = 1; round <= rounds; ++round)); do
  bench_decode off
  off=$(cat "$work/last")
  bench_decode on
  awk -v off="$off" -v on="$(cat "$work/last")" 'BEGIN {print on / off}' >>"$work/ratio"
done
printf 'decode, tokens a second (medians of %s rounds): graph off %.1f, on %.1f; median ratio %.3f\n' \
  "$rounds" "$(median <"$work/off")" "$(median <"$work/on")" "$(median <"$work/ratio")"
"$assay" bench -q "${model[@]}" -p 0 -n 2 -r 1 -t "$threads" --backend null | grep '^a token'
