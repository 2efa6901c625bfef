# SPDX-License-Identifier: Apache-2.0
# Debian packages, by `cpack` in the build folder of a release build: torii, which is all that is installed but for
# torii-openmpi, the component for Open MPI, python3-torii, and python3-torii-torch, the backend of PyTorch. The
# component for Open MPI needs torii only if a job has several nodes.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME torii)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_CONTACT "the developers of torii")
set(CPACK_PACKAGE_VENDOR torii)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME torii)
if(TARGET mca_coll_torii AND TORII_OPENMPI_COMPONENTS)
  list(APPEND CPACK_COMPONENTS_ALL openmpi)
  set(CPACK_DEBIAN_OPENMPI_PACKAGE_NAME torii-openmpi)
  set(CPACK_DEBIAN_OPENMPI_PACKAGE_SUGGESTS torii)
  # In the package, and not in other installations: a link where Open MPI looks for its components.
  file(RELATIVE_PATH component ${TORII_OPENMPI_COMPONENTS}
       /usr/${CMAKE_INSTALL_LIBDIR}/torii/openmpi/mca_coll_torii.so)
  file(
    CONFIGURE
    OUTPUT ${CMAKE_BINARY_DIR}/link_component.cmake
    CONTENT "cmake_minimum_required(VERSION 3.25)
set(folder \"\${CPACK_TEMPORARY_INSTALL_DIRECTORY}/openmpi@TORII_OPENMPI_COMPONENTS@\")
if(\"openmpi\" IN_LIST CPACK_COMPONENTS_ALL)
  file(MAKE_DIRECTORY \"\${folder}\")
  file(CREATE_LINK \"@component@\" \"\${folder}/mca_coll_torii.so\" SYMBOLIC)
endif()
"
    @ONLY)
  set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_BINARY_DIR}/link_component.cmake)
endif()
if(TARGET torii_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-torii)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "torii (= ${PROJECT_VERSION}), python3 (>= 3.11)")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-numpy)
endif()
if(TARGET torii_torch)
  list(APPEND CPACK_COMPONENTS_ALL pytorch)
  set(CPACK_DEBIAN_PYTORCH_PACKAGE_NAME python3-torii-torch)
  set(CPACK_DEBIAN_PYTORCH_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTORCH_PACKAGE_DEPENDS "python3-torii (= ${PROJECT_VERSION}), python3-torch")
endif()
include(CPack)
