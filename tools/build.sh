#!/usr/bin/env bash
# Configures a preset of CMakePresets.json and builds targets of it (all of them when none is named).
#
#   tools/build.sh PRESET [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: tools/build.sh PRESET [TARGET...]}
shift
folder=build
[[ "$preset" == release ]] || folder=build-$preset

# A tree that was moved or copied brings a cache that names its old place; CMake refuses it, so it goes.
cache="$folder/CMakeCache.txt"
fresh=()
if [[ -f "$cache" ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; then
  fresh=(--fresh)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset "$preset" "${fresh[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  echo "build: configuring preset $preset failed; CMake's messages are above." >&2
  exit 1
fi
targets=()
(($# == 0)) || targets=(--target "$@")
cmake --build "$folder" --parallel "${JOBS:-$(nproc)}" "${targets[@]}"
