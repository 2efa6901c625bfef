# SPDX-License-Identifier: Apache-2.0
# torii_test(): one GoogleTest program, one ctest entry, always under a watchdog.
include_guard(GLOBAL)

# torii_test(NAME name SOURCES file... [LIBS target...] [TIMEOUT seconds] [LABELS label...] [PROCESSORS n]
#            [SLEEPS] [ENVIRONMENT name=value...])
# TIMEOUT is the watchdog, 60 s unless given; sanitizer builds get four times as much, TORII_TEST_FULL (which the
# program finds in its environment) thirty times. LABELS sanitize builds and runs the test in the asan and tsan presets
# too, sanitize_address in asan only: programs of one thread, and ranks that are processes, have nothing that the thread
# sanitizer could see (TORII_TEST_FULL runs them there as well). LABELS quick has `./dev quick` run the test: it takes
# at most 15 s, and all of them take about a minute together. PROCESSORS is how many CPUs it keeps busy, so that
# `ctest -j` does not time two busy tests against each other: 1 unless given. SLEEPS says that it mostly waits, for
# sockets, children or deadlines: it starts early, one such test at a time, and takes half a CPU, ctest's unit here
# (`./dev test` gives it two units per CPU, and one for a test that waits beside busy ones). The program sees
# TORII_TEST_SOURCE_DIR (root of the sources) and TORII_TEST_BIN_DIR (where all programs land).
function(torii_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SLEEPS" "NAME;TIMEOUT;PROCESSORS" "SOURCES;LIBS;LABELS;ENVIRONMENT")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torii_test needs NAME and SOURCES; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT TORII_SANITIZE STREQUAL "none")
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  if(TORII_TEST_FULL)
    math(EXPR arg_TIMEOUT "30 * ${arg_TIMEOUT}")
    list(APPEND arg_ENVIRONMENT TORII_TEST_FULL=1)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  math(EXPR units "2 * ${arg_PROCESSORS}")
  if(arg_SLEEPS)
    set(units 1)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE torii_settings torii_test_support ${arg_LIBS} GTest::gtest
                                            GTest::gtest_main)
  target_compile_definitions(${arg_NAME} PRIVATE TORII_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                 TORII_TEST_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  target_precompile_headers(${arg_NAME} REUSE_FROM torii_test_headers)
  target_compile_options(${arg_NAME} PRIVATE ${torii_header_options})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  set(sanitized FALSE)
  if("sanitize" IN_LIST arg_LABELS)
    set(sanitized TRUE)
  elseif("sanitize_address" IN_LIST arg_LABELS AND (TORII_SANITIZE STREQUAL "address" OR TORII_TEST_FULL))
    set(sanitized TRUE)
  endif()
  if(NOT TORII_SANITIZE STREQUAL "none" AND NOT sanitized)
    set_target_properties(${arg_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" PROCESSORS ${units}
                                              ENVIRONMENT "${arg_ENVIRONMENT}")
  if(arg_SLEEPS)
    set_tests_properties(${arg_NAME} PROPERTIES COST 1000)
    # One after the other, beside the busy ones: all of them first would leave the CPUs idle for as long. Under
    # sanitizers few others run, and would end before them.
    if(TORII_SANITIZE STREQUAL "none")
      set_tests_properties(${arg_NAME} PROPERTIES RESOURCE_LOCK waiting)
    endif()
  endif()
endfunction()
