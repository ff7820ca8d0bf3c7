#!/usr/bin/env bash
# Load time and memory beside `cat FILE >/dev/null`, with the file in the page cache, in turns.
#
#   bench/load.sh MODEL.gguf
#
# ROUNDS (5) comes from the environment.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,6s/^# \?//p' "$0" >&2; exit 64; }
# shellcheck source=bench/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
model=$1
rounds=${ROUNDS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

seconds() {  # COMMAND...: its wall time
  local begin end
  begin=$(date +%s.%N)
  "$@"
  end=$(date +%s.%N)
  awk -v a="$begin" -v b="$end" 'BEGIN {print b - a}'
}

cat "$model" >/dev/null
for ((round = 1; round <= rounds; ++round)); do
  # /dev/null takes the bytes without reading them; a pipe copies them once, as loading must.
  seconds sh -c 'cat "$1" | cat >/dev/null' sh "$model" >>"$work/pipe"
  seconds sh -c 'cat "$1" >/dev/null' sh "$model" >>"$work/cat"
  "$assay" bench -q -m "$model" -p 0 -n 0 -r 1 --json >"$work/read.json"
  row_of "$work/read.json" load >>"$work/read"
  "$assay" bench -q -m "$model" -p 0 -n 0 -r 1 --mmap --json >"$work/mmap.json"
  row_of "$work/mmap.json" load >>"$work/mmap"
done
printf 'seconds (medians of %s rounds) for %s bytes: cat >/dev/null %.3f, cat through a pipe %.3f, assay %.3f, assay --mmap %.3f\n' \
  "$rounds" "$(stat -c %s "$model")" "$(median <"$work/cat")" "$(median <"$work/pipe")" "$(median <"$work/read")" \
  "$(median <"$work/mmap")"
python3 - "$work/read.json" "$work/mmap.json" <<'PY'
import json, sys
read, mapped = (json.load(open(name)) for name in sys.argv[1:])
print("peak memory after loading: %.1f MiB read, %.1f MiB mapped; the file has %.1f MiB" % (
    read["peak_rss_bytes"] / 2**20, mapped["peak_rss_bytes"] / 2**20, read["model_bytes"] / 2**20))
PY
