// SPDX-License-Identifier: Apache-2.0
// put_bandwidth: see put_perf.hpp.
#include "perf/transports/put_perf.hpp"

int main(int argc, char** argv) { return torii::perf::run_puts(torii::perf::PutKind::bandwidth, argc, argv); }
