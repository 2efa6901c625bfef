// SPDX-License-Identifier: Apache-2.0
// torii's transport and, beside it, the interface that it stands on: over one provider and the same devices.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "perf/transports/put_loop.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/network/engine_options.hpp"

namespace torii::perf {

struct PutPair {
  std::string provider;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<PutLoop> own;  ///< through `transport`
  std::unique_ptr<PutLoop> bare;
};

/// Collective over two ranks. `bare_memory` has as many bytes as the arena of `options`; both outlive the pair. Throw
/// Error: unsupported where the provider cannot be used.
PutPair open_libfabric_pair(Bootstrap& bootstrap, const transports::EngineOptions& options, std::byte* bare_memory);
PutPair open_ucx_pair(Bootstrap& bootstrap, const transports::EngineOptions& options, std::byte* bare_memory);

}  // namespace torii::perf
