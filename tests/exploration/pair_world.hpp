// SPDX-License-Identifier: Apache-2.0
// Ranks that send and receive: each checks what it gets.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/exploration/transport_world.hpp"

namespace torii::exploration {

/// What a rank does, one after the other. Everything begins at once or, where it says so, when all before it is done.
struct PairStep {
  bool sends = false;
  int peer = 0;  ///< or kAnyRank
  int tag = 0;
  std::size_t count = 1;  ///< elements of 8 bytes
  bool in_arena = false;  ///< of a send: the peer may read it where it is
  bool waits = true;      ///< for all so far
};

struct PairCase {
  std::string name;
  int entries = 1;                           ///< of a ring within a node, which has one place for long payloads
  std::vector<std::vector<PairStep>> steps;  ///< by rank
  int distant_entries = 1;                   ///< between nodes
};

class PairWorld final : public TransportWorld {
 public:
  explicit PairWorld(PairCase what);
  ~PairWorld() override;
  int ranks() const override { return static_cast<int>(what_.steps.size()); }
  void set_up(Explorer& explorer) override;
  void run(int rank) override;

 private:
  struct Rank;
  void make(int rank);
  void begin_send(int rank, std::size_t number, int sent);
  void begin_receive(int rank, std::size_t number);
  void check(int rank);

  PairCase what_;
  std::array<Rank*, kRanksMax> made_{};  ///< in the spaces of the ranks
};

}  // namespace torii::exploration
