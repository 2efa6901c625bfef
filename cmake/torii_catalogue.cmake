# SPDX-License-Identifier: Apache-2.0
# torii_catalogue(): the source that makes a list of algorithms the catalogue.
include_guard(GLOBAL)

# torii_catalogue(OUTPUT source LIST file [EXTRA constant...])
# Writes the definitions of torii::catalogue() and torii::algorithm_names() with one row for each line `kName` of LIST,
# and then for each of EXTRA. The source defines nothing else, so a program that compiles its own replaces the one in
# the static library.
function(torii_catalogue)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT;LIST" "EXTRA")
  if(NOT arg_OUTPUT OR NOT arg_LIST OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torii_catalogue needs OUTPUT and LIST; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  file(STRINGS ${arg_LIST} rows REGEX "^[^#]")
  list(APPEND rows ${arg_EXTRA})
  set(declarations)
  foreach(row IN LISTS rows)
    if(NOT row MATCHES "^k[A-Z][A-Za-z0-9]*$")
      message(FATAL_ERROR "${arg_LIST}: '${row}' is not the name of a constant like kRing")
    endif()
    string(APPEND declarations "extern const Algorithm ${row};\n")
  endforeach()
  list(TRANSFORM rows APPEND ".name" OUTPUT_VARIABLE names)
  list(JOIN names ", " names)
  list(JOIN rows ", " rows)
  file(CONFIGURE OUTPUT ${arg_OUTPUT} CONTENT
"#include \"collectives/selection/catalogue.hpp\"

#include <array>

namespace torii {

@declarations@
std::span<const Algorithm> catalogue() noexcept {
  // Copied at the first use: the rows are constants of other files.
  static const std::array kRows = {@rows@};
  return kRows;
}

std::span<const std::string_view> algorithm_names() noexcept {
  // Arrays of views have no destructor, so both serve until the process has ended.
  static const std::array kNames = {@names@};
  return kNames;
}

}  // namespace torii
" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${arg_LIST})
endfunction()
