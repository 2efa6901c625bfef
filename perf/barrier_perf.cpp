// SPDX-License-Identifier: Apache-2.0
// Times and checks barrier, or counts the CPU time of ranks that wait in one; see barrier_perf --help.
#include <string_view>

#include "perf/common/blocked.hpp"
#include "perf/common/run.hpp"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with("--late")) return torii::perf::run_blocked(argc, argv);
  }
  return torii::perf::run(TORII_BARRIER, argc, argv);
}
