#!/usr/bin/env bash
# What checked mode costs: decode and prefill without and with --checked, in turns, one thread (a checked device runs
# its dispatches on one).
#
#   bench/checked_cost.sh [MODEL.gguf]      (default: the built-in model)
#
# ROUNDS (5), GEN (32), PROMPT (64) come from the environment.
set -euo pipefail
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
model=()
[ $# -eq 0 ] || model=(-m "$1")
rounds=${ROUNDS:-5} gen=${GEN:-32} prompt=${PROMPT:-64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() {  # NAME [FLAG...]
  local name=$1
  shift
  "$assay" bench -q "${model[@]}" -p "$prompt" -n "$gen" -t 1 -r 3 --json "$@" >"$work/out.json"
  row_of "$work/out.json" decode >>"$work/$name.decode"
  row_of "$work/out.json" prefill >>"$work/$name.prefill"
}

for ((round = 1; round <= rounds; ++round)); do
  measure off
  measure on --checked
done
for what in decode prefill; do
  off=$(median <"$work/off.$what") on=$(median <"$work/on.$what")
  printf '%s, tokens a second (medians of %s rounds): unchecked %.1f, checked %.1f: %s times slower\n' \
    "$what" "$rounds" "$off" "$on" "$(awk -v a="$off" -v b="$on" 'BEGIN {printf "%.1f", a / b}')"
done
