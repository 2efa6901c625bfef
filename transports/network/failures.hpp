// SPDX-License-Identifier: Apache-2.0
// The failures of an engine: which are losses of a peer, and their texts.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

#include "runtime/base/status.hpp"
#include "transports/network/peer_states.hpp"

namespace torii::transports {

/// Records the failures of one engine in the states of the peers. Thread-safe.
class EngineFailures {
 public:
  /// `device` is its name in texts. If ranks do not ask whether peers live (`probes`), no engine finds out about the
  /// losses of another one: a peer that this engine loses is then lost to all.
  EngineFailures(PeerStates& peers, int engine, const std::string& device, bool probes = true)
      : peers_(peers),
        engine_(engine),
        probes_(probes),
        name_("engine " + std::to_string(engine) + " (" + device + ")") {}

  /// "engine 2 (verbs;ofi_rxm on mlx5_0)"
  const std::string& name() const noexcept { return name_; }
  /// True if nothing is put to the peer through this engine any more.
  bool is_cut(int peer) const noexcept { return peers_.is_cut(engine_, peer); }
  /// True if the engine has lost the peer: that it was closed does not count.
  bool has_lost(int peer) const noexcept { return peers_.has_lost(engine_, peer); }

  /// A write of so many bytes to the peer has failed. Returns peer_lost, or transport, after which nothing can be put
  /// any more.
  Status fail_write(int peer, std::size_t bytes, const char* cause, bool is_lost_connection) const noexcept {
    const std::string text = text_or_none([&] {
      return name_ + ": a write of " + std::to_string(bytes) + " bytes to rank " + std::to_string(peer) +
             " failed: " + cause;
    });
    // The remaining writes to a lost peer may fail in any way.
    if (!is_lost_connection && !is_cut(peer)) {
      peers_.break_down(text);
      return Status::transport;
    }
    if (probes_) {
      peers_.cut(engine_, peer, text);
    } else {
      peers_.lose(peer, text);
    }
    return Status::peer_lost;
  }
  void end_connection(int peer, const char* cause) const noexcept {
    peers_.cut(engine_, peer, text_or_none([&] {
                 return name_ + ": the connection to rank " + std::to_string(peer) + " ended: " + cause;
               }));
  }
  /// Stops the engine for all peers.
  void break_down(const char* what, const char* cause = nullptr) const noexcept {
    peers_.break_down(text_or_none([&] {
      const std::string text = name_ + " " + what;
      return cause == nullptr ? text : text + ": " + cause;
    }));
  }

 private:
  /// The result of `make`; empty if memory is short.
  template <class Make>
  static std::string text_or_none(const Make& make) noexcept {
    try {
      return make();
    } catch (const std::exception&) {
      return {};
    }
  }

  PeerStates& peers_;
  int engine_;
  bool probes_;
  std::string name_;
};

}  // namespace torii::transports
