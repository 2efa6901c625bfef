// SPDX-License-Identifier: Apache-2.0
// Runs sends and receives under the explorer. Instrumented as the code under test is.
#include "tests/exploration/pair_world.hpp"

#include <new>
#include <utility>

#include "runtime/point_to_point/point_to_point.hpp"

namespace torii::exploration {
namespace {

constexpr std::size_t kPlaceBytes = 64;
constexpr std::size_t kPairVectorBytes = 256;
constexpr std::uint64_t kPairVectorsOffset = kGroundBytes / 2;

/// No two elements of any sends are alike. A send is known by its sender and by its number among all of its sends.
std::int64_t pair_value_of(int from, int number, std::size_t element) {
  return 1 + from * 10'000 + number * 100 + static_cast<std::int64_t>(element);
}

}  // namespace

struct PairWorld::Rank {
  Rank(Transport& transport, const PairArea& area, const RingMembers& members) : pairs(transport, area, members) {}

  PointToPoint pairs;
  std::array<Send, 8> sends;
  std::array<Receive, 8> receives;
  std::array<std::array<std::int64_t, kPairVectorBytes / 8>, 8> private_vectors{};
  std::byte* arena_vectors = nullptr;

  std::int64_t* vector(const PairStep& step, std::size_t number) {
    return step.in_arena ? reinterpret_cast<std::int64_t*>(arena_vectors + number * kPairVectorBytes)
                         : private_vectors[number].data();
  }
};

PairWorld::PairWorld(PairCase what) : what_(std::move(what)) {}
PairWorld::~PairWorld() = default;

void PairWorld::set_up(Explorer& explorer) {
  Station::instance().set_up(explorer, ranks());
  for (int rank = 0; rank < ranks(); ++rank) explorer.build_for(rank, [&] { make(rank); });
}

void PairWorld::make(int rank) {
  RingMembers members;
  members.rank = rank;
  PairSizes sizes = {.ranks = 1, .entries = what_.entries, .place_bytes = kPlaceBytes};
  for (int peer = 0; peer < ranks(); ++peer) {
    members.context_ranks.push_back(peer);
    members.offsets.push_back(Station::instance().ground_offset());
    if (transport(rank).node(peer) == transport(rank).node(rank)) {
      members.places.push_back(peer);
      sizes.ranks = ranks();
    } else {
      members.places.push_back(-1);
      sizes.team_ranks = ranks();
      sizes.places = what_.distant_entries;
    }
  }
  Rank*& made = made_[static_cast<std::size_t>(rank)];
  made = new Rank(transport(rank), PairArea(sizes), members);
  made->arena_vectors = Station::instance().ground(rank) + kPairVectorsOffset;
}

void PairWorld::run(int rank) {
  Rank& own = *made_[static_cast<std::size_t>(rank)];
  const std::vector<PairStep>& steps = what_.steps[static_cast<std::size_t>(rank)];
  int sent = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].sends) {
      begin_send(rank, i, sent++);
    } else {
      begin_receive(rank, i);
    }
    if (!steps[i].waits) continue;
    while (own.pairs.open() != 0) {
      if (!own.pairs.progress()) platform().yield();
      if (own.pairs.status() != Status::ok) explorer().fail("rank " + std::to_string(rank) + " fails");
    }
    // The caller may now change what it has sent.
    for (std::size_t j = 0; j <= i; ++j) {
      if (steps[j].sends) *own.vector(steps[j], j) = -1;
    }
  }
  check(rank);
}

void PairWorld::begin_send(int rank, std::size_t number, int sent) {
  Rank& own = *made_[static_cast<std::size_t>(rank)];
  const PairStep& step = what_.steps[static_cast<std::size_t>(rank)][number];
  std::int64_t* const vector = own.vector(step, number);
  for (std::size_t e = 0; e < step.count; ++e) vector[e] = pair_value_of(rank, sent, e);
  Send& send = own.sends[number];
  send.to = step.peer;
  send.envelope = {.from = rank, .tag = step.tag, .type = 1, .bytes = step.count * sizeof(std::int64_t)};
  send.data = reinterpret_cast<const std::byte*>(vector);
  send.reachable = step.in_arena;
  send.offset =
      static_cast<std::int64_t>(Station::instance().ground_offset() + kPairVectorsOffset + number * kPairVectorBytes);
  own.pairs.start(send);
}

void PairWorld::begin_receive(int rank, std::size_t number) {
  Rank& own = *made_[static_cast<std::size_t>(rank)];
  const PairStep& step = what_.steps[static_cast<std::size_t>(rank)][number];
  Receive& receive = own.receives[number];
  receive.from = step.peer;
  receive.tag = step.tag;
  receive.type = 1;
  receive.data = reinterpret_cast<std::byte*>(own.vector(step, number));
  receive.room_bytes = kPairVectorBytes;
  own.pairs.start(receive);
}

/// Every receive has got the bytes of the send that it had to meet: of each sender and tag the first, then the second.
void PairWorld::check(int rank) {
  Rank& own = *made_[static_cast<std::size_t>(rank)];
  const std::vector<PairStep>& steps = what_.steps[static_cast<std::size_t>(rank)];
  std::array<std::array<int, 8>, kRanksMax> met{};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].sends) continue;
    const Envelope& envelope = own.receives[i].envelope;
    const auto from = static_cast<std::size_t>(envelope.from);
    int& before = met[from][static_cast<std::size_t>(envelope.tag)];
    int number = 0;
    int same = 0;
    std::size_t count = 0;
    for (const PairStep& step : what_.steps[from]) {
      if (!step.sends) continue;
      if (step.peer == rank && step.tag == envelope.tag && same++ == before) {
        count = step.count;
        break;
      }
      ++number;
    }
    ++before;
    const std::int64_t* const got = reinterpret_cast<const std::int64_t*>(own.receives[i].data);
    bool right = envelope.bytes == count * 8 && count != 0;
    for (std::size_t e = 0; right && e < count; ++e) right = got[e] == pair_value_of(envelope.from, number, e);
    if (!right) {
      explorer().fail("rank " + std::to_string(rank) + "'s receive " + std::to_string(i) +
                      " has bytes that were not sent to it: a message was lost, doubled or overwritten");
    }
  }
}

}  // namespace torii::exploration
