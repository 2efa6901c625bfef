// SPDX-License-Identifier: Apache-2.0
// Finds the receive for a send, and the send for a receive.
#pragma once

#include <cstddef>
#include <list>
#include <utility>
#include <vector>

#include "runtime/point_to_point/messages.hpp"
#include "runtime/point_to_point/operations.hpp"

namespace torii {

/// A send that has come before its receive.
struct Arrival {
  Envelope envelope;
  std::vector<std::byte> bytes;  ///< of a send that came whole
  bool is_whole = true;
  Announced announced;         ///< of a send that was announced
  OfferKind reach = kByValue;  ///< likewise
  Send* own = nullptr;         ///< this rank sends to itself, and keeps the bytes
};

/// Sends of one rank are taken in the order in which they were made. Receives are tried in the order in which they were
/// posted: the first one that accepts an envelope takes it.
class Matching {
 public:
  /// Takes the first posted receive that accepts the envelope out; nullptr if there is none.
  Receive* take_receive(const Envelope& envelope) noexcept;
  void post(Receive& receive) { posted_.push_back(&receive); }
  /// False if the receive has met its send already.
  bool withdraw(const Receive& receive) noexcept;

  /// Takes the first arrival that the receive accepts out, into `to`. False if there is none.
  bool take_arrival(const Receive& receive, Arrival& to) noexcept;
  void keep(Arrival&& arrival) { arrivals_.push_back(std::move(arrival)); }

  /// Nothing waits to be matched.
  bool is_empty() const noexcept { return posted_.empty() && arrivals_.empty(); }
  const std::vector<Receive*>& posted() const noexcept { return posted_; }
  const std::list<Arrival>& arrivals() const noexcept { return arrivals_; }
  void clear() noexcept;

 private:
  std::vector<Receive*> posted_;
  std::list<Arrival> arrivals_;
};

}  // namespace torii
