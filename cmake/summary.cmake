# SPDX-License-Identifier: Apache-2.0
# What the reader of a configuration is told at its end: what is built, and what was left out and why.
include_guard(GLOBAL)

# Sets <result> to the lines, of which there is one per entry of the list <left_out>.
function(torii_summary_lines result version build_type sanitize left_out)
  set(lines "torii ${version}: ${build_type}, sanitizer ${sanitize}")
  if(left_out)
    foreach(item IN LISTS left_out)
      list(APPEND lines "torii: left out: ${item}")
    endforeach()
  else()
    list(APPEND lines "torii: nothing was left out")
  endif()
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

# Printed last so that it is what a reader of the configuration sees.
function(torii_print_summary)
  torii_summary_lines(lines "${PROJECT_VERSION}" "${CMAKE_BUILD_TYPE}" "${TORII_SANITIZE}" "${torii_left_out}")
  foreach(line IN LISTS lines)
    message(STATUS "${line}")
  endforeach()
  get_property(kinds GLOBAL PROPERTY torii_left_kinds)
  list(REMOVE_DUPLICATES kinds)
  foreach(kind IN LISTS kinds)
    get_property(names GLOBAL PROPERTY "torii_left: ${kind}")
    list(JOIN names " " names)
    message(STATUS "torii: left to --full: ${kind}: ${names}")
  endforeach()
  message(STATUS "torii: tests ${TORII_TESTS}, perf ${TORII_PERF}, programs in ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
