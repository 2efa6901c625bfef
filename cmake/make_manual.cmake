# SPDX-License-Identifier: Apache-2.0
# Makes one manual page, at build time: of HELP2MAN, PROGRAM, SUBCOMMAND (may be empty), SUBCOMMANDS, VERSION, OUTPUT.
cmake_policy(VERSION 3.25)
get_filename_component(program ${PROGRAM} NAME)
get_filename_component(name ${OUTPUT} NAME_WLE)
execute_process(
  COMMAND ${PROGRAM} ${SUBCOMMAND} --help
  OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)

# What the page says behind the name is the first line of the help that describes: one without an example of a call.
string(REGEX REPLACE "\n\n?Usage:.*" "" about "${help}")
string(REGEX REPLACE "[^\n]*( -- |\\[options\\])[^\n]*\n" "" about "${about}")
string(REGEX REPLACE "([.:;]|\n\n).*" "" about "${about}")
string(REPLACE "\n" " " about "${about}")
string(STRIP "${about}" about)
if(about STREQUAL "")
  message(FATAL_ERROR "${program} ${SUBCOMMAND} --help does not begin with what the program does")
endif()
string(SUBSTRING "${about}" 0 1 first)
string(SUBSTRING "${about}" 1 -1 rest)
string(TOLOWER "${first}" first)

set(see_also)
foreach(subcommand IN LISTS SUBCOMMANDS)
  if(NOT subcommand STREQUAL SUBCOMMAND)
    list(APPEND see_also ".BR ${program}-${subcommand} (1)")
  endif()
endforeach()
if(SUBCOMMAND)
  list(PREPEND see_also ".BR ${program} (1)")
endif()
list(JOIN see_also ",\n" see_also)
set(include)
if(see_also)
  file(WRITE ${OUTPUT}.include "[see also]\n${see_also}\n")
  set(include --include=${OUTPUT}.include)
endif()

# Found through PATH, so that no page names the folder of a build.
get_filename_component(folder ${PROGRAM} DIRECTORY)
set(ENV{PATH} ${folder}:$ENV{PATH})
set(command ${program})
if(SUBCOMMAND)
  string(APPEND command " ${SUBCOMMAND}")
endif()
execute_process(
  COMMAND ${HELP2MAN} --no-info "--name=${first}${rest}" "--version-string=${program} ${VERSION}"
          ${include} --source=torii --manual=torii ${command}
  OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${OUTPUT}.include)
# help2man takes the program's name for that of the page.
if(SUBCOMMAND)
  string(TOUPPER "${program}" upper)
  string(TOUPPER "${name}" upper_name)
  string(REPLACE "\n.TH ${upper} " "\n.TH ${upper_name} " page "${page}")
  string(REPLACE "\n${program} \\- " "\n${name} \\- " page "${page}")
endif()
file(WRITE ${OUTPUT} "${page}")
