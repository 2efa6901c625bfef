# SPDX-License-Identifier: Apache-2.0
# Finds the Debian packages that the project stands on. Every required one that is missing is named at once, with its
# package; what is optional and missing is listed in the summary at the end of the configuration.
find_package(PkgConfig REQUIRED)
set(torii_missing_packages)
set(torii_left_out)

# A required library that describes itself to pkg-config; it becomes PkgConfig::<prefix>.
macro(torii_require_module prefix module debian_package)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${prefix}_FOUND)
    list(APPEND torii_missing_packages ${debian_package})
  endif()
endmacro()

# A required library that comes with a CMake package.
macro(torii_require_package name debian_package)
  find_package(${name} QUIET CONFIG)
  if(NOT ${name}_FOUND)
    list(APPEND torii_missing_packages ${debian_package})
  endif()
endmacro()

# An optional library; `what` is what its absence costs. TORII_WITH_<prefix>=OFF builds without it though it is there.
macro(torii_optional_module prefix module debian_package what)
  option(TORII_WITH_${prefix} "Build ${what}, where ${debian_package} is installed" ON)
  if(TORII_WITH_${prefix})
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(NOT ${prefix}_FOUND)
      list(APPEND torii_left_out "${what} (install ${debian_package})")
    endif()
  else()
    set(${prefix}_FOUND FALSE)  # an earlier configuration may have left that it was found
    list(APPEND torii_left_out "${what} (TORII_WITH_${prefix} is OFF)")
  endif()
endmacro()

torii_require_module(HWLOC hwloc libhwloc-dev)
torii_require_module(HWY libhwy libhwy-dev)
torii_require_module(XXHASH libxxhash libxxhash-dev)
torii_require_module(SODIUM libsodium libsodium-dev)
torii_require_package(fmt libfmt-dev)
torii_require_package(CLI11 libcli11-dev)
torii_require_package(nlohmann_json nlohmann-json3-dev)
if(TORII_TESTS)
  torii_require_package(GTest libgtest-dev)
endif()
if(TORII_PERF)
  torii_require_package(benchmark libbenchmark-dev)
endif()
if(torii_missing_packages)
  list(JOIN torii_missing_packages " " packages)
  message(FATAL_ERROR "Missing libraries. On Debian 12 run: apt-get install ${packages}")
endif()

torii_optional_module(LIBFABRIC libfabric libfabric-dev "transport libfabric")
torii_optional_module(UCX ucx libucx-dev "transport ucx")
torii_optional_module(PMIX pmix libpmix-dev "joining through PMIx")
torii_optional_module(FFTW fftw3 libfftw3-dev "comparison with FFTW's transpose")
find_library(TORII_FFTW_MPI fftw3_mpi)
if(FFTW_FOUND AND NOT TORII_FFTW_MPI)
  set(FFTW_FOUND FALSE)
  list(APPEND torii_left_out "comparison with FFTW's transpose (install libfftw3-mpi-dev)")
endif()
include(mpi)

include(summary)
