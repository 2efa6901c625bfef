# SPDX-License-Identifier: Apache-2.0
# What an embedder does: install, move the tree, build a consumer from it in both ways, run it; and look at the library:
# it exports torii_* only. Other projects can also add the sources; that these build and run is tried by
# tests/packages/embedders, since it takes minutes. Called by ctest with BUILD_DIR, WORK_DIR, CXX, GENERATOR, VERSION.
cmake_policy(VERSION 3.25)
set(consumer_dir ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(prefix ${WORK_DIR}/prefix)

# run(command...): fails the test with the command's whole output, or leaves the output in `output`.
macro(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGN}\n${output}\n${errors}")
  endif()
endmacro()

# expect_version(program): the consumer prints the version of the library that it found.
macro(expect_version program)
  run(${program})
  if(NOT output STREQUAL "torii ${VERSION}\n")
    message(FATAL_ERROR "${program} printed '${output}', not 'torii ${VERSION}'")
  endif()
endmacro()

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tests_dir)
cmake_path(GET tests_dir PARENT_PATH source_dir)
file(STRINGS ${source_dir}/CITATION.cff cited REGEX "^version: ")
if(NOT cited STREQUAL "version: ${VERSION}")
  message(FATAL_ERROR "CITATION.cff has '${cited}'; VERSION has ${VERSION}")
endif()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/first)
# Nothing installed may depend on where it was installed first.
file(RENAME ${WORK_DIR}/first ${prefix})

run(${CMAKE_COMMAND} -S ${consumer_dir} -B ${WORK_DIR}/by_cmake -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/by_cmake)
expect_version(${WORK_DIR}/by_cmake/consumer)

file(GLOB_RECURSE pc_file ${prefix}/*/torii.pc)
get_filename_component(pc_dir ${pc_file} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(pkg-config --cflags --libs torii)
separate_arguments(flags UNIX_COMMAND ${output})
run(pkg-config --variable=libdir torii)
string(STRIP ${output} libdir)
run(${CXX} -std=c++20 ${consumer_dir}/consumer.cpp -o ${WORK_DIR}/by_pkg_config ${flags} -Wl,-rpath,${libdir})
expect_version(${WORK_DIR}/by_pkg_config)

# A project that adds the sources is configured, gets no target that it did not ask for, and finds the headers.
foreach(how IN ITEMS add_subdirectory FetchContent)
  set(tree ${WORK_DIR}/${how})
  run(${CMAKE_COMMAND} -S ${consumer_dir} -B ${tree} -G Ninja -DTORII_FROM=${how} -DTORII_SOURCE_DIR=${source_dir}
      -DCMAKE_CXX_COMPILER=${CXX})
  run(ninja -C ${tree} CMakeFiles/consumer.dir/consumer.cpp.o CMakeFiles/allreduce.dir/allreduce.cpp.o)
  run(ninja -C ${tree} -t targets all)
  if(output MATCHES "\n(torii-info|all_reduce_perf|tidy_test): phony" OR NOT output MATCHES "\ntorii: phony")
    message(FATAL_ERROR "a project that adds torii by ${how} gets the targets\n${output}")
  endif()
endforeach()

file(GLOB library ${libdir}/libtorii.so)
run(nm --dynamic --defined-only --format=posix ${library})
string(REPLACE "\n" ";" symbols "${output}")
foreach(symbol IN LISTS symbols)
  if(symbol AND NOT symbol MATCHES "^torii_")
    message(FATAL_ERROR "libtorii exports '${symbol}'; only torii_* may leave it")
  endif()
endforeach()

# The Python package of the moved tree finds the library and the launcher of that tree.
file(GLOB_RECURSE package ${prefix}/*/torii/_torii.abi3.so)
if(PYTHON AND package)
  cmake_path(GET package PARENT_PATH folder)
  cmake_path(GET folder PARENT_PATH packages)
  set(ENV{PYTHONPATH} ${packages})
  run(${PYTHON} -B -c "import torii, torii.run; print(torii.__version__, torii.run.find_torii_run())")
  if(NOT output STREQUAL "${VERSION} ${prefix}/bin/torii-run\n")
    message(FATAL_ERROR "the installed Python package printed '${output}'")
  endif()
  file(GLOB backend ${folder}/_torch.*.so)
  if(backend)
    run(${PYTHON} -B -c "import torch.distributed as dist, torii.torch; print(dist.Backend('torii'))")
    if(NOT output STREQUAL "torii\n")
      message(FATAL_ERROR "the installed backend of PyTorch printed '${output}'")
    endif()
  endif()
endif()
