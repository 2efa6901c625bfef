// SPDX-License-Identifier: Apache-2.0
// Plans on the standing rings of a channel: which plans can use them, and what their calls do to them.
#include <algorithm>
#include <optional>
#include <string>

#include "runtime/base/page.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/plan/ring_rules.hpp"

namespace torii {
namespace {

/// By out-stream: whether it carries more than tokens.
std::vector<bool> outs_with_payload(const Plan& plan) {
  std::vector<bool> has(plan.out.size(), false);
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      if (flow.sources.empty()) continue;
      for (const StreamEnd& end : flow.targets) has[end.stream] = true;
    }
  }
  return has;
}

}  // namespace

int slots_counted(const KindSizes& kind) noexcept {
  return kind.entries + 1 - std::max(entry_published_every(kind.entries), static_cast<int>(kind.credit_group));
}

bool binds_to_rings(const Plan& plan, const RingNeeds& needs, std::size_t message_bytes, Widening widening,
                    const RingSizes& sizes) noexcept {
  const bool several_nodes = sizes.several_nodes();
  const int longest = distant_size_of(plan, message_bytes, widening);
  if (plan.slots > sizes.entries && !several_nodes) return false;
  if (several_nodes && longest >= sizes.sizes_of(ring_kind(plan, longest))) return false;
  if (plan.exchange.exists()) {
    const std::size_t place_bytes = round_up(message_bytes, kLineBytes) + (several_nodes ? kLineBytes : 0);
    return place_bytes <= sizes.outbox_bytes / static_cast<std::size_t>(std::max(plan.ranks - 1, 1));
  }
  if (needs.pair_streams > sizes.streams_most()) return false;
  const std::size_t payload_bytes =
      round_up(widened(message_bytes * static_cast<std::size_t>(plan.bundle_max), widening), kLineBytes);
  const std::size_t most_bytes = sizes.outbox_bytes / static_cast<std::size_t>(std::max(plan.out_streams_max, 1));
  // Calls with shorter messages use rings of another kind, which have more entries.
  for (int size = longest; size >= 0; --size) {
    const KindSizes kind = sizes.of(ring_kind(plan, size));
    if (needs.slots_least > slots_counted(kind)) return false;
    const std::size_t bytes = std::min(payload_bytes, several_nodes ? distant_payload_bytes(size) : payload_bytes);
    const int places = several_nodes ? std::max(plan.slots, kind.entries) : plan.slots;
    if (bytes + (several_nodes ? kLineBytes : 0) > most_bytes / static_cast<std::size_t>(places)) return false;
    if (!several_nodes) break;
  }
  return true;
}

int distant_size_of(const Plan& plan, std::size_t message_bytes, Widening widening) noexcept {
  return distant_size(widened(message_bytes * static_cast<std::size_t>(plan.bundle_max), widening));
}

bool take_grants(InstalledPlan& installed, std::uint64_t arena_bytes) {
  const auto size = static_cast<std::size_t>(installed.uses.distant_size);
  const RingSizes& sizes = installed.rings->sizes();
  const KindSizes kind = sizes.of(ring_kind(installed.plan, installed.uses.distant_size));
  const std::size_t bytes = static_cast<std::size_t>(kind.entries) * distant_entry_bytes(installed.uses.distant_size);
  bool is_complete = true;
  const auto take = [&](SendRing& ring) {
    if (!ring.remote()) return;
    SendEnd& end = ring.end();
    std::uint64_t& granted = end.granted[size];
    if (granted == 0) {
      const std::optional<std::uint64_t> told = read_told(end.grants + size * kLineBytes);
      if (!told) {
        is_complete = false;
        return;
      }
      const std::uint64_t offset = *told;
      if (offset % kLineBytes != 0 || bytes > arena_bytes || offset > arena_bytes - bytes) {
        throw Error(Status::transport, "rank " + std::to_string(end.rank) + " says that its entries are at offset " +
                                           std::to_string(offset) + " of its arena, which has " +
                                           std::to_string(arena_bytes) + " bytes");
      }
      granted = offset + 1;
    }
    ring.place().entries_offset = granted - 1;
  };
  for (InstalledOut& out : installed.out) take(out.ring);
  for (ExchangePeer& peer : installed.exchange.peers) {
    if (peer.sends) take(peer.out.ring);
  }
  installed.uses.awaits_grants = !is_complete;
  return is_complete;
}

namespace {

/// So many bytes have one block for each other rank.
std::size_t row_bytes(const Plan& plan, std::size_t message_bytes, const RingSizes& sizes) noexcept {
  const std::size_t line_bytes = sizes.several_nodes() ? kLineBytes : 0;
  return (round_up(message_bytes, kLineBytes) + line_bytes) * static_cast<std::size_t>(std::max(plan.ranks - 1, 1));
}

}  // namespace

std::size_t exchange_extents_bytes(const Plan& plan, std::size_t message_bytes, const RingSizes& sizes) noexcept {
  return round_up(2 * static_cast<std::size_t>(plan.slots) * row_bytes(plan, message_bytes, sizes), kPageBytes);
}

std::size_t own_outbox_bytes(const Plan& plan, std::size_t message_bytes, Widening widening,
                             const RingSizes& sizes) noexcept {
  constexpr std::size_t kExchangeBytesMost = std::size_t{16} << 20;
  const std::size_t line_bytes = sizes.several_nodes() ? kLineBytes : 0;
  const auto slots = static_cast<std::size_t>(plan.slots);
  if (plan.exchange.exists()) {
    return round_up(std::max(row_bytes(plan, message_bytes, sizes),
                             std::min(exchange_extents_bytes(plan, message_bytes, sizes), kExchangeBytesMost)),
                    kPageBytes);
  }
  const std::size_t bundle_bytes = widened(message_bytes * static_cast<std::size_t>(plan.bundle_max), widening);
  if (bundle_bytes <= kInlineBytes) return 0;
  const int entries = sizes.of(ring_kind(plan, distant_size(bundle_bytes))).entries;
  const std::size_t places = sizes.several_nodes() ? static_cast<std::size_t>(std::max(plan.slots, entries)) : slots;
  const auto streams = static_cast<std::size_t>(std::max(plan.out_streams_max, 1));
  return round_up(2 * places * streams * (round_up(bundle_bytes, kLineBytes) + line_bytes), kPageBytes);
}

bool has_granted(const InstalledPlan& installed, int rank) noexcept {
  const auto size = static_cast<std::size_t>(installed.uses.distant_size);
  const auto lacks = [&](const SendRing& ring) {
    return ring.remote() && ring.end().rank == rank && ring.end().granted[size] == 0;
  };
  return std::ranges::none_of(installed.out, [&](const InstalledOut& out) { return lacks(out.ring); }) &&
         std::ranges::none_of(installed.exchange.peers,
                              [&](const ExchangePeer& peer) { return peer.sends && lacks(peer.out.ring); });
}

void use_rings(InstalledPlan& installed, ChannelRings& rings, int slots_least) {
  const Plan& plan = installed.plan;
  RingUses& uses = installed.uses;
  installed.rings = &rings;
  const int entries = rings.sizes().of(ring_kind(plan, uses.distant_size)).entries;
  installed.uses.awaits_grants = installed.remote;
  uses.entries = {static_cast<std::uint64_t>(entries)};
  uses.places = PlaceOrder(static_cast<std::uint64_t>(plan.slots));
  uses.short_most = kInlineBytes / widened(static_cast<std::size_t>(plan.bundle_max), installed.widening);
  uses.every_entry = static_cast<std::uint64_t>(entry_published_every(entries));
  uses.every_payload =
      static_cast<std::uint64_t>(published_every(std::min(plan.slots, entries), std::min(slots_least, entries)));
  for (const InstalledIn& in : installed.in) {
    uses.numbering.push_back({&in.ring.end(), in.ring.place().messages});
    if (!in.ring.remote()) uses.incoming.push_back(&in.ring.end());
  }
  const std::vector<bool> has_payload = outs_with_payload(plan);
  std::vector<int> use_of(installed.out.size(), -1);
  for (std::size_t i = 0; i < installed.out.size(); ++i) {
    const InstalledOut& out = installed.out[i];
    uses.numbering.push_back({&out.ring.end(), out.ring.place().messages});
    if (out.stream.delivery == Delivery::local || !has_payload[i]) continue;
    use_of[i] = static_cast<int>(uses.payloads.size());
    uses.payloads.push_back({.ring = &out.ring.end(),
                             .messages = out.ring.place().messages,
                             .bundle = static_cast<std::size_t>(out.stream.bundle),
                             .widening = out.stream.wide ? installed.widening : Widening::none,
                             .is_operand = out.stream.delivery == Delivery::read_in_place && !out.ring.remote(),
                             .is_distant = out.ring.remote(),
                             .is_awaited = !out.ring.remote() && out.stream.peer != plan.rank});
  }
  for (std::size_t i = 0; i < installed.out.size(); ++i) {
    const int leader = installed.out[i].leader;
    if (use_of[i] < 0 || leader < 0 || leader == static_cast<int>(i)) continue;
    uses.payloads[static_cast<std::size_t>(use_of[i])].leader = use_of[static_cast<std::size_t>(leader)];
  }
  const auto readers = plan.exchange.exists()
                           ? std::ranges::count(installed.exchange.peers, false, &ExchangePeer::remote)
                           : std::ranges::count(uses.payloads, true, &RingUses::PayloadUse::is_awaited);
  rings.outbox().allow_readers(static_cast<std::size_t>(readers));
  if (plan.exchange.exists()) rings.allow_exchanges(plan.ranks);
}

}  // namespace torii
