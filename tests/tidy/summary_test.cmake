# SPDX-License-Identifier: Apache-2.0
# What a configuration says at its end, of planted lists. Called by ctest with SOURCE_DIR.
cmake_policy(VERSION 3.25)
include(${SOURCE_DIR}/cmake/summary.cmake)

function(expect left_out expected)
  torii_summary_lines(lines 1.2.3 Release none "${left_out}")
  if(NOT lines STREQUAL "${expected}")
    message(FATAL_ERROR "for '${left_out}' the summary is '${lines}', not '${expected}'")
  endif()
endfunction()

expect("" "torii 1.2.3: Release, sanitizer none;torii: nothing was left out")
expect("transport ucx (install libucx-dev);joining through PMIx (TORII_WITH_PMIX is OFF)"
       "torii 1.2.3: Release, sanitizer none;torii: left out: transport ucx (install libucx-dev);\
torii: left out: joining through PMIx (TORII_WITH_PMIX is OFF)")
