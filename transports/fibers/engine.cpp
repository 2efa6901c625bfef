// SPDX-License-Identifier: Apache-2.0
// An engine's messages: sending them, and acting on those that arrive.
#include "transports/fibers/engine.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/fabric/words.hpp"

namespace torii::fibers {

Engine::Engine(Wires& wires, int number, int rank, std::byte* arena, transports::PeerStates& peers,
               transports::Sleepers& sleepers)
    : wires_(wires),
      number_(number),
      rank_(rank),
      arena_(arena),
      peers_(peers),
      sleepers_(sleepers),
      descriptor_(wires.fibers().add_descriptor()),
      ends_(static_cast<std::size_t>(wires.ranks())) {
  wires_.plug_in(rank, number, *this);
}

Engine::~Engine() {
  close();
  *is_there_ = false;
}

void Engine::close() noexcept {
  if (is_closed_) return;
  is_closed_ = true;
  for (Message* const message : leaving_) message->drop();
  leaving_.clear();
  inbox_.clear();
  arriving_.clear();
  wires_.unplug(rank_, number_);
}

Status Engine::send(std::unique_ptr<Message> message) noexcept {
  wires_.fibers().pass();
  if (is_closed_) return Status::ok;
  if (peers_.is_cut(number_, message->to)) return Status::peer_lost;
  ++end_of(message->to).in_flight;
  leaving_.push_back(message.get());
  wires_.send(std::move(message));
  return Status::ok;
}

Status Engine::put(const Put& put) noexcept {
  auto message = std::make_unique<Message>();
  message->from = rank_;
  message->to = put.peer;
  message->engine = number_;
  message->target_offset = put.target_offset;
  message->signal_offset = put.signal_offset;
  message->signal = put.signal;
  if (put.source != nullptr) message->bytes = put.bytes;
  if (message->bytes <= kInlineBytes) {
    message->payload.assign(put.source, put.source + message->bytes);
  } else {
    message->source = put.source;
  }
  message->hold = PutHold(put.owner);
  end_of(put.peer).used = true;
  return send(std::move(message));
}

Status Engine::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  auto message = std::make_unique<Message>();
  message->kind = Message::Kind::word;
  message->from = rank_;
  message->to = peer;
  message->engine = number_;
  message->signal_offset = offset;
  message->signal = value;
  end_of(peer).used = true;
  return send(std::move(message));
}

void Engine::say(int peer, Message::Kind kind) noexcept {
  auto message = std::make_unique<Message>();
  message->kind = kind;
  message->from = rank_;
  message->to = peer;
  message->engine = number_;
  (void)send(std::move(message));
}

void Engine::left(const Message& message) noexcept {
  --end_of(message.to).in_flight;
  std::erase(leaving_, &message);
}

bool Engine::drained() noexcept {
  return std::ranges::all_of(leaving_, [this](const Message* one) { return peers_.is_cut(number_, one->to); });
}

void Engine::flush() noexcept {
  for (std::size_t peer = 0; peer < ends_.size(); ++peer) {
    if (!ends_[peer].used || peers_.is_cut(number_, static_cast<int>(peer))) continue;
    ++ends_[peer].asked;
    say(static_cast<int>(peer), Message::Kind::question);
  }
}

bool Engine::confirmed() noexcept {
  if (!drained()) return false;
  for (std::size_t peer = 0; peer < ends_.size(); ++peer) {
    if (ends_[peer].asked != ends_[peer].answered && !peers_.is_cut(number_, static_cast<int>(peer))) return false;
  }
  return true;
}

void Engine::doubt(int peer, std::int64_t) noexcept {
  Peer& one = end_of(peer);
  if (is_closed_ || peers_.is_cut(number_, peer) || one.asked != one.answered) return;
  one.is_doubted = true;
  ++one.asked;
  say(peer, Message::Kind::question);
}

/// Whoever waits for puts to the peer to leave need not wait longer.
void Engine::lose(int peer) noexcept {
  peers_.cut(number_, peer,
             "engine " + std::to_string(number_) + ": the connection to rank " + std::to_string(peer) + " broke");
  for (Message* const message : leaving_) {
    if (message->to == peer) message->drop();
  }
}

void Engine::receive(std::unique_ptr<Message> message) {
  if (is_closed_) return;
  const bool is_stored = message->kind == Message::Kind::put || message->kind == Message::Kind::word;
  if (is_stored && wires_.manner().stores_by_itself) return begin_store(std::move(message));
  inbox_.push_back(std::move(message));
  wires_.fibers().set_readable(descriptor_, true);
}

/// Bytes of a payload appear in any order, and the signal's word holds anything until the end.
void Engine::begin_store(std::unique_ptr<Message> message) {
  if (message->bytes == 0) return end_store(*message);
  arriving_.push_back(message.get());
  std::memcpy(arena_ + message->target_offset, message->payload.data(), message->bytes / 2);
  store_word(arena_ + message->signal_offset, ~message->signal);
  Fibers& fibers = wires_.fibers();
  std::shared_ptr<Message> shared = std::move(message);
  fibers.after(fibers.draw(0, 5 * kMicrosecond), [this, shared, is_there = is_there_] {
    if (*is_there && !is_closed_) end_store(*shared);
  });
}

void Engine::end_store(const Message& message) noexcept {
  take(message);
  std::erase(arriving_, &message);
  has_stored_ = true;
  wires_.fibers().set_readable(descriptor_, true);
}

bool Engine::is_arriving(std::uint64_t offset, std::size_t bytes) const noexcept {
  return std::ranges::any_of(arriving_, [=](const Message* one) {
    return one->target_offset < offset + bytes && offset < one->target_offset + one->bytes;
  });
}

void Engine::take(const Message& message) noexcept {
  Peer& from = end_of(message.from);
  switch (message.kind) {
    case Message::Kind::put:
      if (message.bytes != 0) std::memcpy(arena_ + message.target_offset, message.payload.data(), message.bytes);
      store_word(arena_ + message.signal_offset, message.signal);
      return;
    case Message::Kind::word:
      return store_word(arena_ + message.signal_offset, message.signal);
    case Message::Kind::greeting:
      from.greeted = true;
      return;
    case Message::Kind::farewell:
      from.left = true;
      return;
    case Message::Kind::question:
      return say(message.from, Message::Kind::answer);
    case Message::Kind::answer:
      ++from.answered;
      if (!from.is_doubted || from.answered != from.asked) return;
      from.is_doubted = false;
      return peers_.answered(message.from);
    case Message::Kind::broken:
      return lose(message.from);
  }
}

bool Engine::progress() noexcept {
  wires_.fibers().pass();
  if (is_closed_) return false;
  const bool came = !inbox_.empty() || has_stored_;
  while (!inbox_.empty() && !is_closed_) {
    const std::unique_ptr<Message> message = std::move(inbox_.front());
    inbox_.pop_front();
    take(*message);
  }
  has_stored_ = false;
  wires_.fibers().set_readable(descriptor_, false);
  if (came) sleepers_.took();
  return came;
}

}  // namespace torii::fibers
