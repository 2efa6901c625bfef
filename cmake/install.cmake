# SPDX-License-Identifier: Apache-2.0
# What an embedder gets: headers, the shared library, a CMake package (torii::torii) and torii.pc. The programs install
# themselves (torii_program).
include(CMakePackageConfigHelpers)

if(TARGET torii)
  # The C ABI may change with every minor version until 1.0, so both numbers are in the soname.
  set_target_properties(torii PROPERTIES VERSION ${PROJECT_VERSION}
                                         SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                                         INSTALL_RPATH "$ORIGIN/torii"  # the modules that it opens
                                         LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exports.map)
  target_link_options(torii PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map)

  set(torii_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/torii)
  file(RELATIVE_PATH torii_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

  install(TARGETS torii EXPORT torii-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES
                                                     DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/torii DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT torii-targets NAMESPACE torii:: DESTINATION ${torii_package_dir})
  configure_package_config_file(cmake/torii-config.cmake.in ${CMAKE_BINARY_DIR}/torii-config.cmake
                                INSTALL_DESTINATION ${torii_package_dir})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/torii-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/torii-config.cmake ${CMAKE_BINARY_DIR}/torii-config-version.cmake
          DESTINATION ${torii_package_dir})
  configure_file(cmake/torii.pc.in ${CMAKE_BINARY_DIR}/torii.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/torii.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
