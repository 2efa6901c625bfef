// SPDX-License-Identifier: Apache-2.0
// Ranks on several nodes. What they put to other nodes is under way until the search delivers it: any message may
// arrive next, whatever its stream and engine. That is all that the executor may rely on (Put in
// runtime/fabric/transport.hpp), and less than any network does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/fabric/put_owner.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/exploration/transport_world.hpp"

namespace torii::exploration {

/// A message between nodes. It acts later for the rank that put it, with what that rank knew: reads the payload out of
/// its source, as late as possible, stores it at the target, then signals. A payload in the signal's line leaves at
/// once.
struct Flight {
  int from = 0;
  int to = 0;
  bool has_moved = false;    ///< its payload and signal can be read
  bool has_arrived = false;  ///< the sender can notice that
  bool line_before = false;
  std::byte* source = nullptr;  ///< nullptr for a payload in the signal's line
  std::array<std::byte, kInlineBytes> in_line{};
  std::byte* target = nullptr;
  std::size_t bytes = 0;
  std::byte* signal_at = nullptr;
  std::uint64_t signal = 0;
  PutCount* owner = nullptr;
};

/// The nodes of a network.
struct NodesOfRanks {
  std::vector<int> nodes;  ///< by rank
  /// Messages can be read as soon as they are put, and only the time at which the sender learns that is open. Any order
  /// of arrival is still seen, since a load may take an older value of each word; but the search has far fewer states,
  /// and it does not notice two puts under way to one word.
  bool moves_at_once = false;
};

/// Another world's ranks, apart.
class NetworkWorld final : public World {
 public:
  NetworkWorld(std::unique_ptr<TransportWorld> inner, NodesOfRanks nodes);
  ~NetworkWorld() override;
  int ranks() const override { return inner_->ranks(); }
  void run(int rank) override { inner_->run(rank); }
  bool must_wait() const override { return inner_->must_wait(); }
  bool sleeps_end() const override { return inner_->sleeps_end(); }
  void set_up(Explorer& explorer) override;
  std::size_t deliveries() const override;
  void deliver(std::size_t number) override;
  std::string describe_delivery(std::size_t number) const override;
  bool has_news_for(int rank) const override;
  std::string at_end() override;
  void save(std::vector<std::byte>& to) const override;
  void restore(const std::vector<std::byte>& from) override;

 private:
  class Wire;
  void put(Flight flight);
  /// The sender learns which of its messages have arrived.
  void notice(int rank);
  void remove(std::size_t index);
  void move(Flight& flight, std::size_t message);
  void move_payload(const Flight& flight, std::size_t message);
  std::size_t index_of(std::size_t delivery) const;

  std::unique_ptr<TransportWorld> inner_;
  NodesOfRanks nodes_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<Flight> under_way_;  ///< by sender, then in the order of putting; their views are in Memory
};

}  // namespace torii::exploration
