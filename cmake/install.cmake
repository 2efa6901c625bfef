# SPDX-License-Identifier: Apache-2.0
# What an embedder gets: headers, the library, a CMake package (torii::torii) and torii.pc. The programs install
# themselves (torii_program).
include(CMakePackageConfigHelpers)

set_target_properties(torii PROPERTIES VERSION ${TORII_ABI}.${PROJECT_VERSION} SOVERSION ${TORII_ABI}
                                       INSTALL_RPATH "$ORIGIN/torii")  # the modules that it opens

set(torii_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/torii)
file(RELATIVE_PATH torii_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(torii_pc_private)
if(torii_library_kind STREQUAL "STATIC")
  set(torii_pc_private "Requires.private: libsodium libxxhash
Libs.private: -lstdc++ -lm -pthread -ldl
")
endif()

install(
  TARGETS torii
  EXPORT torii-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  INCLUDES
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/torii DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT torii-targets NAMESPACE torii:: DESTINATION ${torii_package_dir} COMPONENT development)
configure_package_config_file(cmake/torii-config.cmake.in ${PROJECT_BINARY_DIR}/torii-config.cmake
                              INSTALL_DESTINATION ${torii_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/torii-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/torii-config.cmake ${PROJECT_BINARY_DIR}/torii-config-version.cmake
        DESTINATION ${torii_package_dir} COMPONENT development)
configure_file(cmake/torii.pc.in ${PROJECT_BINARY_DIR}/torii.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/torii.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
