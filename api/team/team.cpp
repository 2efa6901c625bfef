// SPDX-License-Identifier: Apache-2.0
// Making teams: of the whole job, of a part.
#include "api/team/team.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "api/team/gone_team.hpp"
#include "api/team/staging.hpp"
#include "runtime/base/log.hpp"
#include "runtime/bootstrap/agreement.hpp"

namespace torii {
namespace {

constexpr int kSharedChannelsMax = 8;  ///< as of the setting CHANNELS
constexpr const char* kVersion = TORII_VERSION;

/// An exchange over a team's own all_gather: parts of a team are made with it.
class TeamExchange final : public Exchange {
 public:
  explicit TeamExchange(Team& team) : team_(team) {}
  int rank() const noexcept override { return team_.rank(); }
  int ranks() const noexcept override { return team_.ranks(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    Request request;
    request.arguments.collective = Collective::all_gather;
    request.arguments.input = mine.data();
    request.arguments.result = all.data();
    request.arguments.count = mine.size();
    request.arguments.is_internal = true;
    const Status status = team_.run(request);
    if (status != Status::ok) throw Error(status, last_error());
  }
  bool decide(bool agreed) override { return team_.decide_split(agreed); }

 private:
  Team& team_;
};

std::uint64_t digest_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

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

/// Everything that must be equal on all members, one "NAME=value" a line.
std::string digest_text(Context& context, const TeamOptions& options) {
  const std::string& tune = context.tune_table().text();
  std::string text = "VERSION=" + std::string(kVersion) + "\n" + context.settings().digest_text();
  if (!text.ends_with('\n')) text += '\n';
  text += "TUNE_FILE digest=" + std::to_string(digest_of(tune)) + "\n";
  text += "team topology=" + options.topology + "\nteam algorithm=" + options.algorithm +
          "\nteam determinism=" + options.determinism + "\nteam wire=" + options.wire +
          "\nteam segment=" + std::to_string(options.segment_bytes) + "\nteam tune_table digest=" +
          std::to_string(XXH3_64bits(options.tune_table.data(), options.tune_table.size())) +
          "\nteam rank_map digest=" + std::to_string(digest_of(options.rank_map)) +
          "\nteam channels=" + std::to_string(options.channels) + "\n";
  text += "team tree " +
          (options.tree_error.empty() ? "digest=" + std::to_string(digest_of(options.tree)) : options.tree_error) +
          "\n";
  return text;
}

/// The first line in which two digests differ, as "'A=1' against 'A=2'".
std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t begin = 0;
  while (begin < a.size() && begin < b.size()) {
    const std::size_t end_a = std::min(a.find('\n', begin), a.size());
    const std::size_t end_b = std::min(b.find('\n', begin), b.size());
    const std::string line_a = a.substr(begin, end_a - begin);
    const std::string line_b = b.substr(begin, end_b - begin);
    if (line_a != line_b) return "'" + line_a + "' against '" + line_b + "'";
    begin = end_a + 1;
  }
  return "settings of unequal number";
}

void compare_digests(Exchange& exchange, const std::string& mine) {
  const std::vector<std::string> all = gather_texts(exchange, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw Error(Status::mismatch,
                "rank " + std::to_string(rank) + " differs from rank 0: " + first_difference(all[rank], all[0]) +
                    " (settings, topology and tune data must be equal on all ranks)",
                static_cast<int>(rank));
  }
}

struct Ticket {
  std::int32_t color;
  std::int32_t key;
  std::uint64_t memory_offset;
  std::uint64_t digest;  ///< of the options: equal for all ranks of a colour
};

/// An error on the ranks of a colour in which the options differ. All ranks see all tickets, so they agree on whether
/// the texts must be fetched.
std::optional<Error> compare_tickets(Exchange& exchange, const std::vector<Ticket>& tickets, const std::string& mine) {
  const auto first_of = [&](int color) {
    return std::find_if(tickets.begin(), tickets.end(), [=](const Ticket& one) { return one.color == color; });
  };
  const auto differs = [&](const Ticket& one) { return one.color >= 0 && one.digest != first_of(one.color)->digest; };
  if (std::none_of(tickets.begin(), tickets.end(), differs)) return {};
  const std::vector<std::string> texts = gather_texts(exchange, mine);
  const int color = tickets[static_cast<std::size_t>(exchange.rank())].color;
  for (std::size_t rank = 0; rank < tickets.size(); ++rank) {
    if (tickets[rank].color != color || !differs(tickets[rank])) continue;
    const auto first = static_cast<std::size_t>(first_of(color) - tickets.begin());
    return Error(Status::mismatch,
                 "rank " + std::to_string(rank) + " differs from rank " + std::to_string(first) + ": " +
                     first_difference(texts[rank], texts[first]) + " (options must be equal on all ranks of a colour)",
                 static_cast<int>(rank));
  }
  return {};
}

/// How many channels operations share. Throws Error{invalid_argument}.
std::size_t shared_channels_of(const TeamOptions& options, const Settings& settings) {
  if (options.channels < 0 || options.channels > kSharedChannelsMax) {
    throw Error(Status::invalid_argument, "channels is " + std::to_string(options.channels) +
                                              "; it must be from 1 to " + std::to_string(kSharedChannelsMax) +
                                              ", or 0 for the setting CHANNELS");
  }
  return static_cast<std::size_t>(options.channels != 0 ? options.channels : settings.channels);
}

}  // namespace

std::uint64_t options_digest(Context& context, const TeamOptions& options) {
  return digest_of(digest_text(context, options));
}

Team::Team(Context& context, const TeamOptions& options, std::vector<Member> members, int ranks_reserved)
    : Team(shared_channels_of(options, context.settings()), context, options, std::move(members), ranks_reserved) {}

Team::Team(std::size_t shared_channels, Context& context, const TeamOptions& options, std::vector<Member> members,
           int ranks_reserved)
    : members_(context, std::move(members)),
      agreement_(make_team_agreement(members_)),
      staging_(members_, *agreement_, ranks_reserved),
      maker_(members_, options, staging_.bytes()),
      plans_(members_, *agreement_, maker_, staging_),
      operations_(members_, *agreement_, plans_, shared_channels) {}

Team::~Team() {
  operations_.close();
  if (!owns_memory_) return;
  agreement_->depart(staging_.touched_bytes());
  try {
    std::vector<int> peers;
    for (const Member& member : members_.all()) peers.push_back(member.context_rank);
    auto memory = std::make_unique<GoneTeam>(members_.transport(), members_.own().memory_offset,
                                             staging_.memory_bytes(), std::move(peers), members_.several_nodes());
    for (PutOwner& puts : agreement_->take_puts()) memory->add_puts(std::move(puts));
    // Between nodes the puts of operations may still read the memory.
    if (members_.several_nodes()) {
      for (PutOwner& puts : operations_.take_puts()) memory->add_puts(std::move(puts));
    }
    context().staging().retire(std::move(memory));
  } catch (const std::exception&) {
    log(LogLevel::error, "out of memory: that of a team stays set aside");
  }
}

TeamOptions Team::with_own_tree(const TeamOptions& options) { return with_tree(options, options.topology); }

/// Takes this rank's memory, chooses by exchanges what the team is made of, and makes it. The memory belongs to the
/// team when all members have made theirs: a peer writes there from then on, and not before.
template <class Choose>
std::unique_ptr<Team> Team::form(Context& context, Exchange& exchange, int ranks_reserved, bool joins,
                                 const Choose& choose) {
  Staging staging(context);
  std::optional<Error> refusal;
  try {
    auto team = all_or_none(exchange, [&](Exchange& agreed) {
      if (joins) staging.take(ranks_reserved);
      Founding founding = choose(agreed, staging.offset());
      refusal = founding.refusal;
      return std::unique_ptr<Team>(
          joins && !refusal ? new Team(context, founding.options, std::move(founding.members), ranks_reserved)
                            : nullptr);
    });
    if (refusal) throw Error(*refusal);
    staging.release();
    if (team != nullptr) team->owns_memory_ = true;
    return team;
  } catch (const Unsettled&) {
    staging.release();  // others may have a team, and write there
    throw;
  }
}

std::unique_ptr<Team> Team::make_world(Context& context, const TeamOptions& given) {
  const int ranks = context.ranks();
  if (ranks > kTeamRanksMax) {
    throw Error(Status::unsupported,
                std::to_string(ranks) + " ranks; a team has at most " + std::to_string(kTeamRanksMax));
  }
  return form(context, context.exchange(), ranks, true, [&](Exchange& agreed, std::uint64_t offset) {
    TeamOptions options = with_tree(given, first_set(given.topology, context.settings().topology));
    options.rank_map = first_set(options.rank_map, context.rank_map());
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return found(context, agreed, std::move(options), all, offset);
  });
}

std::unique_ptr<Team> Team::make_of(Context& context, const TeamOptions& options, const std::vector<int>& ranks,
                                    Exchange& exchange) {
  return form(context, exchange, static_cast<int>(ranks.size()), true,
              [&](Exchange& agreed, std::uint64_t offset) { return found(context, agreed, options, ranks, offset); });
}

/// A team of given ranks, which tell each other where their memory is.
Team::Founding Team::found(Context& context, Exchange& exchange, TeamOptions options, const std::vector<int>& ranks,
                           std::uint64_t memory_offset) {
  struct Card {
    std::uint64_t digest;
    std::uint64_t offset;
  };
  const std::string digest = digest_text(context, options);
  const std::vector<Card> cards = gather_values(exchange, Card{digest_of(digest), memory_offset});
  if (!std::all_of(cards.begin(), cards.end(), [&](const Card& one) { return one.digest == cards[0].digest; })) {
    compare_digests(exchange, digest);
  }
  Founding founding = {std::move(options), {}, {}};
  for (std::size_t i = 0; i < ranks.size(); ++i) founding.members.push_back({ranks[i], cards[i].offset});
  return founding;
}

std::unique_ptr<Team> Team::split(int color, int key, const TeamOptions& given) {
  TeamExchange exchange(*this);
  return form(context(), exchange, ranks(), color >= 0, [&](Exchange& agreed, std::uint64_t offset) {
    const TeamOptions options = with_own_tree(given);
    const std::string digest = digest_text(context(), options);
    const std::vector<Ticket> tickets = gather_values(agreed, Ticket{color, key, offset, digest_of(digest)});
    if (auto refusal = compare_tickets(agreed, tickets, digest)) return Founding{{}, {}, std::move(refusal)};
    std::vector<int> chosen;
    for (int member = 0; member < ranks(); ++member) {
      if (color >= 0 && tickets[static_cast<std::size_t>(member)].color == color) chosen.push_back(member);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
      return tickets[static_cast<std::size_t>(a)].key < tickets[static_cast<std::size_t>(b)].key;
    });
    std::vector<Member> members;
    for (const int member : chosen) {
      members.push_back({members_.at(member).context_rank, tickets[static_cast<std::size_t>(member)].memory_offset});
    }
    Founding founding = {part_options(options, members), {}, {}};
    founding.members = std::move(members);
    return founding;
  });
}

bool Team::decide_split(bool agreed) {
  if (!agreed && !operations_.is_poisoned()) return false;
  const std::optional<bool> is_made = agreement_->decide_split(agreed);
  if (!is_made) return agreed;
  if (*is_made) return true;
  if (!operations_.is_poisoned()) (void)operations_.adopt_failure();
  throw Error(operations_.cause().status, operations_.cause().text);
}

/// A part stands on what its options say, or where they say nothing on the rows, planes or boxes of this team's torus
/// that its members form in their order, or on the ways between them on its tree; otherwise on a plain node.
TeamOptions Team::part_options(const TeamOptions& options, const std::vector<Member>& members) const {
  TeamOptions part = options;
  if (!part.topology.empty() || !part.rank_map.empty()) return part;
  std::vector<int> ranks;
  for (const Member& member : members) ranks.push_back(members_.member_of(member.context_rank));
  const std::optional<Topology> own = topology().part(ranks);
  part.topology = own ? own->text() : "node";
  if (own && own->tree() != nullptr) part.tree = own->tree()->text();
  if (part.rank_map.empty() && own) part.rank_map = own->map_text();
  return part;
}

}  // namespace torii
