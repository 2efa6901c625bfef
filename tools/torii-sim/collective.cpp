// SPDX-License-Identifier: Apache-2.0
// From options to plans, a run of them on virtual time, and the figures of the run.
#include "tools/torii-sim/collective.hpp"

#include "runtime/status.hpp"

namespace torii::tools {

int run_collective(const SimOptions& options, RowWriter&) {
  throw Error(Status::unsupported, "torii-sim " + options.collective + " has no transport to run on in this build");
}

}  // namespace torii::tools
