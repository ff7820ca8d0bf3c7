#!/usr/bin/env bash
# Decode speed while another process takes one core: at least half of the speed must be left.
#
#   bench/neighbour.sh [MODEL.gguf]      (default: the built-in model)
#
# ROUNDS (3), GEN (64), THREADS (0: one a core) come from the environment. Exit status 1 when less than half is left.
set -euo pipefail
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
model=()
[ $# -eq 0 ] || model=(-m "$1")
rounds=${ROUNDS:-3} gen=${GEN:-64} threads=${THREADS:-0}
work=$(mktemp -d)
neighbour=
stop_neighbour() {
  [ -z "$neighbour" ] || kill "$neighbour" 2>/dev/null || true
  [ -z "$neighbour" ] || wait "$neighbour" 2>/dev/null || true
  neighbour=
}
trap 'stop_neighbour; rm -rf "$work"' EXIT

bench_decode() {
  "$assay" bench -q "${model[@]}" -p 0 -n "$gen" -t "$threads" -r 3 --json >"$work/out.json"
  row_of "$work/out.json" decode
}

for ((round = 1; round <= rounds; ++round)); do
  bench_decode >>"$work/alone"
  # A neighbour that never sleeps, held on the first core.
  taskset -c 0 sh -c 'while :; do :; done' &
  neighbour=$!
  bench_decode >>"$work/beside"
  stop_neighbour
done
alone=$(median <"$work/alone") beside=$(median <"$work/beside")
share=$(ratio "$beside" "$alone")
printf 'decode, tokens a second (medians of %s rounds): alone %.1f, beside a busy neighbour %.1f; share %s\n' \
  "$rounds" "$alone" "$beside" "$share"
awk -v share="$share" 'BEGIN {exit share < 0.5}'
