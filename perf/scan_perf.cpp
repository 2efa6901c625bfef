// SPDX-License-Identifier: Apache-2.0
// Times and checks scan; see scan_perf --help.
#include "perf/common/run.hpp"

int main(int argc, char** argv) { return torii::perf::run(TORII_SCAN, argc, argv); }
