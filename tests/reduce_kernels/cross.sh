#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the kernels and their tests for aarch64 and runs them under qemu-user: once on a processor without SVE, where
# a stray SVE instruction would be illegal, then with SVE registers of several lengths.
# Usage: tests/reduce_kernels/cross.sh [build folder]. Packages: g++-aarch64-linux-gnu qemu-user libhwy-dev googletest.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
folders=("$source_dir/reduce_kernels" "$source_dir/tests/reduce_kernels")
support=$source_dir/tests/support
build_dir=${1:-"$source_dir/build/aarch64"}
compiler=aarch64-linux-gnu-g++
gtest_dir=/usr/src/googletest/googletest

emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
for needed in "$(command -v $compiler || true)" "$emulator" "$gtest_dir" /usr/include/hwy; do
  if [[ -z $needed || ! -e $needed ]]; then
    echo "cross.sh: missing packages; run: apt-get install g++-aarch64-linux-gnu qemu-user libhwy-dev googletest"
    exit 3
  fi
done

mkdir -p "$build_dir/include"
# Highway's headers alone: the other headers of the host are not meant for this compiler.
ln -sfn /usr/include/hwy "$build_dir/include/hwy"
flags=(-std=c++20 -O2 -ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow -Wno-psabi "-I$source_dir"
       -isystem "$build_dir/include" -isystem "$gtest_dir/include" "-I$gtest_dir"
       "-DHWY_DISABLED_TARGETS=(HWY_SVE_256|HWY_SVE2|HWY_SVE2_128)" "-DTORII_TEST_SOURCE_DIR=\"$source_dir\""
       "-DTORII_TEST_BUILD_DIR=\"$build_dir\"")

compile() {
  local object="$build_dir/$(basename "$1" .cc).o"
  if [[ ! -e $object || -n $(find "${folders[@]}" "$support" -newer "$object") ]]; then
    echo "compiling $(basename "$1")"
    "$compiler" "${flags[@]}" -c "$1" -o "$object"
  fi
}
objects=()
for file in "${folders[0]}"/*.cpp "${folders[1]}"/*.cpp "$support/places.cpp" "$support/test_run.cpp" \
            "$gtest_dir/src/gtest-all.cc" "$gtest_dir/src/gtest_main.cc"; do
  compile "$file"
  objects+=("$build_dir/$(basename "$file" .cc).o")
done
"$compiler" -static "${objects[@]}" -o "$build_dir/kernels_aarch64"

# Death tests start the program again, which the emulator does not do.
run() {
  echo "== $1"
  "$emulator" -cpu "$1" "$build_dir/kernels_aarch64" --gtest_brief=1 --gtest_filter=-CompositeDeathTest.*
}
run cortex-a57
for bits in 128 256 512 2048; do
  run "max,sve$bits=on,sve-default-vector-length=$((bits / 8))"
done
