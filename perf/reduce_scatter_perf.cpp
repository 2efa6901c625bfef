// SPDX-License-Identifier: Apache-2.0
// Times and checks reduce_scatter; see reduce_scatter_perf --help.
#include "perf/common/run.hpp"

int main(int argc, char** argv) { return torii::perf::run(TORII_REDUCE_SCATTER, argc, argv); }
