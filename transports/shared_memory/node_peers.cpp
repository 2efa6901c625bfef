// SPDX-License-Identifier: Apache-2.0
// Exchanges cards, swaps and maps arenas.
#include "transports/shared_memory/node_peers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/devices/open_files.hpp"
#include "runtime/devices/pidfd.hpp"

namespace torii::shared_memory {

struct Card {
  Token process_token{};  ///< with the process number: tells whether two ranks are threads of one process
  Token job_token{};      ///< that of rank 0 is the job's
  std::array<char, 48> listener{};
  std::uint64_t base = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t pid = 0;
  NodePeers::Words told{};
};

namespace {

/// A peer's file is mapped only if touching it can never raise SIGBUS.
void check_arena(int fd, std::size_t bytes, const std::string& who) {
  struct stat info {};
  const int seals = fcntl(fd, F_GET_SEALS);
  const bool safe = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0 &&
                    static_cast<std::size_t>(info.st_size) == bytes;
  if (!safe) throw Error(Status::transport, who + " handed over a file that is not a sealed arena of the agreed size");
}

Card make_card(const Arena& arena, const Listener& listener) {
  static const Token process_token = random_token();
  Card card;
  card.process_token = process_token;
  card.job_token = random_token();
  copy_text(listener.name(), card.listener);
  card.base = reinterpret_cast<std::uintptr_t>(arena.base());
  card.arena_bytes = arena.bytes();
  card.pid = static_cast<std::uint64_t>(getpid());
  return card;
}

/// Shares a local failure, so that no rank waits for one that gave up. Throws the failure of the lowest failing rank.
void agree(Bootstrap& bootstrap, const Error* failure) {
  struct Verdict {
    std::int32_t status;
    std::array<char, 252> text;
  };
  Verdict mine{};
  if (failure != nullptr) {
    mine.status = static_cast<std::int32_t>(failure->status());
    copy_text(failure->what(), mine.text);
  }
  const std::vector<Verdict> all = gather_values(bootstrap, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].status == 0) continue;
    const int named = static_cast<int>(rank);
    throw Error(static_cast<Status>(all[rank].status), "rank " + std::to_string(rank) + ": " + all[rank].text.data(),
                named);
  }
}

/// Those of this node. They hand over their descriptors; threads of this process have none of their own.
std::size_t ranks_of_other_processes(const Nodes& nodes) {
  std::size_t count = 0;
  for (int rank = 0; rank < nodes.ranks(); ++rank) {
    if (nodes.is_own(rank) && nodes.visible_pid(rank) != getpid()) ++count;
  }
  return count;
}

/// The largest arena of a rank; fixed if it has one already.
struct ArenaSize {
  std::uint64_t bytes;
  std::uint64_t is_fixed;
};

/// Throws the same Error on all ranks.
std::size_t common_size(const std::vector<ArenaSize>& all) {
  const auto fixed = std::ranges::find_if(all, [](const ArenaSize& one) { return one.is_fixed != 0; });
  if (fixed == all.end()) return std::ranges::min(all, {}, &ArenaSize::bytes).bytes;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].bytes == fixed->bytes || (all[rank].is_fixed == 0 && all[rank].bytes > fixed->bytes)) continue;
    throw Error(all[rank].is_fixed != 0 ? Status::mismatch : Status::no_resource,
                "rank " + std::to_string(fixed - all.begin()) + " brings an arena of " + std::to_string(fixed->bytes) +
                    " bytes, but rank " + std::to_string(rank) +
                    (all[rank].is_fixed != 0 ? " brings one of " : " can map arenas of ") +
                    std::to_string(all[rank].bytes) + "; set TORII_ARENA to one size for all contexts",
                static_cast<int>(rank));
  }
  return fixed->bytes;
}

}  // namespace

std::unique_ptr<Arena> make_arena(Bootstrap& bootstrap, const Nodes& nodes, std::size_t wanted_bytes,
                                  const Arena* earlier) {
  // Two rounds: ranks agree on sizes before anything is made, and one rank's failure is a failure of all.
  const auto attempt = [&bootstrap](auto&& step) {
    std::unique_ptr<Error> failure;
    try {
      step();
    } catch (const Error& error) {
      failure = std::make_unique<Error>(error);
    }
    agree(bootstrap, failure.get());
  };
  ArenaSize own{};
  attempt([&] {
    // Asked before any rank waits for descriptors of another one. The listener and what is being received are beside.
    constexpr std::size_t kFilesBeside = 8;
    const std::size_t peers = ranks_of_other_processes(nodes);
    if (peers != 0 && !may_open_files(kFilesPerPeer * peers + kFilesBeside)) throw too_few_files(peers);
    own.bytes = Arena::possible_bytes(earlier != nullptr ? earlier->bytes() : wanted_bytes, nodes.own_ranks());
    if (earlier == nullptr) return;
    own.is_fixed = 1;
    if (own.bytes == earlier->bytes()) return;
    throw Error(Status::no_resource, "this process cannot map " + std::to_string(nodes.own_ranks()) +
                                         " arenas of the " + std::to_string(earlier->bytes()) +
                                         " bytes that its earlier context has; set TORII_ARENA lower for that one");
  });
  const std::size_t bytes = common_size(gather_values(bootstrap, own));
  std::unique_ptr<Arena> arena;
  attempt([&] {
    if (earlier == nullptr) arena = std::make_unique<Arena>(bytes);
  });
  return arena;
}

NodePeers::NodePeers(Bootstrap& bootstrap, const Nodes& nodes, const Arena& arena, double timeout_s, const Words& told)
    : rank_(bootstrap.rank()),
      arena_bytes_(arena.bytes()),
      oversubscribed_(nodes.oversubscribed()),
      peers_(static_cast<std::size_t>(bootstrap.ranks())) {
  const Listener listener(nodes.own_ranks());
  Card mine = make_card(arena, listener);
  mine.told = told;
  const std::vector<Card> cards = gather_values(bootstrap, mine);

  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const Card& card = cards[rank];
    if (card.arena_bytes != arena_bytes_) {
      throw Error(Status::mismatch,
                  "rank " + std::to_string(rank) + " has an arena of " + std::to_string(card.arena_bytes) +
                      " bytes, this rank one of " + std::to_string(arena_bytes_),
                  static_cast<int>(rank));
    }
    if (!nodes.is_own(static_cast<int>(rank))) continue;
    peers_[rank].host = nodes.host(static_cast<int>(rank));
    peers_[rank].pid = static_cast<int>(card.pid);
    peers_[rank].told = card.told;
    peers_[rank].foreign =
        nodes.visible_pid(static_cast<int>(rank)) != getpid() || card.process_token != mine.process_token;
    if (!peers_[rank].foreign) peers_[rank].base = reinterpret_cast<std::byte*>(card.base);
  }

  std::unique_ptr<Error> failure;
  try {
    meet(listener, nodes, cards, arena, timeout_s);
  } catch (const Error& error) {
    // All ranks miss a missing rank, and would miss it again below.
    if (error.status() == Status::timeout) throw;
    if (error.status() == Status::peer_lost && !bootstrap.notices_deaths()) throw;
    failure = std::make_unique<Error>(error);
  }
  // Listeners stay open until here, so that a refused connection means an ended rank.
  agree(bootstrap, failure.get());
}

void NodePeers::meet(const Listener& listener, const Nodes& nodes, const std::vector<Card>& cards, const Arena& arena,
                     double timeout_s) {
  HandshakePlan plan;
  plan.rank = rank_;
  plan.job_token = cards[0].job_token;
  plan.arena_fd = arena.fd();
  plan.life_fd = arena.life().get();
  plan.timeout_s = timeout_s;
  std::vector<Descriptor> early(cards.size());
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const Peer& one = peers_[rank];
    plan.names.emplace_back(one.foreign ? cards[rank].listener.data() : "");
    plan.who.push_back("rank " + std::to_string(rank) + " (host " + one.host + ", process " + std::to_string(one.pid) +
                       ")");
    const pid_t pid = nodes.visible_pid(static_cast<int>(rank));
    if (!one.foreign || pid == 0) continue;
    // Only to hear of a death before the arena is here; without it the deadline ends this.
    early[rank] = open_pidfd(pid);
    if (early[rank].open() || errno != ESRCH) continue;
    throw Error(Status::peer_lost, plan.who[rank] + " has ended while joining", static_cast<int>(rank));
  }
  plan.lost = [&](int rank) {
    return peer(rank).life.open() ? !alive(rank) : has_ended(early[static_cast<std::size_t>(rank)]);
  };
  plan.take = [&](int rank, Handed handed) {
    const auto at = static_cast<std::size_t>(rank);
    Peer& one = peers_[at];
    check_arena(handed.arena.get(), arena_bytes_, plan.who[at]);
    one.mapping = Mapping(handed.arena.get(), arena_bytes_);
    one.base = one.mapping.base();
    one.life = std::move(handed.life);
    early[at] = Descriptor();
  };
  hand_over_arenas(listener, plan);
}

Descriptor NodePeers::life(int rank) const noexcept {
  const Peer& one = peer(rank);
  return Descriptor(one.life.open() ? fcntl(one.life.get(), F_DUPFD_CLOEXEC, 0) : -1);
}

bool NodePeers::alive(int rank) const noexcept {
  const Peer& one = peer(rank);
  return !one.life.open() || is_held(one.life);
}

}  // namespace torii::shared_memory
