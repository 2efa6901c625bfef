# SPDX-License-Identifier: Apache-2.0
# Called by cpack before it packs: adds to each Debian package what the archive's rules ask for (copyright, changelog,
# compressed manual pages, overrides of lintian), and to torii-openmpi the link through which Open MPI finds it. Other
# installations do not get these files.
cmake_minimum_required(VERSION 3.25)
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

# compress(file): as Debian wants it, the same bytes every time.
function(compress file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} id)
  set(package ${CPACK_DEBIAN_${id}_PACKAGE_NAME})
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component})
  if(component STREQUAL "openmpi")
    file(MAKE_DIRECTORY ${root}${CPACK_TORII_OPENMPI_COMPONENTS})
    file(CREATE_LINK ${CPACK_TORII_OPENMPI_LINK} ${root}${CPACK_TORII_OPENMPI_COMPONENTS}/mca_coll_torii.so SYMBOLIC)
  endif()

  set(folder ${root}/usr/share/doc/${package})
  file(MAKE_DIRECTORY ${folder})
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${folder}
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(WRITE ${folder}/changelog "torii (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What changed is in CHANGELOG.md of the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  compress(${folder}/changelog)

  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${package}.lintian-overrides)
    file(COPY ${CMAKE_CURRENT_LIST_DIR}/${package}.lintian-overrides
         DESTINATION ${root}/usr/share/lintian/overrides
         FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    file(RENAME ${root}/usr/share/lintian/overrides/${package}.lintian-overrides
         ${root}/usr/share/lintian/overrides/${package})
  endif()
  file(GLOB pages ${root}/usr/share/man/*/*.[1-9])
  foreach(page IN LISTS pages)
    compress(${page})
  endforeach()
endforeach()
