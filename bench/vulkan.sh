#!/usr/bin/env bash
# Speed of the vulkan backend on a GPU, as one table: copy bandwidth, the cost of a dispatch, each operation's share of
# that bandwidth, and decode and prefill of models, beside llama.cpp's Vulkan backend where it is given. Where the device
# has cooperative matrices, products of several tokens and prefill stand there with them as well.
#
#   bench/vulkan.sh [MODEL.gguf...]
#
# DEVICE (a number or part of a name), ROUNDS (3), PROMPT (512), GEN (64), PEER_DIR and OPERATIONS (1; 0 measures models
# alone) come from the environment. PEER_DIR holds peer-bench-vk, a harness that prints what `peer-bench --json` does
# (bench/peer.sh), with its libraries beside it.
set -euo pipefail
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
op_bench=${OP_BENCH:-$bench_root/build/op_bench}
rounds=${ROUNDS:-3} prompt=${PROMPT:-512} gen=${GEN:-64}
device=() peer=${PEER_DIR:-}
[ -z "${DEVICE:-}" ] || device=(--device "$DEVICE")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Best microseconds a dispatch and GB/s of what op_bench prints. A round has so many dispatches that handing it over and
# waiting for it are little beside them, and that a clock that was low rises.
measure() { "$op_bench" --backend vulkan "${device[@]}" "$@" | sed -E 's/.*us +([0-9.]+) .*GB\/s +([0-9.]+) .*/\1 \2/'; }
share() { awk -v a="$1" -v b="$copy" 'BEGIN {printf "%.0f %%", 100 * a / b}'; }

"$assay" devices | sed -n '/^vulkan/,/^[^ v]/p' | grep -v '^null' || true
# Refused with 2 where the device does not have them.
cooperates=0
"$assay" bench -q --backend vulkan "${device[@]}" -p 16 -n 0 -r 1 --cooperative-matrix >"$work/probe" 2>&1 && cooperates=1
operations() {
  read -r _ read_rate <<<"$(measure --op copy --type F32 --tokens 8192 --cols 32768 --set-mib 4096 --repeat 20)"
  copy=$(awk -v r="$read_rate" 'BEGIN {print 2 * r}')
  printf '\ncopy, read and written: %.0f GB/s\n' "$copy"
  read -r small _ <<<"$(measure --op silu_mul --type F32 --cols 32 --set-mib 0 --repeat 2000)"
  read -r apart _ <<<"$(measure --op silu_mul --type F32 --cols 32 --set-mib 0 --repeat 2000 --barriers 0)"
  printf 'a dispatch of 32 values: %s us with a barrier behind it, %s us without\n\n' "$small" "$apart"

  printf '%-20s %-5s %16s %10s %9s %8s\n' operation type shape "us" "GB/s" "of copy"
  row() {  # OP TYPE SHAPE FLAG...
    local op=$1 type=$2 shape=$3
    shift 3
    read -r us rate <<<"$(measure --op "$op" --type "$type" "$@")"
    printf '%-20s %-5s %16s %10s %9s %8s\n' "$op" "$type" "$shape" "$us" "$rate" "$(share "$rate")"
  }
  for type in F16 Q8_0 Q4_0; do
    for shape in '151936 4096' '24576 4096' '12288 4096' '4096 12288' '4096 4096' '1024 4096' '3072 1024'; do
      read -r rows cols <<<"$shape"
      row matmul "$type" "${rows}x$cols" --rows "$rows" --cols "$cols" --set-mib 2048 --repeat 16
    done
    row gate_up "$type" 12288x4096 --rows 12288 --cols 4096 --set-mib 2048 --repeat 16
    row gate_up_by_expert "$type" "8of128 768x2048" --rows 768 --cols 2048 --set-mib 512 --repeat 16
    row down_by_expert_sum "$type" "8of128 2048x768" --rows 2048 --cols 768 --set-mib 512 --repeat 16
  done
  for position in 512 4096 32768; do
    row attention F16 "at $position" --position "$position" --set-mib 256
  done
  printf '\n%-28s %-5s %20s %10s %9s\n' "512 tokens" type shape us "TFLOP/s"
  many() {  # OP TYPE SHAPE PRODUCTS FLAG...
    local op=$1 type=$2 shape=$3 products=$4 form=$1
    shift 4
    [ "$cooperative" = 0 ] || form=${op}_cooperative
    read -r us _ <<<"$(measure --op "$op" --type "$type" --tokens 512 --set-mib 64 --repeat 8 --cooperative "$cooperative" "$@")"
    printf '%-28s %-5s %20s %10s %9s\n' "$form" "$type" "$shape" "$us" \
      "$(awk -v us="$us" -v products="$products" 'BEGIN {printf "%.1f", 2 * products / us / 1e6}')"
  }
  for ((cooperative = 0; cooperative <= cooperates; ++cooperative)); do
    for type in F16 Q8_0 Q4_0; do
      for shape in '4096 4096' '12288 4096' '1024 4096' '3072 1024'; do
        read -r rows cols <<<"$shape"
        many matmul "$type" "512x${rows}x$cols" $((512 * rows * cols)) --rows "$rows" --cols "$cols"
      done
      many matmul_by_expert "$type" "512x8of128 768x2048" $((512 * 8 * 768 * 2048)) --rows 768 --cols 2048
      many matmul_by_expert "$type" "4096x1of128 2048x768" $((4096 * 2048 * 768)) --rows 2048 --cols 768 --tokens 4096 --used 1
    done
  done
}
[ "${OPERATIONS:-1}" = 0 ] || operations
[ $# -gt 0 ] || exit 0
printf '\n%-28s %12s %12s %12s %12s %12s %7s %7s %7s\n' "tokens a second, medians" decode "llama.cpp" prefill cooperative \
  "llama.cpp" decode prefill coop.
for model in "$@"; do
  : >"$work/od"; : >"$work/op"; : >"$work/pd"; : >"$work/pp"; : >"$work/oc"
  for ((round = 1; round <= rounds; ++round)); do
    "$assay" bench -q --backend vulkan "${device[@]}" -m "$model" -p "$prompt" -n 0 -r 2 --json >"$work/prefill.json"
    "$assay" bench -q --backend vulkan "${device[@]}" -m "$model" -p 0 -n "$gen" -d "$prompt" -r 2 --json >"$work/decode.json"
    row_of "$work/decode.json" decode >>"$work/od"
    row_of "$work/prefill.json" prefill >>"$work/op"
    if [ "$cooperates" = 1 ]; then
      "$assay" bench -q --backend vulkan "${device[@]}" -m "$model" -p "$prompt" -n 0 -r 2 --cooperative-matrix --json \
        >"$work/cooperative.json"
      row_of "$work/cooperative.json" prefill >>"$work/oc"
    fi
    [ -n "$peer" ] || continue
    LD_LIBRARY_PATH="$peer:${LD_LIBRARY_PATH:-}" "$peer/peer-bench-vk" --backend-dir "$peer" -ngl 99 -m "$model" \
      --prompt-len "$prompt" -n "$gen" -t 1 -r 2 --json "$work/peer.json" >"$work/peer.log" 2>&1 ||
      { cat "$work/peer.log" >&2; exit 2; }
    python3 -c 'import json, sys; run = json.load(open(sys.argv[1]))["runs"][0]; print(run[sys.argv[2]])' \
      "$work/peer.json" decode_tok_s >>"$work/pd"
    python3 -c 'import json, sys; run = json.load(open(sys.argv[1]))["runs"][0]; print(run[sys.argv[2]])' \
      "$work/peer.json" prefill_tok_s >>"$work/pp"
  done
  od=$(median <"$work/od") op=$(median <"$work/op") oc=- pd=- pp=- rd=- rp=- rc=-
  [ "$cooperates" = 0 ] || oc=$(median <"$work/oc")
  if [ -n "$peer" ]; then
    pd=$(median <"$work/pd") pp=$(median <"$work/pp") rd=$(ratio "$od" "$pd") rp=$(ratio "$op" "$pp")
    [ "$cooperates" = 0 ] || rc=$(ratio "$oc" "$pp")
  fi
  printf '%-28s %12.1f %12s %12.1f %12s %12s %7s %7s %7s\n' "$(basename "$model" .gguf)" "$od" "$pd" "$op" "$oc" "$pp" "$rd" "$rp" "$rc"
  grep -o '"dispatches": [0-9]*, *"barriers": [0-9]*' "$work/decode.json" || true
done
