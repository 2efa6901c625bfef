// SPDX-License-Identifier: Apache-2.0
// Puts of control blocks and words to all members.
#include "api/agreement/control_writer.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/deadline.hpp"

namespace torii {
namespace {

constexpr std::int64_t kPushNs = 100'000'000;
constexpr std::int64_t kNapNs = 100'000;

}  // namespace

std::size_t agreement_messages_offset() noexcept { return round_up(sizeof(TeamControl), kLineBytes); }

std::size_t agreement_messages_bytes(int ranks) noexcept {
  return sizeof(MessagesMemory) + static_cast<std::size_t>(ranks) * sizeof(PeerInbox);
}

bool has_departed(const std::byte* memory, int member, int engines) noexcept {
  const auto* const inbox = reinterpret_cast<const PeerInbox*>(memory + sizeof(MessagesMemory)) + member;
  return std::all_of(inbox->last_words, inbox->last_words + engines, [](const std::uint64_t& word) {
    const std::uint64_t said = load_word(word);
    return said == ControlWriter::kDeparted || said == ControlWriter::kDepartedEarly;
  });
}

bool departed_early(const std::byte* memory, int member, int engines) noexcept {
  const auto* const inbox = reinterpret_cast<const PeerInbox*>(memory + sizeof(MessagesMemory)) + member;
  return std::any_of(inbox->last_words, inbox->last_words + engines,
                     [](const std::uint64_t& word) { return load_word(word) == ControlWriter::kDepartedEarly; });
}

void nap() noexcept { platform().sleep(kNapNs); }

ControlWriter::ControlWriter(Transport& transport, std::vector<Member> members, int rank)
    : transport_(transport), members_(std::move(members)), rank_(rank), engines_(transport.capabilities().engines) {
  const Member& own = members_[static_cast<std::size_t>(rank)];
  std::byte* const memory = transport.mapped(own.context_rank, own.offset);
  memory_ = reinterpret_cast<MessagesMemory*>(memory);
  inboxes_ = reinterpret_cast<PeerInbox*>(memory + sizeof(MessagesMemory));
}

void ControlWriter::put(const ControlPut& one) noexcept {
  const int own_node = transport_.node(members_[static_cast<std::size_t>(rank_)].context_rank);
  for (const Member& member : members_) {
    if (one.only_other_nodes && transport_.node(member.context_rank) == own_node) continue;
    Put put;
    put.peer = member.context_rank;
    put.engine = one.engine;
    put.source = static_cast<const std::byte*>(one.payload);
    put.bytes = one.bytes;
    const std::uint64_t inbox_offset = sizeof(MessagesMemory) + static_cast<std::uint64_t>(rank_) * sizeof(PeerInbox);
    put.signal_offset = member.offset + (one.is_alarm ? offsetof(MessagesMemory, alarm) : inbox_offset + one.offset);
    put.target_offset = put.signal_offset + (one.bytes <= kInlineBytes ? sizeof(std::uint64_t) : kLineBytes);
    if (one.target_offset != 0) put.target_offset = member.offset + inbox_offset + one.target_offset;
    put.signal = one.signal;
    put.owner = puts_.count();
    (void)transport_.put(put);
  }
}

void ControlWriter::put_copies(ControlPut one) noexcept {
  const std::size_t offset = offsetof(PeerInbox, blocks) + one.offset;
  for (int copy = 0; copy < std::min(engines_, PeerInbox::kCopies); ++copy) {
    one.engine = copy;
    one.offset = offset + static_cast<std::size_t>(copy) * sizeof(ControlBlocks);
    put(one);
  }
}

void ControlWriter::put_everywhere(std::size_t offset, std::uint64_t value) noexcept {
  for (int engine = 0; engine < engines_; ++engine) {
    put({.engine = engine, .offset = offset, .signal = value});
  }
}

std::vector<PutOwner> ControlWriter::take_puts() {
  std::vector<PutOwner> owners;
  owners.push_back(std::move(puts_));
  return owners;
}

void ControlWriter::push_out() noexcept {
  Deadline push(kPushNs);
  while (!puts_.drained() && !push.is_over()) {
    (void)transport_.progress();
    nap();
  }
  // Small puts have left their source but may still be with the provider; they go on with these calls.
  constexpr int kLast = 64;
  for (int call = 0; call < kLast; ++call) (void)transport_.progress();
}

}  // namespace torii
