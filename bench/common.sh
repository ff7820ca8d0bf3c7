#!/usr/bin/env bash
# Shared by the scripts of this folder: where the program is, and medians of what it measures.
set -euo pipefail
bench_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
assay=${ASSAY:-$bench_root/build/assay}
read_bandwidth=${READ_BANDWIDTH:-$bench_root/build/read_bandwidth}
[ -x "$assay" ] || { echo "$0: $assay is not there; run make build" >&2; exit 2; }

# The median of the numbers on standard input.
median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

# a / b, with two digits.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", a / b}'; }

# The median of the row "what" (load, prefill, decode) of a file that `assay bench --json` wrote.
row_of() {
  python3 - "$1" "$2" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
print(next(row["median"] for row in rows if row["what"] == sys.argv[2]))
PY
}
