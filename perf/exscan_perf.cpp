// SPDX-License-Identifier: Apache-2.0
// Times and checks exscan; see exscan_perf --help.
#include "perf/common/run.hpp"

int main(int argc, char** argv) { return torii::perf::run(TORII_EXSCAN, argc, argv); }
