// SPDX-License-Identifier: Apache-2.0
// The parts of a team, its end, and the decision about a split.
#include "api/team/team.hpp"

#include <algorithm>
#include <utility>

#include "api/team/gone_team.hpp"
#include "api/team/team_factory.hpp"
#include "runtime/base/log.hpp"

namespace torii {
namespace {

constexpr int kSharedChannelsMax = 8;  ///< as of the setting CHANNELS

/// How many channels operations share. Throws Error{invalid_argument}.
std::size_t shared_channels_of(const TeamOptions& options, const Settings& settings) {
  if (options.channels < 0 || options.channels > kSharedChannelsMax) {
    throw Error(Status::invalid_argument, "channels is " + std::to_string(options.channels) +
                                              "; it must be from 1 to " + std::to_string(kSharedChannelsMax) +
                                              ", or 0 for the setting CHANNELS");
  }
  return static_cast<std::size_t>(options.channels != 0 ? options.channels : settings.channels);
}

/// How long a wait without progress may last. Throws Error{invalid_argument}.
std::int64_t deadline_of(const TeamOptions& options, const Settings& settings) {
  if (!is_timeout(options.timeout_s)) {
    throw Error(Status::invalid_argument, timeout_text(options.timeout_s, "the setting TIMEOUT"));
  }
  return timeout_ns_of(options.timeout_s != 0 ? options.timeout_s : settings.timeout_s);
}

/// For a team on one node: nullptr for others, and where a fabric pins the memory. Throws Error{no_resource}.
std::unique_ptr<TeamRings> make_rings(const Membership& members, StagingBudget& staging, int channels) {
  const std::optional<std::size_t> begin = staging.rings_offset();
  if (members.several_nodes() || members.ranks() > kRingRanksMost || !begin) return nullptr;
  RingMembers places;
  places.rank = members.rank();
  for (const Member& member : members.all()) {
    if (&member != &members.own() && members.transport().sleeping(member.context_rank) == nullptr) return nullptr;
    places.context_ranks.push_back(member.context_rank);
    places.offsets.push_back(member.memory_offset + *begin);
  }
  const RingSizes sizes = ring_sizes(members.ranks(), channels);
  auto rings = std::make_unique<TeamRings>(members.transport(), sizes, std::move(places));
  staging.reserve_rings(rings->area().words_bytes(sizes.rings));
  return rings;
}

/// The memory of the outboxes that channels have taken.
std::vector<OutboxMemory> outboxes_of(TeamRings& rings) {
  std::vector<OutboxMemory> all;
  for (std::size_t channel = 0; channel < rings.channels(); ++channel) {
    const ChannelRings& one = rings.on(channel);
    if (one.has_outbox()) all.push_back({one.outbox_offset(), one.outbox().bytes(), one.outbox().touched_bytes()});
  }
  return all;
}

void check(const Hold& held) {
  if (held.refusal() != Status::ok) throw Error(held.refusal(), last_error());
}

}  // namespace

Team::Team(Context& context, const TeamOptions& options, std::vector<Member> members, int ranks_reserved)
    : Team(shared_channels_of(options, context.settings()), context, options, std::move(members), ranks_reserved) {}

Team::Team(std::size_t shared_channels, Context& context, const TeamOptions& options, std::vector<Member> members,
           int ranks_reserved)
    : members_(context, std::move(members), deadline_of(options, context.settings())),
      agreement_(make_team_agreement(members_)),
      staging_(members_, agreement_->installs(), ranks_reserved),
      rings_(make_rings(members_, staging_, static_cast<int>(shared_channels))),
      maker_(members_, options, staging_.bytes()),
      plans_(members_, agreement_->installs(), maker_, staging_, rings_.get()),
      operations_(members_, *agreement_, plans_, staging_.pairs_place(), shared_channels, options.many_callers),
      follows_caches_(options.follows_caches) {}

Team::~Team() {
  operations_.close();
  if (!owns_memory_) return;
  TouchedMemory touched = staging_.touched();
  if (operations_.pairs().are_used()) touched.bytes = staging_.memory_bytes();
  agreement_->depart(touched);
  try {
    std::vector<int> peers;
    for (const Member& member : members_.all()) peers.push_back(member.context_rank);
    auto memory = std::make_unique<GoneTeam>(members_.transport(), members_.own().memory_offset,
                                             staging_.memory_bytes(), std::move(peers), members_.several_nodes());
    if (rings_ != nullptr) {
      memory->set_rings_offset(*staging_.rings_offset());
      memory->add_outboxes(outboxes_of(*rings_));
    }
    memory->add_writers(operations_.take_writers());
    for (PutOwner& puts : agreement_->take_puts()) memory->add_puts(std::move(puts));
    // Between nodes the puts of operations may still read the memory.
    if (members_.several_nodes()) {
      for (PutOwner& puts : operations_.channels().take_puts()) memory->add_puts(std::move(puts));
      if (auto puts = operations_.pairs().take_puts()) memory->add_puts(std::move(*puts));
    }
    context().staging().retire(std::move(memory));
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
