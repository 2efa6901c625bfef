# SPDX-License-Identifier: Apache-2.0
# Run at every build: writes OUTPUT, which defines torii::perf::commit(), when the commit has changed.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit RESULT_VARIABLE failed
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed)
  set(commit unknown)
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit -dirty)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// SPDX-License-Identifier: Apache-2.0
// Written by perf/commit.cmake.
#include "perf/common/host.hpp"

namespace torii::perf {
const char* commit() { return "@commit@"; }
}  // namespace torii::perf
]] @ONLY)
