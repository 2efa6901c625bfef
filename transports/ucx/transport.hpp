// SPDX-License-Identifier: Apache-2.0
// The transport over UCX: its engines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/network/engine_transport.hpp"
#include "transports/ucx/engine.hpp"
#include "transports/ucx/options.hpp"

namespace torii::ucx {

class UcxTransport final : public transports::EngineTransport<Engine> {
 public:
  /// Collective: chooses the provider, opens the engines, exchanges their addresses and keys. Throws Error on all
  /// ranks: unsupported (no provider), mismatch (engines, arena), transport, with the rank that failed.
  UcxTransport(Bootstrap& bootstrap, const Options& options);
  /// Waits up to a second for peers to confirm what was put to them.
  ~UcxTransport() override { finish(true); }

  void pin(const Extent& extent) override {
    if (capabilities_.pinned_bytes == 0) return;
    for (const auto& engine : engines_) engine->pin(extent);
  }
  bool is_arriving(std::uint64_t offset, std::size_t bytes) noexcept override {
    return std::ranges::any_of(engines_, [=](const auto& engine) { return engine->is_arriving(offset, bytes); });
  }
};

}  // namespace torii::ucx
