# SPDX-License-Identifier: Apache-2.0
# torii_settings: the flags and include roots that every target of this project links. Nothing of it is installed.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# Where programs of the build tree find the modules that the library opens.
set(CMAKE_BUILD_RPATH ${PROJECT_BINARY_DIR}/lib/torii)

# The number of the binary interface: in the soname, and in the name of the Debian package. A change after which older
# programs no longer run raises it (tests/abi).
set(TORII_ABI 0)

# The kind of libtorii; the internal libraries are static in any case. No option of that name, which would also change
# the other libraries of a project that adds torii.
set(torii_library_kind SHARED)
if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
  set(torii_library_kind STATIC)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(torii_settings INTERFACE)
target_include_directories(torii_settings INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(torii_settings INTERFACE Threads::Threads)
# -ffp-contract=off: the bits of a result are a contract, a fused multiply-add would change them.
# -fno-math-errno changes no bits, it lets sqrt and friends be instructions.
target_compile_options(
  torii_settings INTERFACE -ffp-contract=off -fno-math-errno -fvisibility=hidden -Wall -Wextra -Wpedantic -Wshadow
                           -Wconversion -Wno-sign-conversion $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
# g++ 12 sees an overlap in `"text" + std::string` where there is none (GCC bug 105651).
target_compile_options(torii_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(TORII_WERROR)
  target_compile_options(torii_settings INTERFACE -Werror)
endif()

if(TORII_SANITIZE STREQUAL "address")
  # The address sanitizer itself ends a program that uses a null pointer, an address past an object or an object that is
  # gone: checked twice these take a quarter of the compile time.
  set(torii_sanitize_flags -fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow,vptr
                           -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(TORII_SANITIZE STREQUAL "thread")
  set(torii_sanitize_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(TORII_SANITIZE STREQUAL "none")
  set(torii_sanitize_flags)
else()
  message(FATAL_ERROR "TORII_SANITIZE is '${TORII_SANITIZE}'; it must be none, address or thread")
endif()
if(torii_sanitize_flags AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The code that sanitizers add hides initialisations and lengths of strings from g++; the release build still warns.
  target_compile_options(torii_settings INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
                                                  -Wno-stringop-overread)
endif()
# For every folder and not through torii_settings, so that a folder can take some of it back (tests/CMakeLists.txt).
add_compile_options(${torii_sanitize_flags})
add_link_options(${torii_sanitize_flags})

# lld links the test programs in a fraction of the time that GNU ld needs.
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld TORII_HAS_LLD)
  if(TORII_HAS_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

find_program(TORII_CCACHE ccache)
if(TORII_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${TORII_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TORII_CCACHE})
endif()

# With a precompiled header g++ preprocesses as ccache needs it only if told to.
set(torii_header_options)
if(TORII_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(torii_header_options $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

option(TORII_UNITY "Compile the sources of a folder as one where that saves time" ON)

# torii_unity(target...): the sources of each folder of these targets are compiled as one. A template is then
# instantiated once in a folder and not in every file, which is most of what compiling takes. Sources with options of
# their own, with the property SKIP_UNITY_BUILD_INCLUSION, and those that the build makes, are compiled alone. The
# property UNITY_GROUP names another group than the folder. Names in files of a group must differ. A source that another
# target of its CMakeLists.txt compiles alone needs the first property.
# CMake's own unity builds write absolute paths into these files, with which clones could not share a compiler cache.
function(torii_unity)
  foreach(target IN LISTS ARGN)
    # At the end of the folder, when it has said all of its sources.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL torii_unity_now ${target})")
  endforeach()
endfunction()
function(torii_unity_now target)
  if(TORII_UNITY)
    set(groups)
    get_target_property(sources ${target} SOURCES)
    list(REMOVE_DUPLICATES sources)
    foreach(source IN LISTS sources)
      if(NOT source MATCHES "\\.cpp$" OR source MATCHES "\\$<")
        continue()
      endif()
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE path)
      cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${path} is_made)
      get_source_file_property(options ${source} COMPILE_OPTIONS)
      get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
      get_source_file_property(skipped ${source} SKIP_UNITY_BUILD_INCLUSION)
      get_source_file_property(group ${source} UNITY_GROUP)
      if(is_made OR options OR definitions OR skipped)
        continue()
      endif()
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      if(NOT group)
        cmake_path(GET path PARENT_PATH group)
        string(REPLACE "/" "_" group ${group})
      endif()
      list(APPEND groups ${group})
      string(APPEND text_${group} "#include \"${path}\"\n")
      set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
    endforeach()
    list(REMOVE_DUPLICATES groups)
    foreach(group IN LISTS groups)
      set(unit ${CMAKE_CURRENT_BINARY_DIR}/${target}.units/${group}.cpp)
      file(CONFIGURE OUTPUT ${unit} CONTENT "${text_${group}}" @ONLY)
      target_sources(${target} PRIVATE ${unit})
    endforeach()
  endif()
endfunction()

# torii_library(target...): how the libraries under test are compiled. Release builds, which users run and developers
# change, compile each file alone: an include that is missing is found, and a change costs one file. Sanitizer builds
# compile folders, with the standard headers that most sources include from one precompiled file.
add_library(torii_standard_headers STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/standard_headers.cpp)
target_link_libraries(torii_standard_headers PRIVATE torii_settings)
target_precompile_headers(
  torii_standard_headers PRIVATE <algorithm> <array> <atomic> <charconv> <cstring> <functional> <limits> <map> <memory>
  <mutex> <numeric> <optional> <span> <stdexcept> <string> <string_view> <utility> <vector>)
function(torii_library)
  if(torii_sanitize_flags)
    foreach(target IN LISTS ARGN)
      target_precompile_headers(${target} REUSE_FROM torii_standard_headers)
      target_compile_options(${target} PRIVATE ${torii_header_options})
    endforeach()
    torii_unity(${ARGN})
  endif()
endfunction()
