# SPDX-License-Identifier: Apache-2.0
# torii_tune_rows(): the source that makes tune files the rows of the built-in tune table.
include_guard(GLOBAL)

# What a value of a row is called in C++, in the order of the members; true and false arrive as ON and OFF.
set(torii_tune_members topology collective ranks bytes_min bytes_max algorithm segment slots window one_shot radix)

# torii_tune_row(variable row where): the initialiser of one row, given as JSON.
function(torii_tune_row variable row where)
  set(text)
  set(tuning)
  set(known 0)
  foreach(member IN LISTS torii_tune_members)
    string(JSON value ERROR_VARIABLE missing GET "${row}" ${member})
    if(missing)
      continue()
    endif()
    math(EXPR known "${known} + 1")
    if(member STREQUAL "topology" AND value STREQUAL "switch")
      string(APPEND text ".topology = Topology::Kind::node, .is_switch = true, ")
    elseif(member STREQUAL "topology")
      string(APPEND text ".topology = Topology::Kind::${value}, ")
    elseif(member STREQUAL "collective")
      string(APPEND text ".collective = Collective::${value}, ")
    elseif(member STREQUAL "ranks")
      string(JSON least GET "${value}" 0)
      string(JSON most GET "${value}" 1)
      string(APPEND text ".ranks_min = ${least}, .ranks_max = ${most}, ")
    elseif(member STREQUAL "algorithm")
      string(APPEND text ".algorithm = \"${value}\", ")
    elseif(member MATCHES "^bytes" AND NOT value STREQUAL "")
      string(APPEND text ".${member} = ${value}, ")
    elseif(member STREQUAL "segment")
      string(APPEND tuning ".segment_bytes = ${value}, ")
    elseif(member STREQUAL "one_shot")
      string(TOLOWER "${value}" value)
      string(REPLACE "on" "true" value "${value}")
      string(REPLACE "off" "false" value "${value}")
      string(APPEND tuning ".one_shot = ${value}, ")
    elseif(NOT value STREQUAL "")
      string(APPEND tuning ".${member} = ${value}, ")
    endif()
  endforeach()
  string(JSON members LENGTH "${row}")
  if(NOT known EQUAL members)
    message(FATAL_ERROR "${where}: '${row}' has a member other than ${torii_tune_members}")
  endif()
  if(NOT tuning MATCHES "radix")
    string(APPEND tuning ".radix = 0, ")  # as in files: the algorithm chooses
  endif()
  set(${variable} "{${text}.tuning = {${tuning}}},\n" PARENT_SCOPE)
endfunction()

# torii_tune_rows(OUTPUT source TABLES file...)
# Writes the definition of torii::built_in_rows(), with the rows of the files in their order, of kBuiltInMachine, the
# machine that a file names, and of kBuiltInDigest, a digest of their texts. The files are JSON as TuneTable describes.
function(torii_tune_rows)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT" "TABLES")
  if(NOT arg_OUTPUT OR NOT arg_TABLES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torii_tune_rows needs OUTPUT and TABLES; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  set(tables)
  set(texts)
  set(spans)
  set(machine)
  foreach(file IN LISTS arg_TABLES)
    file(READ ${file} text)
    string(APPEND texts "${text}")
    string(JSON rows GET "${text}" rows)
    string(JSON count LENGTH "${rows}")
    math(EXPR last "${count} - 1")
    get_filename_component(name ${file} NAME_WE)
    string(APPEND tables "constexpr TuneRow k_${name}[] = {\n")
    foreach(index RANGE ${last})
      string(JSON row GET "${rows}" ${index})
      torii_tune_row(initialiser "${row}" "${file}, row ${index}")
      string(APPEND tables "${initialiser}")
    endforeach()
    string(APPEND tables "};\n")
    list(APPEND spans k_${name})
    string(JSON values ERROR_VARIABLE missing GET "${text}" machine)
    if(NOT missing)
      foreach(member IN ITEMS cpus l3_groups numa_nodes ranks)
        string(JSON value GET "${values}" ${member})
        string(APPEND machine ".${member} = ${value}, ")
      endforeach()
    endif()
  endforeach()
  string(SHA256 digest "${texts}")
  string(SUBSTRING ${digest} 0 16 digest)
  list(JOIN spans ", " spans)
  file(CONFIGURE OUTPUT ${arg_OUTPUT} CONTENT
"#include \"collectives/selection/built_in_rows.hpp\"

namespace torii {
namespace {

@tables@
}  // namespace

std::array<std::span<const TuneRow>, kBuiltInTables> built_in_rows() noexcept { return {@spans@}; }

const MachineShape kBuiltInMachine = {@machine@};
const std::uint64_t kBuiltInDigest = 0x@digest@;

}  // namespace torii
" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${arg_TABLES})
endfunction()
