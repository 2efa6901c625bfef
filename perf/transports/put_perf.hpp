// SPDX-License-Identifier: Apache-2.0
// put_latency and put_bandwidth: a put with its signal between two ranks, in turn with the bare interface below it.
#pragma once

namespace torii::perf {

enum class PutKind {
  latency,    ///< back and forth: half the time of a round trip
  bandwidth,  ///< windows of puts, each window answered by one put
};

/// The whole program; returns its exit code.
int run_puts(PutKind kind, int argc, char** argv) noexcept;

}  // namespace torii::perf
