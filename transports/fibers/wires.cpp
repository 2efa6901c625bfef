// SPDX-License-Identifier: Apache-2.0
// Messages leave, travel and arrive, or do not.
#include "transports/fibers/wires.hpp"

#include <algorithm>
#include <utility>

namespace torii::fibers {

Wires::Wires(Fibers& fibers, int ranks, const WireModel& manner)
    : fibers_(fibers),
      ranks_(ranks),
      manner_(manner),
      lines_(static_cast<std::size_t>(ranks * ranks * manner.engines)),
      ends_(static_cast<std::size_t>(ranks * manner.engines)),
      gone_(static_cast<std::size_t>(ranks)) {}

void Wires::plug_in(int rank, int engine, WireEnd& one) { end(rank, engine) = &one; }

void Wires::unplug(int rank, int engine) {
  end(rank, engine) = nullptr;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank) tell_broken(peer, rank, engine);
  }
}

void Wires::send(std::unique_ptr<Message> message) {
  ++messages_;
  message->sent_at = fibers_.now();
  const auto rate = [&] {
    const auto engine = static_cast<std::size_t>(message->engine);
    return engine < manner_.slower.size() ? manner_.slower[engine] : 1.0;
  };
  Time late = fibers_.draw(manner_.late_least, manner_.late_most);
  constexpr double kUnit = 1 << 20;
  if (static_cast<double>(fibers_.draw(0, (1 << 20) - 1)) < manner_.very_late * kUnit) {
    late = fibers_.draw(manner_.late_most, manner_.very_late_most);
  }
  late = static_cast<Time>(static_cast<double>(late) * rate());
  Line& on = line(message->from, message->to, message->engine);
  Time arrival = fibers_.now() + late;
  if (manner_.keeps_order) arrival = on.last_arrival = std::max(arrival, on.last_arrival);
  const Time departure = fibers_.draw(fibers_.now(), arrival);
  // Two events share the message.
  std::shared_ptr<std::unique_ptr<Message>> shared = std::make_shared<std::unique_ptr<Message>>(std::move(message));
  fibers_.after(departure - fibers_.now(), [this, shared] { leave(**shared); });
  fibers_.after(arrival - fibers_.now(), [this, shared] { arrive(std::move(*shared)); });
}

void Wires::leave(Message& message) noexcept {
  if (message.has_left) return;
  message.has_left = true;
  if (message.source != nullptr && !message.is_dropped)
    message.payload.assign(message.source, message.source + message.bytes);
  message.hold.let_go();
  if (WireEnd* const sender = end(message.from, message.engine)) sender->left(message);
}

void Wires::arrive(std::unique_ptr<Message> message) {
  leave(*message);
  if (message->is_dropped) return;
  if (line(message->from, message->to, message->engine).is_cut) return;
  if (gone_[static_cast<std::size_t>(message->to)]) return;
  WireEnd* const receiver = end(message->to, message->engine);
  if (receiver == nullptr) return;
  if (on_transfer) on_transfer({message->from, message->to, message->sent_at});
  receiver->receive(std::move(message));
}

void Wires::tell_broken(int rank, int peer, int engine) {
  fibers_.after(fibers_.draw(0, manner_.death_seen_after), [this, rank, peer, engine] {
    WireEnd* const one = end(rank, engine);
    if (one == nullptr || gone_[static_cast<std::size_t>(rank)]) return;
    auto message = std::make_unique<Message>();
    message->kind = Message::Kind::broken;
    message->from = peer;
    message->to = rank;
    message->engine = engine;
    one->receive(std::move(message));
  });
}

void Wires::end_rank(int rank) {
  gone_[static_cast<std::size_t>(rank)] = true;
  for (int engine = 0; engine < manner_.engines; ++engine) {
    // Messages that have not left by now may leave still, from the buffers of the kernel, or not: both are drawn by the
    // seed.
    const bool is_lost = fibers_.one_in(2);
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank) continue;
      if (is_lost) line(rank, peer, engine).is_cut = true;
      tell_broken(peer, rank, engine);
    }
  }
}

void Wires::cut(int engine, int rank, int peer, bool is_silent) {
  line(rank, peer, engine).is_cut = true;
  line(peer, rank, engine).is_cut = true;
  if (is_silent) return;
  tell_broken(rank, peer, engine);
  tell_broken(peer, rank, engine);
}

void Wires::add(const Cut& one) {
  fibers_.after(one.at, [this, one] {
    fibers_.note(one.rank, "loses an engine");
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != one.rank && (one.peer < 0 || one.peer == peer)) cut(one.engine, one.rank, peer, one.is_silent);
    }
  });
}

}  // namespace torii::fibers
