# SPDX-License-Identifier: Apache-2.0
# PyTorch, for plugins/pytorch: TORII_TORCH_FOUND, TORII_TORCH_INCLUDES, TORII_TORCH_LIBRARIES and TORII_TORCH_ABI.
# PyTorch's own CMake package looks for all that PyTorch was built with, so Python is asked instead: for where PyTorch
# is, since torch.utils.cpp_extension, which knows its folders, needs setuptools.
option(TORII_WITH_PYTORCH "Build the backend of torch.distributed, where PyTorch is installed" ON)
set(TORII_TORCH_FOUND FALSE)
if(NOT TORII_WITH_PYTORCH)
  list(APPEND torii_left_out "backend of PyTorch (TORII_WITH_PYTORCH is OFF)")
  return()
endif()
if(TORII_PYTHON_FOUND)
  # The program has to begin PyTorch, which takes seconds: asked once for each build folder.
  if(NOT TORII_TORCH_PLACES)
    execute_process(
      COMMAND ${TORII_PYTHON_PROGRAM} -c "import importlib.machinery, os, torch
root = os.path.dirname(torch.__file__)
headers = os.path.join(root, 'include')
abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
suffix = importlib.machinery.EXTENSION_SUFFIXES[0].lstrip('.')
if torch.distributed.is_available():
    print(headers, os.path.join(root, 'lib'), abi, suffix, torch.__version__, sep='|', end='')"
      OUTPUT_VARIABLE answer ERROR_QUIET)
    set(TORII_TORCH_PLACES "${answer}" CACHE INTERNAL "What Python says about PyTorch")
  endif()
  if(TORII_TORCH_PLACES MATCHES "^([^|]+)[|]([^|]+)[|]([01])[|]([^|]+)[|]([^|]+)$")
    set(TORII_TORCH_ABI ${CMAKE_MATCH_3})
    set(TORII_PYTHON_SUFFIX ${CMAKE_MATCH_4})
    set(folder ${CMAKE_MATCH_2})
    set(TORII_TORCH_INCLUDES ${CMAKE_MATCH_1} ${CMAKE_MATCH_1}/torch/csrc/api/include)
    set(TORII_TORCH_LIBRARIES)
    foreach(name IN ITEMS torch_python torch_cpu c10)
      find_library(TORII_TORCH_${name} ${name} HINTS ${folder})
      mark_as_advanced(TORII_TORCH_${name})
      list(APPEND TORII_TORCH_LIBRARIES ${TORII_TORCH_${name}})
    endforeach()
    find_path(TORII_TORCH_HEADERS torch/csrc/distributed/c10d/ProcessGroup.hpp HINTS ${TORII_TORCH_INCLUDES})
    find_path(TORII_PYBIND11 pybind11/pybind11.h HINTS ${TORII_TORCH_INCLUDES})
    mark_as_advanced(TORII_TORCH_HEADERS TORII_PYBIND11)
    if(TORII_TORCH_HEADERS AND TORII_PYBIND11 AND NOT TORII_TORCH_LIBRARIES MATCHES "NOTFOUND")
      set(TORII_TORCH_FOUND TRUE)
      list(APPEND TORII_TORCH_INCLUDES ${TORII_TORCH_HEADERS} ${TORII_PYBIND11})
      list(REMOVE_DUPLICATES TORII_TORCH_INCLUDES)
    endif()
  endif()
endif()
if(NOT TORII_TORCH_FOUND)
  list(APPEND torii_left_out "backend of PyTorch (install python3-torch libtorch-dev pybind11-dev)")
endif()
