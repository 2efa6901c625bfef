# SPDX-License-Identifier: Apache-2.0
# torii_test(): some GoogleTest sources as one entry of ctest, always under a watchdog.
include_guard(GLOBAL)

# torii_test(NAME name SOURCES file... [LIBS target...] [DEFINITIONS name=value...] [DEPENDS target...]
#            [TIMEOUT seconds] [LABELS label...] [TOUCHES path...] [MORE kind...] [SHARES n] [SHARES_SANITIZED n]
#            [PROCESSORS n] [SLEEPS] [ALONE] [GROUP name] [NEEDS what...] [ENVIRONMENT name=value...])
# The tests of a folder share one program, <folder>_tests in <build>/tests/bin, because a program costs more to link
# than most of them take to run. An entry of ctest runs those tests of it that stand in its SOURCES. ALONE makes a
# program of the test's own name: for what replaces functions of the whole program. Sources of a folder, or of the tests
# with the same GROUP, are compiled as one, as torii_unity() says, so their names must differ.
#
# TIMEOUT is the watchdog, 60 s unless given; sanitizer builds get four times as much, TORII_TEST_FULL (which the
# program finds in its environment) thirty times. PROCESSORS is how many CPUs it keeps busy, so that `ctest -j` does not
# time two busy tests against each other: 1 unless given. SLEEPS says that it mostly waits, for sockets, children or
# deadlines: it starts early and takes half a CPU, ctest's unit here (`./dev test` gives it two units per CPU, and one
# for a test that waits beside busy ones).
#
# LABELS have a meaning:
#   sanitize          is built and run in the presets asan and tsan too
#   sanitize_address  in asan only: programs of one thread, and ranks that are processes, have nothing that the thread
#                     sanitizer could see
#   sanitize_thread   in tsan only
#   sanitize_full     in neither; full runs (TORII_TEST_FULL) build and run all of these in both
#   quick             `./dev quick` runs it: at most 15 s, and all of them take about a minute together
#   slow              over 30 s on 2 CPUs: `./dev quick` names it and leaves it to `./dev test`
#   without           it knows which libraries were found: `./dev without` runs it
# TOUCHES names folders, or the beginnings of paths, besides the SOURCES: `./dev quick` runs the test if a file there
# has changed. MORE says what a full run adds inside the test: seeds, shapes, ranks, programs. SHARES n: `./dev test`
# runs every n-th case, drawn by the number of the run; a full run, and ctest by itself, run all. SHARES_SANITIZED: in
# builds with a sanitizer, where this number takes the other's place. NEEDS: without any of these there is no such test:
# libfabric, ucx, network (one of the two), release (no sanitizer).
# Where sources and programs are: tests/support/places.hpp.
function(torii_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SLEEPS;ALONE" "NAME;TIMEOUT;PROCESSORS;GROUP;SHARES;SHARES_SANITIZED"
                        "SOURCES;LIBS;DEFINITIONS;DEPENDS;LABELS;TOUCHES;MORE;NEEDS;ENVIRONMENT")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torii_test needs NAME and SOURCES; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  torii_has_all(is_possible ${arg_NEEDS})
  if(NOT is_possible)
    return()
  endif()
  torii_test_is_run(is_run ${arg_NAME} ${arg_LABELS})
  if(NOT is_run)
    return()
  endif()
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(program ${folder}_tests)
  if(arg_ALONE)
    set(program ${arg_NAME})
  endif()
  torii_test_program(${program})
  target_sources(${program} PRIVATE ${arg_SOURCES})
  target_link_libraries(${program} PRIVATE ${arg_LIBS})
  target_compile_definitions(${program} PRIVATE ${arg_DEFINITIONS})
  if(arg_DEPENDS)
    add_dependencies(${program} ${arg_DEPENDS})
  endif()
  set(files)
  foreach(source IN LISTS arg_SOURCES)
    if(source MATCHES "\\.cpp$")
      get_filename_component(path ${source} ABSOLUTE)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
      list(APPEND files ${path})
      if(arg_GROUP)
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${arg_GROUP})
      endif()
    endif()
  endforeach()
  set(command ${program})
  if(NOT arg_ALONE)
    list(JOIN files "," list)
    list(APPEND command --files=${list})
  endif()
  set_property(GLOBAL PROPERTY torii_test_command_${arg_NAME} ${command})
  torii_add_test(
    NAME ${arg_NAME}
    COMMAND ${command}
    TIMEOUT "${arg_TIMEOUT}"
    PROCESSORS "${arg_PROCESSORS}"
    SHARES "${arg_SHARES}"
    SHARES_SANITIZED "${arg_SHARES_SANITIZED}"
    SLEEPS ${arg_SLEEPS}
    LABELS ${arg_LABELS}
    TOUCHES ${files} ${arg_TOUCHES}
    MORE ${arg_MORE}
    ENVIRONMENT ${arg_ENVIRONMENT})
  if("without" IN_LIST arg_LABELS)
    add_dependencies(torii_tests_without ${program})
  endif()
endfunction()

# torii_test_again(NAME name OF test [ARGUMENTS argument...] [TIMEOUT seconds] [PROCESSORS n] [SHARES n]
#                  [LABELS label...] [TOUCHES path...] [NEEDS what...] [ENVIRONMENT name=value...]): the tests of
# another test in another environment.
function(torii_test_again)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OF;NAME;TIMEOUT;PROCESSORS;SHARES"
                        "ARGUMENTS;LABELS;TOUCHES;NEEDS;ENVIRONMENT")
  get_property(command GLOBAL PROPERTY torii_test_command_${arg_OF})
  torii_has_all(is_possible ${arg_NEEDS})
  if(command AND is_possible)
    torii_add_test(
      NAME ${arg_NAME}
      COMMAND ${command} ${arg_ARGUMENTS}
      TIMEOUT "${arg_TIMEOUT}"
      PROCESSORS "${arg_PROCESSORS}"
      SHARES "${arg_SHARES}"
      LABELS ${arg_LABELS}
      TOUCHES ${arg_TOUCHES}
      ENVIRONMENT ${arg_ENVIRONMENT})
  endif()
endfunction()

# torii_test_rank(name library... [SOURCES file...]): a program that tests start as a rank, from <name>.cpp.
function(torii_test_rank name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  add_executable(${name} ${name}.cpp ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE torii_settings ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  if(NOT TORII_SANITIZE STREQUAL "none")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# torii_left_to_full(kind name): the configuration says at its end that this test is left to full runs.
function(torii_left_to_full kind name)
  set_property(GLOBAL APPEND PROPERTY torii_left_kinds "${kind}")
  set_property(GLOBAL APPEND PROPERTY "torii_left: ${kind}" ${name})
endfunction()

# Sets <result> to whether this build has all that a test NEEDS.
function(torii_has_all result)
  set(${result} TRUE PARENT_SCOPE)
  set(has_libfabric "${LIBFABRIC_FOUND}")
  set(has_ucx "${UCX_FOUND}")
  set(has_network FALSE)
  if(LIBFABRIC_FOUND OR UCX_FOUND)
    set(has_network TRUE)
  endif()
  string(COMPARE EQUAL "${TORII_SANITIZE}" "none" has_release)
  foreach(need IN LISTS ARGN)
    if(NOT DEFINED has_${need})
      message(FATAL_ERROR "NEEDS knows libfabric, ucx, network and release, not '${need}'")
    elseif(NOT has_${need})
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Sets <result> to whether this preset runs a test of these labels.
function(torii_test_is_run result name)
  set(${result} TRUE PARENT_SCOPE)
  if(TORII_SANITIZE STREQUAL "none" OR "sanitize" IN_LIST ARGN OR "sanitize_${TORII_SANITIZE}" IN_LIST ARGN)
    return()
  endif()
  if("${ARGN}" MATCHES "sanitize")
    if(TORII_TEST_FULL)
      return()
    endif()
    torii_left_to_full("${TORII_SANITIZE} sanitizer" ${name})
  endif()
  set(${result} FALSE PARENT_SCOPE)
endfunction()

# The program that tests are added to; made when the first one is.
function(torii_test_program program)
  if(TARGET ${program})
    return()
  endif()
  add_executable(${program})
  target_link_libraries(${program} PRIVATE torii_settings torii_test_support GTest::gtest)
  target_precompile_headers(${program} REUSE_FROM torii_test_headers)
  target_compile_options(${program} PRIVATE ${torii_header_options})
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  torii_unity(${program})
endfunction()

# torii_add_test(NAME name COMMAND program argument... [TIMEOUT seconds] [LABELS label...] [TOUCHES path...]
#                [MORE kind...] [SHARES n] [SHARES_SANITIZED n] [PROCESSORS n] [SLEEPS] [PASS regular-expression]
#                [ENVIRONMENT name=value...])
# One entry of ctest of any kind; the words are those of torii_test(). With PASS the test passes if its output holds
# what the regular expression says.
function(torii_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT;PROCESSORS;SHARES;SHARES_SANITIZED;SLEEPS;PASS"
                        "COMMAND;LABELS;TOUCHES;MORE;ENVIRONMENT")
  if(NOT arg_NAME OR NOT arg_COMMAND OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torii_add_test needs NAME and COMMAND; not understood: '${arg_UNPARSED_ARGUMENTS}'")
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
  if(arg_SHARES_SANITIZED AND NOT TORII_SANITIZE STREQUAL "none")
    set(arg_SHARES ${arg_SHARES_SANITIZED})
  endif()
  if(arg_SHARES)
    list(APPEND arg_ENVIRONMENT TORII_TEST_SHARES=${arg_SHARES})
    list(APPEND arg_MORE cases)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  math(EXPR units "2 * ${arg_PROCESSORS}")
  if(arg_SLEEPS)
    set(units 1)
  endif()
  foreach(path IN LISTS arg_TOUCHES)
    file(GLOB there ${PROJECT_SOURCE_DIR}/${path}*)
    if(NOT there)
      message(FATAL_ERROR "${arg_NAME} touches '${path}', but there is no file or folder whose path begins so")
    endif()
  endforeach()
  list(TRANSFORM arg_TOUCHES PREPEND "touches:")
  list(TRANSFORM arg_MORE PREPEND "more:")
  add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND})
  set_tests_properties(
    ${arg_NAME}
    PROPERTIES TIMEOUT ${arg_TIMEOUT}
               LABELS "${arg_LABELS};${arg_TOUCHES};${arg_MORE}"
               PROCESSORS ${units}
               ENVIRONMENT "${arg_ENVIRONMENT}")
  if(arg_PASS)
    set_tests_properties(${arg_NAME} PROPERTIES PASS_REGULAR_EXPRESSION "${arg_PASS}")
  endif()
  # Before anything was measured, the longest watchdog begins first.
  set_tests_properties(${arg_NAME} PROPERTIES COST ${arg_TIMEOUT})
  if(arg_SLEEPS)
    # Three at a time, beside the busy ones: all of them first would leave the CPUs idle for as long.
    get_property(number GLOBAL PROPERTY torii_sleeping_tests)
    math(EXPR number "(0${number} + 1) % 3")
    set_property(GLOBAL PROPERTY torii_sleeping_tests ${number})
    set_tests_properties(${arg_NAME} PROPERTIES RESOURCE_LOCK waiting_${number})
    math(EXPR cost "1000 + ${arg_TIMEOUT}")
    set_tests_properties(${arg_NAME} PROPERTIES COST ${cost})
  endif()
endfunction()
