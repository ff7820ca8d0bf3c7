#!/usr/bin/env bash
# Installs the Debian packages that a set of tasks needs, if any is missing.
#
#   tools/install_deps.sh build    what the release preset needs: compiler, build tools, libraries, test libraries
#   tools/install_deps.sh check    what `make check` and the sanitizer and fuzz presets need as well
#   tools/install_deps.sh --list build check    prints the names and installs nothing
#
# With everything in place it only asks dpkg and returns at once. ASSAY_SKIP_DEPS=1 turns it off, for systems that
# provide the same libraries in another way.
set -euo pipefail

build_packages=(
  build-essential g++ cmake ninja-build ccache mold pkg-config git ca-certificates
  libfmt-dev libexpected-dev libzstd-dev libxxhash-dev libhwy-dev libpcre2-dev libutf8proc-dev
  libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libcapstone-dev
  libvulkan-dev libshaderc-dev glslang-dev glslc spirv-tools libspirv-cross-c-shared-dev libvulkan1 mesa-vulkan-drivers
  vulkan-validationlayers
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  zstd python3 patch
)
check_packages=(clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev codespell chromium parallel)

usage() {
  echo "usage: tools/install_deps.sh [--list] build|check..." >&2
  exit 64
}

list_only=0
if [[ "${1:-}" == --list ]]; then
  list_only=1
  shift
fi
(($# > 0)) || usage
wanted=()
for set_name in "$@"; do
  case "$set_name" in
    build) wanted+=("${build_packages[@]}") ;;
    check) wanted+=("${check_packages[@]}") ;;
    *) usage ;;
  esac
done
if ((list_only)); then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi
[[ "${ASSAY_SKIP_DEPS:-0}" != 1 ]] || exit 0

fail() {
  echo "install_deps: $1" >&2
  echo "install_deps: the packages needed are: $2" >&2
  exit 1
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "this system has no apt-get and dpkg. Install the libraries below in its own way and run again with ASSAY_SKIP_DEPS=1." \
    "${wanted[*]}"
fi

# The names of `wanted` that are not installed, into `missing`.
find_missing() {
  local installed name
  installed=" $(dpkg-query -W -f='${db:Status-Status}=${Package} ' "${wanted[@]}" 2>/dev/null || true) "
  missing=()
  for name in "${wanted[@]}"; do
    [[ "$installed" == *" installed=$name "* ]] || missing+=("$name")
  done
}

find_missing
((${#missing[@]} > 0)) || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "packages are missing, and installing them needs root: run as root, or install sudo." "${missing[*]}"
  as_root=(sudo)
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
# A stale package list is no reason to stop: what it still offers may be enough.
apt update || echo "install_deps: apt-get update failed; trying with the package lists at hand." >&2
apt install -y --no-install-recommends "${missing[@]}" ||
  fail "apt-get could not install what is missing (its own messages are above)." "${missing[*]}"
find_missing
((${#missing[@]} == 0)) || fail "apt-get reported success, but packages are still missing." "${missing[*]}"
