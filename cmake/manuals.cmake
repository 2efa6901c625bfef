# SPDX-License-Identifier: Apache-2.0
# Manual pages of the installed programs, made by help2man from what the programs print for --help. Optional: without
# help2man, and in builds for another machine, there are none. Builds with a sanitizer are for tests and have none.
include_guard(GLOBAL)
option(TORII_WITH_MANUALS "Build the manual pages, where help2man is installed" ON)
set(TORII_MANUALS FALSE)
find_program(TORII_HELP2MAN help2man)
mark_as_advanced(TORII_HELP2MAN)
if(NOT TORII_WITH_MANUALS)
  list(APPEND torii_left_out "manual pages (TORII_WITH_MANUALS is OFF)")
elseif(NOT TORII_HELP2MAN)
  list(APPEND torii_left_out "manual pages (install help2man)")
elseif(CMAKE_CROSSCOMPILING)
  list(APPEND torii_left_out "manual pages (this machine cannot run the programs)")
elseif(TORII_SANITIZE STREQUAL "none")
  set(TORII_MANUALS TRUE)
endif()

# torii_manual(program component [subcommand...]): pages of an installed program: its own, and for each subcommand one
# that is called program-subcommand.
function(torii_manual program component)
  if(NOT TORII_MANUALS)
    return()
  endif()
  set(pages)
  foreach(subcommand IN ITEMS "" LISTS ARGN)
    set(page ${PROJECT_BINARY_DIR}/man/man1/${program}.1)
    if(subcommand)
      set(page ${PROJECT_BINARY_DIR}/man/man1/${program}-${subcommand}.1)
    endif()
    add_custom_command(
      OUTPUT ${page}
      COMMAND ${CMAKE_COMMAND} -DHELP2MAN=${TORII_HELP2MAN} -DPROGRAM=$<TARGET_FILE:${program}>
              "-DSUBCOMMAND=${subcommand}" "-DSUBCOMMANDS=${ARGN}" -DVERSION=${PROJECT_VERSION} -DOUTPUT=${page}
              -P ${PROJECT_SOURCE_DIR}/cmake/make_manual.cmake
      DEPENDS ${program} ${PROJECT_SOURCE_DIR}/cmake/make_manual.cmake
      VERBATIM)
    list(APPEND pages ${page})
  endforeach()
  add_custom_target(${program}.manual ALL DEPENDS ${pages})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()
