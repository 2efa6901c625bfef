// SPDX-License-Identifier: Apache-2.0
// Makes the ends of standing rings.
#include "runtime/rings/channel_rings.hpp"

#include <bit>
#include <string>
#include <utility>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr EntryKind kKinds[] = {EntryKind::line, EntryKind::cell, EntryKind::wide_cell};

}  // namespace

ChannelRings::OwnRing::OwnRing(const RingSizes& sizes) {
  const auto entries = static_cast<std::size_t>(sizes.entries);
  std::size_t bytes = kLineBytes;  // the count, and what is lost before the first whole line
  for (const EntryKind kind : kKinds) bytes += round_up(entries * entry_bytes(kind), kLineBytes);
  memory = std::make_unique<std::byte[]>(bytes + kLineBytes);
  auto* at = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(memory.get()), kLineBytes));
  send.count = receive.count = at;
  at += kLineBytes;
  for (const EntryKind kind : kKinds) {
    send.entries[static_cast<std::size_t>(kind)] = receive.entries[static_cast<std::size_t>(kind)] = at;
    at += round_up(entries * entry_bytes(kind), kLineBytes);
  }
}

ChannelRings::ChannelRings(Transport& transport, const RingArea& area, const RingMembers& members, int channel)
    : transport_(transport), area_(area), members_(members), channel_(channel), outbox_(area.sizes().outbox_bytes) {
  const auto check = [](int entries) {
    if (entries < 1 || !std::has_single_bit(static_cast<unsigned>(entries))) {
      throw Error(Status::internal,
                  "rings have " + std::to_string(entries) + " entries; the number must be a power of two");
    }
  };
  check(sizes().entries);
  if (!sizes().several_nodes()) return;
  for (const KindSizes& kind : sizes().kinds) check(kind.entries);
}

void ChannelRings::set_entries(RingEnd& end, int receiver, int ring, int sender) const noexcept {
  for (const EntryKind kind : kKinds) {
    const std::uint64_t offset = members_.offsets[static_cast<std::size_t>(receiver)] +
                                 area_.entries(kind, channel_, ring, place(receiver), place(sender));
    end.entries[static_cast<std::size_t>(kind)] = transport_.mapped(context_rank(receiver), offset);
  }
  end.rank = receiver == members_.rank ? sender : receiver;
  end.peer = context_rank(end.rank);
  end.sleeping = transport_.sleeping(end.peer);
}

void ChannelRings::set_distant(SendEnd& end, int receiver, int ring) const noexcept {
  end.rank = receiver;
  end.peer = context_rank(receiver);
  const int self = context_rank(members_.rank);
  end.credits = transport_.mapped(self, own_offset() + area_.credits(channel_, ring, receiver));
  end.grants = transport_.mapped(self, own_offset() + area_.grant(channel_, ring, receiver, 0));
}

void ChannelRings::set_distant(ReceiveEnd& end, int sender, int ring) const noexcept {
  end.rank = sender;
  end.peer = context_rank(sender);
  const std::uint64_t offset = members_.offsets[static_cast<std::size_t>(sender)];
  end.credits_offset = offset + area_.credits(channel_, ring, members_.rank);
  end.grants_offset = offset + area_.grant(channel_, ring, members_.rank, 0);
}

ChannelRings::OwnRing& ChannelRings::own_ring(int ring) {
  const auto [at, is_new] = own_.try_emplace(ring, area_.sizes());
  OwnRing& own = at->second;
  if (is_new) {
    own.send.peer = own.receive.peer = transport_.rank();
    own.send.rank = own.receive.rank = members_.rank;
    own.receive.sender_arena = transport_.mapped(transport_.rank(), 0);
    own.receive.arena_bytes = transport_.arena_bytes();
  }
  return own;
}

SendEnd& ChannelRings::to(int receiver, int ring) {
  if (receiver == members_.rank) return own_ring(ring).send;
  const auto [end, is_new] = to_.of(receiver, ring);
  if (!is_new) return end;
  if (is_distant(receiver)) {
    set_distant(end, receiver, ring);
    return end;
  }
  set_entries(end, receiver, ring, members_.rank);
  end.count = transport_.mapped(context_rank(members_.rank),
                                own_offset() + area_.count(channel_, ring, place(members_.rank), place(receiver)));
  return end;
}

ReceiveEnd& ChannelRings::from(int sender, int ring) {
  if (sender == members_.rank) return own_ring(ring).receive;
  const auto [end, is_new] = from_.of(sender, ring);
  if (!is_new) return end;
  if (is_distant(sender)) {
    set_distant(end, sender, ring);
    return end;
  }
  set_entries(end, members_.rank, ring, sender);
  end.count =
      transport_.mapped(context_rank(sender), members_.offsets[static_cast<std::size_t>(sender)] +
                                                  area_.count(channel_, ring, place(sender), place(members_.rank)));
  end.sender_arena = transport_.mapped(context_rank(sender), 0);
  end.arena_bytes = transport_.arena_bytes();
  return end;
}

TeamRings::TeamRings(Transport& transport, const RingSizes& sizes, RingMembers members)
    : transport_(transport), shared_{RingArea(sizes), std::move(members)} {
  for (int channel = 0; channel < sizes.channels; ++channel) {
    channels_.push_back(std::make_unique<ChannelRings>(transport, shared_.area, shared_.members, channel));
  }
}

void TeamRings::add(std::size_t channel, const RingSizes& sizes, std::vector<std::uint64_t> offsets) {
  auto place = std::make_unique<const Place>(
      Place{RingArea(sizes),
            {shared_.members.rank, shared_.members.context_ranks, std::move(offsets), shared_.members.places}});
  auto rings = std::make_unique<ChannelRings>(transport_, place->area, place->members, 0);
  if (channels_.size() <= channel) channels_.resize(channel + 1);
  own_.push_back(std::move(place));
  channels_[channel] = std::move(rings);
}

}  // namespace torii
