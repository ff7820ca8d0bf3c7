#!/usr/bin/env bash
# The demonstration behind `make demo`: the embedded model writes a text, its decode steps are recorded by two processes
# with different numbers of threads, and the two recordings are compared. The exit status is that of `assay compare`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
assay=build/assay
out=out/demo

heading() { printf '\n== %s\n' "$*"; }
# Shows a command as a user would type it, and runs it.
show() {
  local word line='$'
  for word in "$@"; do
    [[ "$word" == *' '* ]] && line+=" \"$word\"" || line+=" $word"
  done
  printf '%s\n' "$line"
  "$@"
}

heading "Build"
./tools/install_deps.sh build
./tools/build.sh release assay

heading "The embedded model tells a tale (it recites tales and knows nothing else); four threads load it"
show "$assay" run --loaders 4 -p "Once upon a time" -n 120

rm -rf "$out"
mkdir -p "$out"
heading "First recording: four loader threads, one compute thread a core"
show "$assay" trace -o "$out/first" --depth 0,600 --steps 8 --loaders 4
heading "Second recording: another process, one loader thread, one compute thread"
show "$assay" trace -o "$out/second" --depth 0,600 --steps 8 --loaders 1 -t 1

heading "For contrast: numbering buffers in order of creation (trace version 1), twice with four loaders"
show "$assay" trace -q -o "$out/v1-first" --depth 0 --steps 1 --loaders 4 --trace-version 1
show "$assay" trace -q -o "$out/v1-second" --depth 0 --steps 1 --loaders 4 --trace-version 1
contrast=0
show "$assay" compare "$out/v1-first" "$out/v1-second" || contrast=$?
case $contrast in
  0) echo "By luck of the schedule both runs made their buffers in the same order this time." ;;
  6) echo "Same work, other names: threads race for the numbers, so such a trace cannot prove that two runs agree." ;;
esac

heading "The verdict on the two recordings"
status=0
show "$assay" compare "$out/first" "$out/second" || status=$?
echo "The recordings are in $PWD/$out/first and $PWD/$out/second."
exit "$status"
