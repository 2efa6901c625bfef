// SPDX-License-Identifier: Apache-2.0
// Times and checks all_gather; see all_gather_perf --help.
#include "perf/common/run.hpp"

int main(int argc, char** argv) { return torii::perf::run(TORII_ALL_GATHER, argc, argv); }
