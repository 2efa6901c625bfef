// SPDX-License-Identifier: Apache-2.0
// Where installed plans have their streams on standing rings: both ends of a stream meet in the same words, no two
// streams in one; buffer offers likewise; short messages are in cells; and entries between nodes are where their
// receivers say.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/execution/linear_program.hpp"
#include "tests/runtime/execution/ring_team.hpp"

namespace torii::tests {
namespace {

constexpr EntryKind kKinds[] = {EntryKind::line, EntryKind::cell, EntryKind::wide_cell};

struct Row {
  std::string_view algorithm;
  Collective collective;
  int ranks;
  std::string_view topology = "node";
};
constexpr Row kRows[] = {{"node", Collective::allreduce, 5},
                         {"node", Collective::broadcast, 4},
                         {"ring", Collective::allreduce, 4},
                         {"rabenseifner", Collective::allreduce, 4},
                         {"floyd", Collective::alltoall, 6},
                         {"trinaryx3", Collective::allreduce, 9, "torus:3x3"},
                         {"bucket", Collective::allreduce, 6, "torus:3x2"}};

RingTeam team_of(const Row& row, Machines machines) {
  return {std::move(machines), row.algorithm, row.collective, Topology::parse(row.topology, row.ranks)};
}

TEST(Places, BothEndsOfAStreamMeetWhereNoOtherIs) {
  std::size_t most = 0;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.algorithm);
    const RingTeam team = team_of(row, together(row.ranks));
    std::set<const std::byte*> used;
    for (int sender = 0; sender < row.ranks; ++sender) {
      std::map<int, std::size_t> streams;  // by receiver
      for (const InstalledOut& out : team.plan(sender).out) {
        const int receiver = out.stream.peer;
        const InstalledIn* const in = team.in(receiver, sender, out.stream.tag);
        ASSERT_NE(in, nullptr);
        EXPECT_FALSE(out.ring.remote() || in->ring.remote());
        EXPECT_EQ(out.ring.place().messages, in->ring.place().messages);
        const SendEnd& send = out.ring.end();
        const ReceiveEnd& receive = in->ring.end();
        EXPECT_EQ(send.count, receive.count);
        EXPECT_TRUE(used.insert(send.count).second);
        for (const EntryKind kind : kKinds) {
          const auto number = static_cast<std::size_t>(kind);
          EXPECT_EQ(send.entries[number], receive.entries[number]);
          EXPECT_TRUE(used.insert(send.entries[number]).second);
        }
        if (receiver == sender) continue;
        EXPECT_EQ(std::pair(send.rank, receive.rank), std::pair(receiver, sender));
        EXPECT_EQ(receive.sender_arena, team.arenas().at(sender, 0));
        // Entries are the receiver's memory, so that it polls in it; the count is the sender's.
        EXPECT_TRUE(send.entries[0] >= team.arenas().at(receiver, 0) &&
                    send.entries[0] < team.arenas().at(receiver, Arenas::kBytes));
        EXPECT_TRUE(send.count >= team.arenas().at(sender, 0) && send.count < team.arenas().at(sender, Arenas::kBytes));
        most = std::max(most, ++streams[receiver]);
      }
    }
    EXPECT_FALSE(used.empty());
  }
  EXPECT_GT(most, 1U) << "no pair of ranks has two streams";
}

/// The first streams of a pair use the first rings, whatever other pairs have, so that plans touch few words.
TEST(Places, RingsOfAPairAreTheFirstOnesInTheOrderOfTags) {
  const Row row = {"trinaryx3", Collective::allreduce, 9, "torus:3x3"};
  const RingTeam team = team_of(row, together(row.ranks));
  for (int rank = 0; rank < row.ranks; ++rank) {
    std::map<int, std::map<int, const SendEnd*>> by_tag;  // by receiver
    for (const InstalledOut& out : team.plan(rank).out) by_tag[out.stream.peer][out.stream.tag] = &out.ring.end();
    for (const auto& [receiver, ends] : by_tag) {
      int ring = 0;
      for (const auto& [tag, end] : ends) EXPECT_EQ(end, &team.rings(rank).to(receiver, ring++)) << "tag " << tag;
    }
  }
}

TEST(Places, BetweenNodesEntriesAreWhereTheReceiverSaysAndCreditsWhereTheSenderLooks) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.algorithm);
    Machines machines = together(row.ranks);
    for (int rank = 0; rank < row.ranks; ++rank) machines.nodes[static_cast<std::size_t>(rank)] = rank % 2;
    const RingTeam team = team_of(row, std::move(machines));
    team.tell_all();
    std::set<std::pair<int, std::uint64_t>> used;
    int distant = 0;
    for (int sender = 0; sender < row.ranks; ++sender) {
      InstalledPlan& plan = team.plan(sender);
      EXPECT_TRUE(take_grants(plan, Arenas::kBytes));
      const KindSizes kind = team.rings(sender).sizes().of(ring_kind(plan.plan, plan.uses.distant_size));
      for (const InstalledOut& out : plan.out) {
        const InstalledIn* const in = team.in(out.stream.peer, sender, out.stream.tag);
        ASSERT_NE(in, nullptr);
        EXPECT_EQ(out.ring.remote(), !team.share_node(sender, out.stream.peer));
        EXPECT_EQ(in->ring.remote(), out.ring.remote());
        if (!out.ring.remote()) {
          EXPECT_EQ(out.ring.end().entries[0], in->ring.end().entries[0]);
          continue;
        }
        ++distant;
        const RingPlace& to = out.ring.place();
        const RingPlace& from = in->ring.place();
        EXPECT_EQ(to.entries_offset, from.entries_offset);
        EXPECT_EQ(from.entries, team.arenas().at(out.stream.peer, from.entries_offset));
        EXPECT_EQ(to.credit_words, team.arenas().at(sender, from.credits_offset));
        EXPECT_EQ(std::pair(to.stride, from.stride), std::pair(distant_entry_bytes(plan.uses.distant_size), to.stride));
        EXPECT_EQ(std::pair(to.credit_group, from.credit_group), std::pair(kind.credit_group, kind.credit_group));
        EXPECT_TRUE(used.insert({out.stream.peer, to.entries_offset}).second);
        EXPECT_TRUE(used.insert({sender, from.credits_offset}).second);
      }
    }
    EXPECT_GT(distant, 0);
  }
}

TEST(Grants, ACallAwaitsThemAll) {
  const RingTeam team = team_of({"node", Collective::broadcast, 3}, apart(3));
  InstalledPlan& root = team.plan(0);
  const int size = root.uses.distant_size;
  EXPECT_TRUE(root.uses.awaits_grants);
  EXPECT_FALSE(has_granted(root, 1));
  EXPECT_FALSE(take_grants(root, Arenas::kBytes));
  const auto entry_of = [&](int rank) -> const ReceiveEnd& { return team.plan(rank).in.at(0).ring.end(); };
  team.tell(entry_of(1), size, entry_of(1).given[static_cast<std::size_t>(size)] - 1);
  EXPECT_FALSE(take_grants(root, Arenas::kBytes));
  EXPECT_TRUE(root.uses.awaits_grants);
  EXPECT_TRUE(has_granted(root, 1));
  EXPECT_FALSE(has_granted(root, 2));
  team.tell_all();
  EXPECT_TRUE(take_grants(root, Arenas::kBytes));
  EXPECT_FALSE(root.uses.awaits_grants);
  EXPECT_TRUE(has_granted(root, 2));
}

TEST(Grants, OutsideTheArenaAreRefused) {
  const std::uint64_t entries_bytes = 16 * distant_entry_bytes(2);
  const auto take = [&](std::uint64_t offset) {
    const RingTeam team = team_of({"node", Collective::broadcast, 2}, apart(2));
    EXPECT_EQ(team.plan(0).uses.distant_size, 2);
    team.tell(team.plan(1).in.at(0).ring.end(), 2, offset);
    return take_grants(team.plan(0), Arenas::kBytes);
  };
  EXPECT_TRUE(take(Arenas::kBytes - entries_bytes)) << "its last bytes are the arena's";
  for (const std::uint64_t offset : {Arenas::kBytes - entries_bytes + kLineBytes, std::uint64_t{Arenas::kBytes},
                                     UINT64_MAX - 63, std::uint64_t{8}}) {
    try {
      (void)take(offset);
      ADD_FAILURE() << offset;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::transport);
      EXPECT_NE(std::string(error.what()).find("rank 1 says that its entries are at offset " + std::to_string(offset)),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(Offers, BothEndsOfALineMeetWhereNoOtherIs) {
  const RingTeam team = team_of({"node", Collective::allreduce, 4}, together(4));
  std::set<const std::byte*> used;
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(team.plan(rank).offers_out.size(), 3U);
    for (const OfferLine& out : team.plan(rank).offers_out) {
      const std::vector<OfferLine>& theirs = team.plan(out.peer).offers_in;
      const auto in = std::ranges::find(theirs, rank, &OfferLine::peer);
      ASSERT_NE(in, theirs.end());
      EXPECT_EQ(out.line, in->line);
      EXPECT_EQ(out.line_offset, in->line_offset);
      EXPECT_EQ(out.line, team.arenas().at(out.peer, out.line_offset)) << "it is in its reader's memory";
      EXPECT_TRUE(used.insert(out.line).second);
      // Each rank folds a block of its own, of all operands, and stores it into all results.
      EXPECT_TRUE(out.writes_result);
      EXPECT_EQ(std::pair(in->reads.first, in->reads.last), std::pair(out.peer, out.peer));
      EXPECT_EQ(std::pair(in->stores.first, in->stores.last), std::pair(out.peer, out.peer));
    }
  }
}

/// Plans of both kinds take turns, and an exchange's two lines too.
TEST(Offers, ThoseOfExchangesHaveLinesOfTheirOwn) {
  const RingTeam flows = team_of({"node", Collective::allreduce, 3}, together(3));
  const RingTeam exchange = team_of({"direct", Collective::alltoall, 3}, together(3));
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(exchange.plan(rank).exchange.peers.size(), 2U);
    for (const ExchangePeer& peer : exchange.plan(rank).exchange.peers) {
      const std::vector<ExchangePeer>& theirs = exchange.plan(peer.rank).exchange.peers;
      const auto other = std::ranges::find(theirs, rank, &ExchangePeer::rank);
      ASSERT_NE(other, theirs.end());
      EXPECT_EQ(peer.their_lines, other->own_lines);
      EXPECT_EQ(peer.their_lines, exchange.arenas().at(peer.rank, peer.their_lines_offset));
      const std::vector<OfferLine>& lines = flows.plan(rank).offers_out;
      const auto line = std::ranges::find(lines, peer.rank, &OfferLine::peer);
      ASSERT_NE(line, lines.end());
      EXPECT_EQ(peer.their_lines_offset, line->line_offset + kLineBytes);
    }
  }
}

/// A message's entry is found by a mask.
TEST(Rings, HaveAPowerOfTwoOfEntries) {
  const Machines machines = apart(2);
  const Arenas arenas(2);
  TeamTransport transport(machines, arenas, 0);
  const auto refusal = [&](const RingSizes& sizes) -> std::string {
    try {
      const TeamRings rings(transport, sizes, {.rank = 0, .context_ranks = {0, 1}, .offsets = {0, 0}});
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal(RingSizes{2, 1, 8, 1, 4096}), "");
  EXPECT_EQ(refusal(RingSizes{2, 1, 3, 1, 4096}), "rings have 3 entries; the number must be a power of two");
  EXPECT_EQ(refusal(RingSizes{2, 1, 0, 1, 4096}), "rings have 0 entries; the number must be a power of two");
  RingSizes distant = distant_ring_sizes(1, 2, 1, false);
  EXPECT_EQ(refusal(distant), "");
  distant.kinds[1].entries = 12;
  EXPECT_EQ(refusal(distant), "rings have 12 entries; the number must be a power of two");
}

TEST(Cells, ServeCallsWhoseBlocksAllFit) {
  const RingTeam team = team_of({"recursive_doubling", Collective::allreduce, 2}, together(2));
  const auto entry_of = [&](const Layout& layout) {
    const auto sends = compile_linear(team.plan(0), layout, 4, 4);
    const auto receives = compile_linear(team.plan(1), layout, 4, 4);
    const Ring& out = sends->targets.at(0).ring;
    const Ring& in = std::ranges::find(receives->sources, false, &LinearSource::own)->ring;
    EXPECT_EQ(out.place().entries, in.place().entries) << layout.longest_bytes();
    EXPECT_EQ(out.place().stride, in.place().stride);
    for (const EntryKind kind : kKinds) {
      if (out.place().entries != team.plan(0).out.at(0).ring.end().entries[static_cast<std::size_t>(kind)]) continue;
      EXPECT_EQ(out.place().stride, entry_bytes(kind));
      return kind;
    }
    ADD_FAILURE() << "the messages are in no entry";
    return EntryKind::line;
  };
  EXPECT_EQ(entry_of(Layout(Dealing::block, 8, 1, 4096)), EntryKind::cell);
  EXPECT_EQ(entry_of(Layout(Dealing::block, 9, 1, 4096)), EntryKind::wide_cell);
  EXPECT_EQ(entry_of(Layout(Dealing::block, 24, 1, 4096)), EntryKind::wide_cell);
  EXPECT_EQ(entry_of(Layout(Dealing::block, 25, 1, 4096)), EntryKind::line);
  EXPECT_EQ(entry_of(Layout(Dealing::block, 4096, 1, 4096)), EntryKind::line);
}

/// An element may be wider in a message than in the vector, and blocks of exchanges may be unequal.
TEST(Cells, ServeNoExchangesBundlesAndWideStreams) {
  const Topology topology = Topology::node(5);
  EXPECT_TRUE(has_cells(plan_of("node", Collective::broadcast, topology, 3), Widening::none));
  EXPECT_FALSE(has_cells(plan_of("node", Collective::broadcast, topology, 3), Widening::twice));
  EXPECT_FALSE(has_cells(plan_of("direct", Collective::scatter, topology, 3), Widening::none));
  EXPECT_FALSE(has_cells(plan_of("floyd", Collective::alltoall, topology, 3), Widening::none));
}

TEST(Payloads, OfAGroupHaveOnePlace) {
  const RingTeam team = team_of({"node", Collective::broadcast, 4}, together(4));
  const std::vector<RingUses::PayloadUse>& root = team.plan(0).uses.payloads;
  ASSERT_EQ(root.size(), 3U);
  EXPECT_EQ(root[0].leader, -1);
  EXPECT_EQ(root[1].leader, 0);
  EXPECT_EQ(root[2].leader, 0);
  EXPECT_TRUE(needs_outbox(team.plan(0), kInlineBytes + 1));
  EXPECT_FALSE(needs_outbox(team.plan(0), kInlineBytes)) << "they fit into their lines";
  EXPECT_FALSE(needs_outbox(team.plan(1), 4096)) << "it sends tokens alone";
}

}  // namespace
}  // namespace torii::tests
