// SPDX-License-Identifier: Apache-2.0
// From the send or receive of a user to an operation between two ranks, and back.
#include "api/running/team_pairs.hpp"

#include <limits>
#include <utility>

#include "api/calls/pair_call.hpp"
#include "api/context/context.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {
namespace {

/// The call's receive, anew.
Receive& described(PairCall& call) noexcept {
  Receive& receive = call.operation.emplace<Receive>();
  receive.from = call.peer;
  receive.tag = call.tag;
  receive.type = static_cast<std::uint16_t>(call.type);
  receive.data = static_cast<std::byte*>(const_cast<void*>(call.data));
  receive.room_bytes = call.bytes();
  return receive;
}

}  // namespace

bool TeamPairs::are_wanted() const noexcept {
  return pairs_ == nullptr && members_.control().has_sends.load(std::memory_order_acquire) != 0;
}

void TeamPairs::install() {
  const CancellationHeld held;
  RingMembers places = rings_.members();
  for (std::size_t member = 0; member < places.offsets.size(); ++member) {
    places.offsets[member] = members_.all()[member].memory_offset + place_.offset;
  }
  pairs_ = std::make_unique<PointToPoint>(members_.transport(), area(), places);
  for (int member = 0; member < members_.ranks(); ++member) {
    if (!members_.is_distant(member)) members_.control(member).has_sends.store(1, std::memory_order_release);
  }
}

PairArea TeamPairs::area() const noexcept {
  PairSizes sizes = place_.sizes;
  sizes.ranks = rings_.area().sizes().ranks;
  sizes.team_ranks = rings_.area().sizes().team_ranks;
  return PairArea(sizes);
}

void TeamPairs::check(const PairCall& call) const {
  const auto refuse = [](const std::string& text) { throw Error(Status::invalid_argument, text); };
  const int last = members_.ranks() - 1;
  if (call.peer > last || call.peer < (call.sends ? 0 : kAnyRank)) {
    refuse("the rank is " + std::to_string(call.peer) + "; it must be from 0 to " + std::to_string(last) +
           (call.sends ? "" : ", or TORII_ANY_RANK"));
  }
  if (call.tag < (call.sends ? 0 : kAnyTag)) {
    refuse("the tag is " + std::to_string(call.tag) + "; it must be 0 or more" +
           (call.sends ? "" : ", or TORII_ANY_TAG"));
  }
  if (call.data == nullptr && call.count != 0) refuse("the buffer is NULL, but count is not 0");
  constexpr std::size_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  constexpr std::size_t kFewElements = kMostBytes / 256;  // few of any type: no division in the usual case
  if (call.count > kFewElements && call.count > kMostBytes / size_of(call.type)) {
    refuse("count is " + std::to_string(call.count) + ": more bytes than there are addresses");
  }
}

Envelope TeamPairs::envelope_of(const PairCall& call) const noexcept {
  return {members_.rank(), call.tag, static_cast<std::uint16_t>(call.type), call.bytes()};
}

bool TeamPairs::ends_at_once(PairCall& call, int polls) noexcept {
  if (pairs_ == nullptr || pairs_->status() != Status::ok || abandoned_) return false;
  if (call.sends) {
    const Envelope envelope = envelope_of(call);
    note_length(envelope.bytes);
    return pairs_->sends_at_once(call.peer, envelope, static_cast<const std::byte*>(call.data));
  }
  Receive& receive = described(call);
  for (int poll = 0; poll < polls; ++poll) {
    if (pairs_->receives_at_once(receive)) return true;
  }
  return false;
}

void TeamPairs::start(Request& request) {
  PairCall& call = *request.pair;
  if (pairs_ == nullptr) install();
  request.state = Request::State::running;
  const std::size_t bytes = call.bytes();
  if (call.sends) {
    note_length(bytes);
    Send& send = call.operation.emplace<Send>();
    send.owner = &request;
    send.to = call.peer;
    send.envelope = envelope_of(call);
    send.data = static_cast<const std::byte*>(call.data);
    if (const auto offset = members_.context().reachable(call.data, bytes)) {
      send.reachable = true;
      send.offset = *offset;
    }
    pairs_->start(send);
  } else {
    Receive& receive = described(call);
    receive.owner = &request;
    pairs_->start(receive);
  }
}

bool TeamPairs::withdraw(Request& request) noexcept {
  return !request.pair->sends && pairs_->withdraw(request.pair->receive());
}

bool TeamPairs::progress() noexcept {
  if (pairs_ == nullptr || abandoned_) return false;
  return pairs_->progress();
}

int TeamPairs::failed_member() const noexcept {
  const int member = members_.member_of(pairs_->failed_peer());
  return member >= 0 ? member : members_.rank();
}

std::string TeamPairs::failure_text() const {
  const int member = failed_member();
  const std::string own = "rank " + std::to_string(members_.rank());
  if (pairs_->status() == Status::mismatch) {
    const Receive& receive = pairs_->mismatched();
    // The sender's memory says what type it is.
    const auto type_name = [](std::uint16_t type) {
      return type < kTypeCount ? std::string(name(static_cast<Type>(type))) : "type " + std::to_string(type);
    };
    return members_.text(member) + " sends " + std::to_string(receive.envelope.bytes) + " bytes of " +
           type_name(receive.envelope.type) + " with tag " + std::to_string(receive.envelope.tag) + " to " + own +
           ", whose receive has room for " + std::to_string(receive.room_bytes) + " bytes of " +
           type_name(receive.type);
  }
  if (pairs_->status() == Status::no_resource) return own + " has no memory for messages that have come";
  std::string text = pairs_->status() == Status::peer_lost ? members_.text(member) + " died"
                                                           : "the transport failed towards " + members_.text(member);
  text += " during sends and receives, noticed by " + own;
  const std::string& refusal = pairs_->refusal();
  const std::string reason = refusal.empty() ? members_.transport().failure_text() : refusal;
  return reason.empty() ? text : text + ": " + reason;
}

void TeamPairs::abandon(Status status) noexcept {
  if (pairs_ == nullptr || abandoned_) return;
  abandoned_ = true;
  pairs_->abandon(status);
}

std::optional<PutOwner> TeamPairs::take_puts() noexcept {
  if (pairs_ == nullptr) return {};
  return pairs_->take_puts();
}

/// On one node payloads are behind all words.
std::size_t TeamPairs::touched_bytes() const noexcept {
  if (pairs_ == nullptr) return 0;
  return members_.several_nodes() || has_long_sends_ ? place_.bytes : area().words_bytes();
}

}  // namespace torii
