#!/usr/bin/env bash
# One job of a proof's matrix as one task of a Slurm array (docs/prove.md). Run where the tree lies:
#
#   sbatch --array=0-"$(($(assay prove -q --matrix matrix.toml | wc -l) - 1))" \
#     tools/prove_slurm.sh matrix.toml ../jobs main
#   assay prove --merge ../jobs/*      # when all tasks have ended
#
# ASSAY names the program, where it is not in PATH; ASSAY_CACHE a folder on the node's own disk.
#SBATCH --job-name=assay-prove
#SBATCH --ntasks=1
set -euo pipefail

if (($# != 3)); then
  echo "usage: sbatch --array=0-N tools/prove_slurm.sh MATRIX JOBS BASE" >&2
  exit 64
fi
matrix=$1 jobs=$2 base=$3
: "${SLURM_ARRAY_TASK_ID:?is not set: start this as a task of a Slurm array}"
assay=${ASSAY:-assay}

mapfile -t ids < <("$assay" prove -q --matrix "$matrix")
if ((${#ids[@]} == 0 || SLURM_ARRAY_TASK_ID >= ${#ids[@]})); then
  echo "task $SLURM_ARRAY_TASK_ID: $matrix has ${#ids[@]} jobs, counted from 0" >&2
  exit 64
fi
id=${ids[SLURM_ARRAY_TASK_ID]}
exec "$assay" prove -q --matrix "$matrix" --job "$id" --out "$jobs/$id" ${ASSAY_CACHE:+--cache "$ASSAY_CACHE"} "$base"
