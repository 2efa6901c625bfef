# SPDX-License-Identifier: Apache-2.0
# torii_program(): a program that users install. It lands in <build>/bin.
include_guard(GLOBAL)

# torii_program(NAME name SOURCES file... [LIBS target...] [PERF] [COMPONENT name] [COMMANDS subcommand...])
# Tools install into bin, programs marked PERF into libexec/torii. They belong to the component (and Debian package)
# "tools" unless another one is given. Each has a manual page made from its --help, and so have these subcommands.
# Installed programs find libtorii beside them, and the modules in its folder torii, by relative paths, so an installed
# tree may be moved.
function(torii_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "PERF" "NAME;COMPONENT" "SOURCES;LIBS;COMMANDS")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torii_program needs NAME and SOURCES; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_COMPONENT)
    set(arg_COMPONENT tools)
  endif()
  set(destination ${CMAKE_INSTALL_BINDIR})
  if(arg_PERF)
    set(destination ${CMAKE_INSTALL_LIBEXECDIR}/torii)
  endif()
  file(RELATIVE_PATH to_library /${destination} /${CMAKE_INSTALL_LIBDIR})
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE torii_settings ${arg_LIBS})
  set_target_properties(${arg_NAME} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library};$ORIGIN/${to_library}/torii")
  # Sanitizer builds hold what the tests in them need, which dependencies bring in.
  if(NOT TORII_SANITIZE STREQUAL "none")
    set_target_properties(${arg_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  install(TARGETS ${arg_NAME} RUNTIME DESTINATION ${destination} COMPONENT ${arg_COMPONENT})
  torii_manual(${arg_NAME} ${arg_COMPONENT} ${arg_COMMANDS})
endfunction()

# torii_install_module(target): a module that the library opens goes into the folder torii beside it.
function(torii_install_module target)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/torii COMPONENT library)
endfunction()

# torii_front_end(target or file...): command lines and reports; of a target that also measures, these files only. Their
# templates take g++ long at -O3, and nobody waits for what they do.
function(torii_front_end)
  set(options)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(options -O1 -g1)
  elseif(NOT TORII_SANITIZE STREQUAL "none")
    set(options -O0 -fno-sanitize=undefined)
  endif()
  foreach(item IN LISTS ARGN)
    if(TARGET ${item})
      target_compile_options(${item} PRIVATE ${options})
      torii_unity(${item})
    else()
      set_source_files_properties(${item} PROPERTIES COMPILE_OPTIONS "${options}")
    endif()
  endforeach()
endfunction()
