// SPDX-License-Identifier: Apache-2.0
// The transport over the wires between fibers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/fibers/engine.hpp"
#include "transports/fibers/node.hpp"
#include "transports/network/engine_transport.hpp"

namespace torii::fibers {

class Network final : public transports::EngineTransport<Engine> {
 public:
  /// Collective: opens the engines and connects them. Throws Error on all ranks.
  Network(Wires& wires, Bootstrap& bootstrap, const transports::EngineOptions& options);
  ~Network() override { finish(true); }

  bool is_arriving(std::uint64_t offset, std::size_t bytes) noexcept override {
    return std::ranges::any_of(engines_, [=](const auto& engine) { return engine->is_arriving(offset, bytes); });
  }
  bool may_live(int peer) noexcept override { return !wires_.fibers().is_gone(peer, Node::kSeenAfter); }

 private:
  Wires& wires_;
};

}  // namespace torii::fibers
