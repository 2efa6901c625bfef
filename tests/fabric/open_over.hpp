// SPDX-License-Identifier: Apache-2.0
// Two ranks of the libfabric transport in one process.
#pragma once

#include <cstddef>
#include <functional>

#include "tests/fabric/refusal.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/fabric.hpp"

namespace torii::libfabric {

/// Two ranks with engines over loopback addresses; `look` sees each rank's transport.
inline void open_over(const std::function<void(int rank, Options& options)>& change,
                      const std::function<void(int rank, Fabric& fabric, std::byte* arena)>& look,
                      const Api& api = {}) {
  tests::run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    tests::SmallArena arena;
    Options options;
    arena.give_to(options);
    options.provider = "tcp;ofi_rxm";
    change(bootstrap.rank(), options);
    Fabric fabric(bootstrap, options, api);
    look(bootstrap.rank(), fabric, options.arena);
    gather_values(bootstrap, 0);
  });
}

}  // namespace torii::libfabric
