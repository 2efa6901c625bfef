// SPDX-License-Identifier: Apache-2.0
// Teams of the whole job, of named ranks and of parts. Survivors have a file of their own.
#include "api/team/team_factory.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "api/team/founding_memory.hpp"
#include "api/team/options_digest.hpp"
#include "runtime/bootstrap/agreement.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii {
namespace {

/// A bootstrap over a team's own all_gather: parts of a team are made with it. It gathers pieces that fit into the line
/// of a message, and so need no outbox: a rank that has no memory for the new team may have none for an outbox either,
/// and is to tell the others.
class TeamBootstrap final : public Bootstrap {
 public:
  explicit TeamBootstrap(Team& team)
      : team_(team), pieces_(new std::byte[kInlineBytes * static_cast<std::size_t>(team.ranks())]) {}
  int rank() const noexcept override { return team_.rank(); }
  int ranks() const noexcept override { return team_.ranks(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    for (std::size_t at = 0; at < mine.size(); at += kInlineBytes) {
      const std::size_t bytes = std::min(kInlineBytes, mine.size() - at);
      CallDescription call = internal_call(Collective::all_gather, mine.data() + at, pieces_.get());
      call.spec.count = bytes;
      const Status status = team_.operations().run(call);
      if (status != Status::ok) throw Error(status, last_error());
      for (std::size_t rank = 0; rank < all.size() / mine.size(); ++rank) {
        std::memcpy(all.data() + rank * mine.size() + at, pieces_.get() + rank * bytes, bytes);
      }
    }
  }
  bool decide(bool agreed) override { return team_.decide_split(agreed); }

 private:
  Team& team_;
  std::unique_ptr<std::byte[]> pieces_;
};

/// The topology of members of which nothing else is known: a node, in groups if they are bound to caches that they
/// share. `ranks` are those of the context, and may be none.
std::string topology_of_caches(const Context& context, std::span<const int> ranks) {
  const shared_memory::Nodes& nodes = context.nodes();
  std::vector<int> caches;
  for (const int rank : ranks) {
    if (nodes.node(rank) != nodes.node(ranks.front())) return "node";
    caches.push_back(nodes.cache(rank));
  }
  return caches.empty() ? "node" : Topology::node_of(caches).text();
}

}  // namespace

/// Reads the file of a tree once: what is compared between ranks is what is used. A file that cannot be read is an
/// error after the comparison only, so that no rank waits for one that has given up.
TeamOptions with_tree(TeamOptions options, const std::string& topology) {
  if (!is_tree(topology)) return options;
  try {
    options.tree = TreeTopology::read(topology.substr(topology.find(':') + 1));
  } catch (const Error& error) {
    options.tree_error = error.what();
  }
  return options;
}

/// Takes this rank's memory, chooses by exchanges what the team is made of, and makes it. The memory belongs to the
/// team when all members have made theirs: a peer writes there from then on, and not before.
template <class Choose>
std::unique_ptr<Team> TeamFactory::form(Bootstrap& bootstrap, const TeamOptions& given, int ranks_reserved, bool joins,
                                        const Choose& choose) {
  FoundingMemory memory(context_);
  std::optional<Error> refusal;
  try {
    auto team = all_or_none(bootstrap, [&](Bootstrap& agreed) {
      if (joins) memory.take(ranks_reserved, shared_channels_of(given, context_.settings()));
      Founding founding = choose(agreed, memory.offset());
      refusal = founding.refusal;
      return std::unique_ptr<Team>(
          joins && !refusal ? new Team(context_, founding.options, std::move(founding.members), ranks_reserved)
                            : nullptr);
    });
    if (refusal) throw Error(*refusal);
    memory.release();
    if (team != nullptr) team->owns_memory_ = true;
    return team;
  } catch (const OutcomeUnknown&) {
    memory.release();  // others may have a team, and write there
    throw;
  }
}

/// Nobody waits for a rank that a team of survivors has left out.
void TeamFactory::check_not_left_out(const std::vector<int>& ranks) const {
  for (const int rank : ranks) {
    if (!context_.has_left_out(rank)) continue;
    throw Error(Status::peer_lost,
                "rank " + std::to_string(rank) +
                    " of the context was left out of a team of survivors; name the members "
                    "of the new team, without it",
                rank);
  }
}

std::unique_ptr<Team> TeamFactory::make_world(const TeamOptions& given) {
  const int ranks = context_.ranks();
  if (ranks > kTeamRanksMax) {
    throw Error(Status::unsupported,
                std::to_string(ranks) + " ranks; a team has at most " + std::to_string(kTeamRanksMax));
  }
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  check_not_left_out(all);
  return form(context_.bootstrap(), given, ranks, true, [&](Bootstrap& agreed, std::uint64_t offset) {
    TeamOptions options = with_tree(given, first_set(given.topology, context_.settings().topology));
    options.rank_map = first_set(options.rank_map, context_.rank_map());
    return found(agreed, std::move(options), all, offset);
  });
}

std::unique_ptr<Team> TeamFactory::make_of(const TeamOptions& options, const std::vector<int>& ranks,
                                           Bootstrap& bootstrap) {
  check_not_left_out(ranks);
  return form(bootstrap, options, static_cast<int>(ranks.size()), true,
              [&](Bootstrap& agreed, std::uint64_t offset) { return found(agreed, options, ranks, offset); });
}

/// The options of a team of given ranks, in which the topology of caches is named.
TeamOptions TeamFactory::with_topology(TeamOptions options, const std::vector<int>& ranks) const {
  if (first_set(options.topology, context_.settings().topology) == "auto") {
    options.topology = topology_of_caches(context_, ranks);
    options.follows_caches = true;
  }
  return options;
}

/// A team of given ranks, which tell each other where their memory is.
TeamFactory::Founding TeamFactory::found(Bootstrap& bootstrap, TeamOptions options, const std::vector<int>& ranks,
                                         std::uint64_t memory_offset) {
  struct Card {
    std::uint64_t digest;
    std::uint64_t offset;
  };
  const std::string digest = digest_text(context_, options);
  const std::vector<Card> cards = gather_values(bootstrap, Card{digest_of(digest), memory_offset});
  if (!std::all_of(cards.begin(), cards.end(), [&](const Card& one) { return one.digest == cards[0].digest; })) {
    compare_digests(bootstrap, digest);
  }
  Founding founding = {with_topology(std::move(options), ranks), {}, {}};
  for (std::size_t i = 0; i < ranks.size(); ++i) founding.members.push_back({ranks[i], cards[i].offset});
  return founding;
}

std::unique_ptr<Team> TeamFactory::make_part(Team& parent, int color, int key, const TeamOptions& given) {
  TeamBootstrap bootstrap(parent);
  return form(bootstrap, given, parent.ranks(), color >= 0, [&](Bootstrap& agreed, std::uint64_t offset) {
    const TeamOptions options = with_tree(given, given.topology);
    const std::string digest = digest_text(context_, options);
    const std::vector<SplitCard> tickets = gather_values(agreed, SplitCard{color, key, offset, digest_of(digest)});
    if (auto refusal = compare_tickets(agreed, tickets, digest)) return Founding{{}, {}, std::move(refusal)};
    std::vector<int> chosen;
    for (int member = 0; member < parent.ranks(); ++member) {
      if (color >= 0 && tickets[static_cast<std::size_t>(member)].color == color) chosen.push_back(member);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
      return tickets[static_cast<std::size_t>(a)].key < tickets[static_cast<std::size_t>(b)].key;
    });
    std::vector<Member> members;
    for (const int member : chosen) {
      members.push_back(
          {parent.members_.at(member).context_rank, tickets[static_cast<std::size_t>(member)].memory_offset});
    }
    Founding founding = {part_options(parent, options, members), {}, {}};
    founding.members = std::move(members);
    return founding;
  });
}

/// The topology of a part is that of its options. Without one, it is the row, plane or box of this team's torus that
/// the members form in their order, or their links on this team's tree. Otherwise it is a plain node. If this team's
/// topology follows from caches, so does the part's.
TeamOptions TeamFactory::part_options(const Team& parent, const TeamOptions& options,
                                      const std::vector<Member>& members) {
  TeamOptions part = options;
  if (!part.topology.empty() || !part.rank_map.empty()) return part;
  std::vector<int> ranks;
  std::vector<int> context_ranks;
  for (const Member& member : members) {
    ranks.push_back(parent.members_.member_of(member.context_rank));
    context_ranks.push_back(member.context_rank);
  }
  if (parent.follows_caches_) {
    part.topology = topology_of_caches(parent.members_.context(), context_ranks);
    part.follows_caches = true;
    return part;
  }
  const std::optional<Topology> own = parent.topology().part(ranks);
  part.topology = own ? own->text() : "node";
  if (own && own->tree() != nullptr) part.tree = own->tree()->text();
  if (part.rank_map.empty() && own) part.rank_map = own->map_text();
  return part;
}

}  // namespace torii
