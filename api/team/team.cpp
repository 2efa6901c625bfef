// SPDX-License-Identifier: Apache-2.0
// The parts of a team, its end, and the decision about a split.
#include "api/team/team.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "api/team/gone_team.hpp"
#include "api/team/team_factory.hpp"
#include "runtime/base/log.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii {
namespace {

/// Throws Error{internal} if the node cannot reach a member's memory.
RingMembers ring_members(const Membership& members, std::size_t rings_offset) {
  RingMembers places;
  places.rank = members.rank();
  const shared_memory::Nodes& nodes = members.context().nodes();
  int before = 0;  // on this node
  for (const Member& member : members.all()) {
    const bool is_here = nodes.is_own(member.context_rank);
    const bool is_own = &member == &members.own();
    if (is_here && !is_own && members.transport().sleeping(member.context_rank) == nullptr) {
      throw Error(Status::internal, "the transport within the node has no marks of sleepers");
    }
    places.context_ranks.push_back(member.context_rank);
    places.offsets.push_back(member.memory_offset + rings_offset);
    places.places.push_back(is_here ? before++ : -1);
  }
  if (!members.several_nodes()) places.places.clear();
  return places;
}

RingSizes sizes_of(const Membership& members, int channels) {
  Context& context = members.context();
  const std::size_t most_bytes = context.team_memory().bytes_max();
  if (!members.several_nodes()) return ring_sizes(members.ranks(), channels, most_bytes);
  std::map<int, int> on_nodes;  // so many members
  for (const Member& member : members.all()) ++on_nodes[context.nodes().node(member.context_rank)];
  return distant_ring_sizes(std::ranges::max(on_nodes | std::views::values), members.ranks(), channels,
                            balances_engines(context), most_bytes);
}

void check(const Hold& held) {
  if (held.refusal() != Status::ok) throw Error(held.refusal(), last_error());
}

}  // namespace

std::int64_t deadline_of(const TeamOptions& options, const Settings& settings) {
  if (!is_timeout(options.timeout_s)) {
    throw Error(Status::invalid_argument, timeout_text(options.timeout_s, "the setting TIMEOUT"));
  }
  return timeout_ns_of(options.timeout_s != 0 ? options.timeout_s : settings.timeout_s);
}

int shared_channels_of(const TeamOptions& options, const Settings& settings) {
  constexpr int kMost = 8;  // as of the setting CHANNELS
  if (options.channels < 0 || options.channels > kMost) {
    throw Error(Status::invalid_argument, "channels is " + std::to_string(options.channels) +
                                              "; it must be from 1 to " + std::to_string(kMost) +
                                              ", or 0 for the setting CHANNELS");
  }
  return options.channels != 0 ? options.channels : settings.channels;
}

Team::Team(Context& context, const TeamOptions& options, std::vector<Member> members, int ranks_reserved)
    : members_(context, std::move(members), deadline_of(options, context.settings())),
      agreement_(make_team_agreement(members_)),
      memory_(members_, sizes_of(members_, shared_channels_of(options, context.settings())), ranks_reserved),
      rings_(members_.transport(), memory_.rings(), ring_members(members_, memory_.rings_offset())),
      maker_(members_, options, memory_.rings()),
      plans_(members_, maker_, memory_, rings_),
      operations_(members_, *agreement_, plans_, memory_.pairs_place(), rings_, options.many_callers),
      follows_caches_(options.follows_caches) {
  const RingArea& area = rings_.area();
  if (area.total_bytes() > memory_.rings_bytes()) throw Error(Status::internal, "standing rings exceed their memory");
  memory_.reserve_rings(area);
}

Team::~Team() {
  operations_.close();
  if (!owns_memory_) return;
  agreement_->depart({operations_.pairs().touched_bytes(), memory_.touched_ring_bytes()});
  try {
    std::vector<int> peers;
    for (const Member& member : members_.all()) peers.push_back(member.context_rank);
    auto memory = std::make_unique<GoneTeam>(members_.transport(), members_.own().memory_offset, memory_.bytes(),
                                             std::move(peers), members_.several_nodes());
    memory->set_offsets(memory_.pairs_place().offset, memory_.rings_offset());
    memory->add_outboxes(plans_.outboxes());
    memory->add_entries(plans_.entries());
    for (PutOwner& puts : plans_.take_puts()) memory->add_puts(std::move(puts));
    memory->add_writers(operations_.take_writers());
    for (PutOwner& puts : agreement_->take_puts()) memory->add_puts(std::move(puts));
    // Between nodes the puts of operations may still read the memory.
    if (members_.several_nodes()) {
      for (PutOwner& puts : operations_.channels().take_puts()) memory->add_puts(std::move(puts));
      if (auto puts = operations_.pairs().take_puts()) memory->add_puts(std::move(*puts));
    }
    context().team_memory().retire(std::move(memory));
  } catch (const std::exception&) {
    log(LogLevel::error, "out of memory: that of a team stays set aside");
  }
}

Status Team::leave() noexcept {
  const Status status = operations_.cancel_all();
  if (status == Status::ok && operations_.health().cause().status == Status::ok) agreement_->calls().leave();
  return status;
}

void Team::wait_to_end(Request& request) noexcept {
  while (operations_.waits().wait(request) != Status::ok && !context().is_forked_child()) platform().yield();
}

void Team::tell_cause() const noexcept {
  const Cause cause = operations_.health().cause();
  set_last_error(cause.status == Status::ok ? "the team was destroyed before the receive had met a send" : cause.text);
}

std::unique_ptr<Team> Team::split(int color, int key, const TeamOptions& options) {
  const Hold held = operations_.waits().hold();
  check(held);
  return TeamFactory(context()).make_part(*this, color, key, options);
}

std::unique_ptr<Team> Team::survivors(const TeamOptions& options, const Trouble& trouble) {
  const Hold held = operations_.waits().hold();
  check(held);
  const std::lock_guard lock(survivors_mutex_);
  return TeamFactory(context()).make_survivors(*this, options, trouble);
}

bool Team::decide_split(bool agreed) {
  if (!agreed && operations_.health().cause().status == Status::ok) return false;
  const std::optional<bool> is_made = agreement_->vote().decide_split(agreed);
  if (!is_made) return agreed;
  if (*is_made) return true;
  const Status told = operations_.health().cause().status == Status::ok ? operations_.adopt_failure() : Status::ok;
  const Cause& cause = operations_.health().cause();
  throw cause.status == Status::ok ? Error(told, last_error()) : Error(cause.status, cause.text);
}

}  // namespace torii
