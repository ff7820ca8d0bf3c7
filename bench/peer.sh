#!/usr/bin/env bash
# Decode and prefill speed beside llama.cpp's, in turns: each round reads the machine's bandwidth, then runs both
# engines on the same model, ids and thread count; the table gives the ratio of the medians over all rounds.
#
#   bench/peer.sh PEER_DIR MODEL.gguf [THREADS...]      (threads: default 1 2)
#
# PEER_DIR holds peer-bench, a harness that prints what `peer-bench --json` does: "runs"[0] with prefill_tok_s and
# decode_tok_s. ROUNDS (3), PROMPT (128), GEN (32) and REPS (3) come from the environment.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,9s/^# \?//p' "$0" >&2; exit 64; }
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
peer_dir=$1
model=$2
shift 2
threads=("$@")
[ ${#threads[@]} -gt 0 ] || threads=(1 2)
rounds=${ROUNDS:-3} prompt=${PROMPT:-128} gen=${GEN:-32} reps=${REPS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
backends=$(find "$peer_dir" -path '*linux-x64/bins/linux-x64/libggml-base.so' -printf '%h\n' -quit 2>/dev/null || true)

run_peer() {
  "$peer_dir/peer-bench" ${backends:+--backend-dir "$backends"} -m "$model" --prompt-len "$prompt" -n "$gen" -t "$1" \
    -r "$reps" --no-mmap --json "$work/peer.json" >"$work/peer.log" 2>&1 || { cat "$work/peer.log" >&2; exit 2; }
  python3 - "$work/peer.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
print(run["prefill_tok_s"], run["decode_tok_s"])
PY
}

run_assay() {
  "$assay" bench -q -m "$model" -p "$prompt" -n 0 -r "$reps" -t "$1" --json >"$work/prefill.json"
  "$assay" bench -q -m "$model" -p 0 -n "$gen" -d "$prompt" -r "$reps" -t "$1" --json >"$work/decode.json"
  echo "$(row_of "$work/prefill.json" prefill) $(row_of "$work/decode.json" decode)"
}

for t in "${threads[@]}"; do
  for ((round = 1; round <= rounds; ++round)); do
    bandwidth=$("$read_bandwidth" "$t")
    read -r peer_prefill peer_decode <<<"$(run_peer "$t")"
    read -r own_prefill own_decode <<<"$(run_assay "$t")"
    echo "$peer_prefill" >>"$work/pp.$t"
    echo "$peer_decode" >>"$work/pd.$t"
    echo "$own_prefill" >>"$work/op.$t"
    echo "$own_decode" >>"$work/od.$t"
    printf 'threads %s round %s: bandwidth %s; decode llama.cpp %.1f, assay %.1f; prefill llama.cpp %.1f, assay %.1f\n' \
      "$t" "$round" "$bandwidth" "$peer_decode" "$own_decode" "$peer_prefill" "$own_prefill"
  done
done

echo
echo "$(basename "$model"): medians of $rounds rounds, tokens a second; prompt $prompt, $gen decoded"
printf '%8s %12s %12s %7s   %12s %12s %7s\n' threads "llama decode" "assay decode" ratio "llama prefill" "assay prefill" ratio
for t in "${threads[@]}"; do
  pd=$(median <"$work/pd.$t") od=$(median <"$work/od.$t") pp=$(median <"$work/pp.$t") op=$(median <"$work/op.$t")
  printf '%8s %12.1f %12.1f %7s   %12.1f %12.1f %7s\n' "$t" "$pd" "$od" "$(ratio "$od" "$pd")" "$pp" "$op" "$(ratio "$op" "$pp")"
done
