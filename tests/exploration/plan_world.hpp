// SPDX-License-Identifier: Apache-2.0
// Ranks that run plans: the production executor makes a few calls, and each rank checks every result.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/execution/execution.hpp"
#include "runtime/rings/channel_rings.hpp"
#include "tests/exploration/explorer.hpp"
#include "tests/exploration/transport_world.hpp"

namespace torii::exploration {

/// One call of the world's plan, alike on all ranks.
struct Call {
  std::size_t count = 1;     ///< elements of 8 bytes
  int plan = 0;              ///< 0: of the case itself, n: of PlanCase::others[n - 1]
  bool program = false;      ///< as a linear program
  bool in_place = false;     ///< vectors are offered to peers, who read and write them where they are
  bool past_caches = false;  ///< stores into peers' memory go past the caches
  bool sleeps = false;       ///< a rank that waits sleeps
  bool unequal = false;      ///< a pairwise exchange whose blocks may have lengths of their own: short ones go at once
};

struct PlanCase {
  std::string name;
  std::vector<Plan> plans;  ///< by rank
  Collective collective = Collective::broadcast;
  int root = 0;
  Tuning tuning;
  std::vector<Call> calls;
  std::vector<int> nodes;  ///< by rank; empty: one node
  bool sleeps_end = true;
  /// Rank 1 makes another call than the others at last: then nobody may get to the end.
  bool last_calls_differ = false;
  bool moves_at_once = false;  ///< as of the network
  /// Receivers tell senders on other nodes where entries are, before the first call. Otherwise both know it.
  bool tells = false;
  /// Plans that calls make beside those above, of as many ranks. Nothing but plans, collective, root and tuning counts.
  std::vector<PlanCase> others;
  RingSizes rings;  ///< the standing rings that all plans use
};

class PlanWorld final : public TransportWorld {
 public:
  explicit PlanWorld(PlanCase what);
  ~PlanWorld() override;
  int ranks() const override { return static_cast<int>(what_.plans.size()); }
  void set_up(Explorer& explorer) override;
  void run(int rank) override;
  bool sleeps_end() const override { return what_.sleeps_end; }
  bool must_wait() const override { return what_.last_calls_differ; }

 private:
  struct Rank;
  void make(int rank);
  std::vector<int> places_of(int rank) const;
  static std::uint64_t entries_offset(const RingArea& area, int sender, int ring);
  void give_entries(Rank& made, const Plan& plan, int size) const;
  void tell_entries(Rank& rank) const;
  void name_memory(const Rank& rank, Memory& memory) const;
  void name_distant_rings(const Rank& rank, Memory& memory) const;
  void fill(const Rank& rank, std::size_t call) const;
  void check(const Rank& rank, std::size_t call) const;
  void wait(Rank& rank, const Call& call) const;
  std::int64_t expected(int rank, std::size_t call, std::size_t element) const;

  const PlanCase& case_of(const Call& call) const noexcept {
    return call.plan == 0 ? what_ : what_.others[static_cast<std::size_t>(call.plan - 1)];
  }

  PlanCase what_;
  std::vector<CallShape> shapes_;
  std::array<Rank*, kRanksMax> made_{};  ///< in the spaces of the ranks
};

}  // namespace torii::exploration
