# SPDX-License-Identifier: Apache-2.0
# Packages, by `./dev package` or by `cpack` in the build folder of a release build: Debian packages, one for each
# component of the installation, and a tarball with all of it, which may be unpacked anywhere.
set(TORII_PACKAGE_CONTACT "The torii developers <torii@example.org>"
    CACHE STRING "Maintainer of the Debian packages; the address has to be your own before you publish them")
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME torii)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_CONTACT "${TORII_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_VENDOR torii)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
# The tarball has no prefix, the Debian packages have /usr.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/debian/cpack_options.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian/finish_component.cmake)
set(CPACK_TORII_SOURCE_DIR ${PROJECT_SOURCE_DIR})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_COMPONENTS_ALL)

# torii_package(COMPONENT component NAME package SECTION section TEXT description [DEPENDS relation...]
#               [SUGGESTS package...] [FILES control file...])
# `description` is its first line, and behind it paragraphs. A relation without a version is to this very version when
# it is to another package of ours.
set(torii_library_package libtorii${TORII_ABI})
function(torii_package)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "COMPONENT;NAME;SECTION;SUMMARY;TEXT" "DEPENDS;SUGGESTS;FILES")
  string(TOUPPER ${arg_COMPONENT} id)
  list(TRANSFORM arg_DEPENDS REPLACE "^([a-z0-9-]*torii[a-z0-9-]*)$" "\\1 (= ${PROJECT_VERSION})")
  list(JOIN arg_DEPENDS ", " depends)
  list(JOIN arg_SUGGESTS ", " suggests)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${arg_COMPONENT} PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_NAME ${arg_NAME} PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_SECTION ${arg_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_SUGGESTS "${suggests}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_CONTROL_EXTRA "${arg_FILES}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${id}_DESCRIPTION "${arg_SUMMARY}\n${arg_TEXT}" PARENT_SCOPE)
endfunction()

set(torii_about "torii is a library for collective communication between processes on CPUs:
allreduce, broadcast, alltoall and others, over shared memory, libfabric and
UCX, with results that have the same bits every time.")

if(torii_library_kind STREQUAL "SHARED")
  set(control ${PROJECT_BINARY_DIR}/debian)
  file(CONFIGURE OUTPUT ${control}/shlibs CONTENT
       "libtorii ${TORII_ABI} ${torii_library_package} (>= ${PROJECT_VERSION})\n" @ONLY)
  file(CONFIGURE OUTPUT ${control}/triggers CONTENT "activate-noawait ldconfig\n" @ONLY)
  torii_package(
    COMPONENT library NAME ${torii_library_package} SECTION libs
    FILES ${control}/shlibs ${control}/triggers
    SUMMARY "deterministic collective communication"
    TEXT "${torii_about}
.
This package contains the shared library and the modules for networks and
PMIx that it opens when a job needs them.")
  set(needed ${torii_library_package})
else()
  set(needed libsodium-dev libxxhash-dev)
endif()
torii_package(
  COMPONENT development NAME libtorii-dev SECTION libdevel
  DEPENDS ${needed}
  SUGGESTS torii-tools
  SUMMARY "deterministic collective communication (development files)"
  TEXT "${torii_about}
.
This package contains the headers for C and C++, and the files for CMake and
pkg-config.")
if(torii_library_kind STREQUAL "SHARED")
  set(needed ${torii_library_package})
else()
  set(needed)
endif()
torii_package(
  COMPONENT tools NAME torii-tools SECTION utils
  DEPENDS ${needed}
  SUMMARY "deterministic collective communication (programs)"
  TEXT "${torii_about}
.
This package contains the launcher torii-run, torii-info, which describes and
tunes a machine, torii-lab and torii-sim, which run and simulate jobs on
networks that are not there, and programs that time the collectives.")
if(TORII_PERF)
  torii_package(
    COMPONENT perf NAME torii-perf SECTION utils
    DEPENDS torii-tools python3
    SUGGESTS binutils python3-torii valgrind
    SUMMARY "deterministic collective communication (comparisons)"
    TEXT "${torii_about}
.
This package contains the programs and scripts that time torii beside other
libraries: Open MPI, MPICH, Gloo, PyTorch.")
endif()
if(TARGET mca_coll_torii AND TORII_OPENMPI_COMPONENTS)
  # The library is part of the component; the modules for several nodes are in its package.
  torii_package(
    COMPONENT openmpi NAME torii-openmpi SECTION libs
    SUGGESTS ${torii_library_package}
    SUMMARY "deterministic collective communication (component of Open MPI)"
    TEXT "${torii_about}
.
This package makes the collectives of unmodified MPI programs that run with
Open MPI go through torii, when OMPI_MCA_coll_torii_enable is 1.")
  set(CPACK_TORII_OPENMPI_COMPONENTS ${TORII_OPENMPI_COMPONENTS})
  # A link where Open MPI looks for its components, in this package alone.
  file(RELATIVE_PATH CPACK_TORII_OPENMPI_LINK ${TORII_OPENMPI_COMPONENTS}
       /usr/${CMAKE_INSTALL_LIBDIR}/torii/openmpi/mca_coll_torii.so)
endif()
if(TARGET torii_python)
  torii_package(
    COMPONENT python NAME python3-torii SECTION python
    DEPENDS ${torii_library_package} torii-tools "python3 (>= 3.11)"
    SUGGESTS python3-numpy
    SUMMARY "deterministic collective communication (Python)"
    TEXT "${torii_about}
.
This package contains the Python package torii, for NumPy arrays and other
buffers.")
endif()
if(TARGET torii_torch)
  # A package of its own: PyTorch takes hundreds of megabytes, and its extension belongs to one version of PyTorch.
  torii_package(
    COMPONENT pytorch NAME python3-torii-torch SECTION python
    DEPENDS python3-torii python3 python3-torch
    SUMMARY "deterministic collective communication (backend of PyTorch)"
    TEXT "${torii_about}
.
This package contains the backend torii of torch.distributed, for tensors in
the memory of CPUs.")
endif()
include(CPack)
