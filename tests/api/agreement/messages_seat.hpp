// SPDX-License-Identifier: Apache-2.0
// Ranks as threads with the messages of a team; between nodes puts arrive late and in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "api/agreement/agreement_messages.hpp"
#include "api/agreement/survivor_messages.hpp"
#include "tests/conformance/distant.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::tests {

inline constexpr std::int64_t kTimeoutNs = 10'000'000'000;

/// A rank with its messages.
class Seat {
 public:
  Seat(Bootstrap& bootstrap, const std::vector<int>& nodes, std::uint64_t seed)
      : bootstrap_(bootstrap),
        places_(bootstrap),
        arena_(shared_memory::make_arena(bootstrap, places_, shared_memory::kArenaBytesMin)),
        peers_(bootstrap, places_, *arena_, 20),
        shared_memory_(bootstrap, *arena_, peers_, 3, Switch::off),
        distant_(shared_memory_, nodes, seed + static_cast<std::uint64_t>(bootstrap.rank())) {
    const std::size_t offset = arena_->allocate(agreement_messages_bytes(bootstrap.ranks()));
    std::vector<ControlWriter::Member> members;
    for (const std::size_t each : gather_values(bootstrap, offset)) {
      members.push_back({static_cast<int>(members.size()), each});
    }
    memory_ = arena_->base() + offset;
    box_ = std::make_unique<ControlWriter>(distant_, std::move(members), bootstrap.rank());
    messages_ = std::make_unique<AgreementMessages>(*box_, kTimeoutNs);
    survivors_ = std::make_unique<SurvivorMessages>(*box_);
  }
  /// All that is under way arrives, everywhere.
  void meet() {
    distant_.flush();
    gather_values(bootstrap_, 0);
  }
  int rank() const { return bootstrap_.rank(); }
  ControlWriter& box() { return *box_; }
  AgreementMessages& messages() { return *messages_; }
  SurvivorMessages& survivors() { return *survivors_; }
  tests::Distant& transport() { return distant_; }
  PeerInbox& inbox(int sender) { return reinterpret_cast<PeerInbox*>(memory_ + sizeof(MessagesMemory))[sender]; }
  MessagesMemory& memory() { return *reinterpret_cast<MessagesMemory*>(memory_); }

 private:
  Bootstrap& bootstrap_;
  shared_memory::Nodes places_;
  std::unique_ptr<shared_memory::Arena> arena_;
  shared_memory::NodePeers peers_;
  shared_memory::SharedMemory shared_memory_;
  tests::Distant distant_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<ControlWriter> box_;
  std::unique_ptr<AgreementMessages> messages_;
  std::unique_ptr<SurvivorMessages> survivors_;
};

inline void play(const std::vector<int>& nodes, std::uint64_t seed, const std::function<void(Seat&)>& body) {
  run_ranks_as_threads(static_cast<int>(nodes.size()), [&](Bootstrap& bootstrap) {
    Seat seat(bootstrap, nodes, seed);
    seat.meet();
    body(seat);
    seat.meet();
    seat.meet();
  });
}

inline MemberSet members_of(std::uint64_t bits) { return {{bits}}; }
inline constexpr MemberSet kNobody = {};

}  // namespace torii::tests
