# SPDX-License-Identifier: Apache-2.0
# Python, for the package in python/ and its tests: TORII_PYTHON_FOUND, TORII_PYTHON_INCLUDE, TORII_PYTHON_PROGRAM,
# and TORII_PYTHON_TESTS, which says whether NumPy and pytest are there.
# The interpreter of the system is preferred to one that comes first in PATH: Debian's NumPy and pytest belong to it.
option(TORII_WITH_PYTHON "Build the Python package, where python3-dev is installed" ON)
set(TORII_PYTHON_FOUND FALSE)
set(TORII_PYTHON_TESTS FALSE)
if(NOT TORII_WITH_PYTHON)
  list(APPEND torii_left_out "Python package (TORII_WITH_PYTHON is OFF)")
  return()
endif()
find_program(TORII_PYTHON_PROGRAM python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(TORII_PYTHON_PROGRAM python3)
if(TORII_PYTHON_PROGRAM)
  execute_process(
    COMMAND ${TORII_PYTHON_PROGRAM} -c "import sys, sysconfig
if sys.version_info >= (3, 11): print(sysconfig.get_path('include'), end='')"
    OUTPUT_VARIABLE folder ERROR_QUIET)
  if(folder AND EXISTS ${folder}/Python.h)
    set(TORII_PYTHON_FOUND TRUE)
    set(TORII_PYTHON_INCLUDE ${folder})
  endif()
endif()
if(NOT TORII_PYTHON_FOUND)
  list(APPEND torii_left_out "Python package (install python3-dev, of Python 3.11 or newer)")
elseif(TORII_TESTS)
  execute_process(COMMAND ${TORII_PYTHON_PROGRAM} -c "import numpy, pytest" RESULT_VARIABLE missing ERROR_QUIET)
  if(missing)
    list(APPEND torii_left_out "tests of the Python package (install python3-numpy python3-pytest)")
  else()
    set(TORII_PYTHON_TESTS TRUE)
  endif()
endif()
