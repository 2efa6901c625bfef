# SPDX-License-Identifier: Apache-2.0
# Read by the scripts of this folder, each of which is a command of ./dev. The current folder is the root of the tree.
set -euo pipefail

# One compiler cache for all clones of this repository: paths count from its root, and precompiled headers are compared
# by what they contain.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

readonly kExitBadCommandLine=2 kExitNotPossible=3

# The Debian packages, by what needs them. The same libraries are looked for in cmake/dependencies.cmake.
packages_build=(g++ lld cmake ninja-build ccache pkg-config libhwloc-dev libhwy-dev libfmt-dev libcli11-dev
                nlohmann-json3-dev libboost-context-dev libxxhash-dev libsodium-dev libgtest-dev libbenchmark-dev)
packages_optional=(libfabric-dev libucx-dev libpmix-dev libopenmpi-dev openmpi-bin libmpich-dev mpich iproute2
                   libgloo-dev python3-dev python3-numpy python3-pytest python3-torch libtorch-dev pybind11-dev help2man
                   abigail-tools)
packages_tests=(hpcc python3-mpi4py patch)
packages_count=(valgrind)
packages_cross=(g++-aarch64-linux-gnu qemu-user)
packages_format=(clang-format-14)
packages_text=(codespell reuse)
packages_lint=(clang-14 clang-tidy-14)
packages_site=(cmark-gfm doxygen python3 python3-pygments)
packages_packages=(dpkg-dev file binutils lintian)
packages_root=(debootstrap)
packages_verbs=(qemu-system-x86 busybox-static kmod cpio xz-utils ibverbs-providers iproute2)

say() { printf '\n== %s\n' "$*"; }

bad_command_line() {
  printf 'dev: %s\n' "$1" >&2
  ./dev help >&2
  exit "$kExitBadCommandLine"
}

# no_arguments COMMAND ARGUMENT...: refuses arguments of a command that has none.
no_arguments() {
  local command=$1
  shift
  (($# == 0)) || bad_command_line "$command: unknown argument '$*'"
}

# Installs what is missing of the named packages, or says how to.
require_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "dev: this is not a Debian system; the build needs what these packages hold: $*" >&2
    return
  fi
  local missing=() package
  for package in "$@"; do
    if [[ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" != "install ok installed" ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    return
  fi
  say "missing Debian packages: ${missing[*]}"
  if ((EUID != 0)); then
    printf 'Run as root:\n  apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit "$kExitNotPossible"
  fi
  install_packages "${missing[@]}"
}

# The package lists may be absent (a fresh container) or too old (the archive has moved on): then they are fetched once.
install_packages() {
  local install=(apt-get install -y -q --no-install-recommends "$@")
  export DEBIAN_FRONTEND=noninteractive
  if apt-cache show "$@" >/dev/null 2>&1 && "${install[@]}"; then
    return
  fi
  apt-get update -q
  "${install[@]}"
}

# build_preset NAME [cmake option...]
build_preset() {
  local preset=$1
  shift
  cmake --preset "$preset" "$@"
  cmake --build --preset "$preset"
}

# A folder that has its tests keeps them, since ctest would find none otherwise; a new one is made without.
configure_release() {
  local options=()
  [[ -e build/release/CMakeCache.txt ]] || options=(-DTORII_TESTS=OFF)
  cmake --preset release "${options[@]}"
}

# build_programs [TARGET...]: the release preset; all of it, or these targets.
build_programs() {
  local targets=()
  require_packages "${packages_build[@]}" "${packages_optional[@]}"
  (($# == 0)) || targets=(--target "$@")
  configure_release
  cmake --build --preset release "${targets[@]}"
}

# stage TITLE COMMAND...: runs one part of a command and notes how long it took; the first failure ends the run. The
# command runs in a shell of its own, because `set -e` is off inside anything whose result is asked for.
stage_lines=()
stage() {
  local title=$1 start=$SECONDS result=0
  shift
  say "$title"
  set +e
  (set -e; "$@")
  result=$?
  set -e
  stage_lines+=("$(printf '%6d s  %s' $((SECONDS - start)) "$title")")
  if ((result != 0)); then
    print_stages
    printf 'dev: FAILED: %s\n' "$title" >&2
    exit $((result == kExitNotPossible ? kExitNotPossible : 1))
  fi
}

print_stages() {
  say "stages"
  printf '%s\n' "${stage_lines[@]}"
}

# Without git, so that it also works in an unpacked archive. Prints paths separated by NUL.
list_sources() {
  find . \( -path ./.git -o -path ./build \) -prune -o -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' \) -print0
}
