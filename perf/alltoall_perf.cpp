// SPDX-License-Identifier: Apache-2.0
// Times and checks alltoall; see alltoall_perf --help.
#include "perf/common/run.hpp"

int main(int argc, char** argv) { return torii::perf::run(TORII_ALLTOALL, argc, argv); }
