# SPDX-License-Identifier: Apache-2.0
# Open MPI and MPICH side by side. CMake's own FindMPI finds one of them; both are needed in one build for the
# comparison programs, so each is asked through its own compiler wrapper: torii_mpi_openmpi and torii_mpi_mpich.

# Turns what a wrapper prints into an imported target. -Wl options of the distribution's hardening are dropped.
function(torii_add_mpi name command_line)
  separate_arguments(words UNIX_COMMAND "${command_line}")
  add_library(torii_mpi_${name} INTERFACE IMPORTED GLOBAL)
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      target_include_directories(torii_mpi_${name} SYSTEM INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      target_link_directories(torii_mpi_${name} INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l(.+)")
      target_link_libraries(torii_mpi_${name} INTERFACE ${CMAKE_MATCH_1})
    elseif(word STREQUAL "-pthread")
      target_compile_options(torii_mpi_${name} INTERFACE -pthread)
    endif()
  endforeach()
  # Their headers use C++ bindings only when asked; ours are C calls.
  target_compile_definitions(torii_mpi_${name} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endfunction()

find_program(TORII_MPICC_OPENMPI mpicc.openmpi)
if(TORII_MPICC_OPENMPI)
  execute_process(
    COMMAND ${TORII_MPICC_OPENMPI} --showme:compile
    OUTPUT_VARIABLE compile OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  execute_process(
    COMMAND ${TORII_MPICC_OPENMPI} --showme:link
    OUTPUT_VARIABLE link OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  torii_add_mpi(openmpi "${compile} ${link}")
else()
  list(APPEND torii_left_out "comparison with Open MPI (install libopenmpi-dev openmpi-bin)")
endif()

# The component coll/torii needs headers that only a build with Open MPI's devel tree installs, and is written for 4.1.
option(TORII_WITH_OPENMPI "Build the Open MPI component, where Open MPI 4.1 with devel headers is installed" ON)
set(TORII_OPENMPI_DEVEL FALSE)
if(NOT TORII_WITH_OPENMPI)
  list(APPEND torii_left_out "Open MPI component (TORII_WITH_OPENMPI is OFF)")
elseif(TORII_MPICC_OPENMPI)
  get_target_property(folders torii_mpi_openmpi INTERFACE_INCLUDE_DIRECTORIES)
  execute_process(
    COMMAND ${TORII_MPICC_OPENMPI} --showme:version
    OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
  find_path(TORII_OPENMPI_COLL ompi/mca/coll/coll.h PATHS ${folders} NO_DEFAULT_PATH)
  if(TORII_OPENMPI_COLL AND version MATCHES "Open MPI 4\\.1\\.")
    set(TORII_OPENMPI_DEVEL TRUE)
  else()
    list(APPEND torii_left_out "Open MPI component (it needs Open MPI 4.1 and its devel headers)")
  endif()
else()
  list(APPEND torii_left_out "Open MPI component (install libopenmpi-dev openmpi-bin)")
endif()

find_program(TORII_MPICC_MPICH mpicc.mpich)
if(TORII_MPICC_MPICH)
  execute_process(
    COMMAND ${TORII_MPICC_MPICH} -show
    OUTPUT_VARIABLE show OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  torii_add_mpi(mpich "${show}")
else()
  list(APPEND torii_left_out "comparison with MPICH (install libmpich-dev mpich)")
endif()
