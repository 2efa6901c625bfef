// SPDX-License-Identifier: Apache-2.0
// The search itself: depth first, with hashed states, going back by copies.
#include <algorithm>
#include <cstring>

#include "tests/exploration/explorer.hpp"

namespace torii::exploration {

void Explorer::begin_search() {
  memory_ = std::make_unique<Memory>(words_max_, places_max_);
  learned_writer_ = false;
  failure_.clear();
  depth_ = 0;
  pending_ = {};
  for (int rank = 0; rank < kRanksMax; ++rank) {
    spaces_[static_cast<std::size_t>(rank)].begin([this, rank] {
      world_->run(rank);
      RankSpace* const before = set_heap(nullptr);
      pending_[static_cast<std::size_t>(rank)].at = At::done;
      memory_->leave(rank);
      set_heap(before);
    });
    if (rank < world_->ranks()) continue;
    pending_[static_cast<std::size_t>(rank)].at = At::done;
    memory_->leave(rank);
  }
  world_->set_up(*this);
}

bool Explorer::may_go_on(int rank) const {
  const Pending& pending = pending_[static_cast<std::size_t>(rank)];
  if (pending.at == At::done) return false;
  if (pending.at == At::asleep) return false;
  if (pending.at != At::idle) return true;
  return !pending.is_settled || has_news(rank);
}

/// True if a word that the rank has looked at has changed since.
bool Explorer::has_news(int rank) const {
  const Pending& pending = pending_[static_cast<std::size_t>(rank)];
  if (world_->has_news_for(rank)) return true;
  for (std::size_t word = 0; word < memory_->words(); ++word) {
    if ((pending.watched[word / 64] >> (word % 64) & 1) == 0) continue;
    if (memory_->has_newer(rank, static_cast<int>(word))) return true;
  }
  return false;
}

/// The steps that may come next. A rank that is at no access goes on at once: up to its next one it does nothing that
/// others could prevent or see in another order.
std::vector<Explorer::Move> Explorer::moves() const {
  std::vector<Move> moves;
  const auto add_loads = [&](int rank) {
    const int ways = memory_->readable(rank, pending_[static_cast<std::size_t>(rank)].word);
    for (int which = ways; which-- > 0;) moves.push_back({rank, which});
  };
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    const Pending& pending = pending_[static_cast<std::size_t>(rank)];
    if (pending.at != At::load || pending.begins_block) continue;
    add_loads(rank);
    return moves;
  }
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    if (!may_go_on(rank)) continue;
    const Pending& pending = pending_[static_cast<std::size_t>(rank)];
    if (pending.at == At::begin || pending.at == At::idle) return {{rank, 0}};
    if (pending.at == At::load) {
      add_loads(rank);
    } else {
      moves.push_back({rank, 0});
    }
  }
  for (std::size_t i = 0; i < world_->deliveries(); ++i) moves.push_back({-1, static_cast<int>(i)});
  if (!moves.empty() || !world_->sleeps_end()) return moves;
  // A sleep takes far longer than all else, so it ends by its time when nothing else can happen.
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    if (pending_[static_cast<std::size_t>(rank)].at == At::asleep && has_news(rank)) moves.push_back({rank, 0});
  }
  return moves;
}

void Explorer::step(const Move& move, std::vector<Event>& events) {
  events.clear();
  events_ = &events;
  if (move.rank < 0) {
    world_->deliver(static_cast<std::size_t>(move.which));
  } else {
    const auto rank = static_cast<std::size_t>(move.rank);
    running_ = move.rank;
    chosen_ = move.which;
    if (pending_[rank].at == At::begin) set_heap(&spaces_[rank]);
    // After that time every store has become visible.
    if (pending_[rank].at == At::asleep) memory_->catch_up(move.rank);
    pending_[rank].at = At::begin;
    spaces_[rank].resume();
    set_heap(nullptr);
    running_ = -1;
    if (pending_[rank].at == At::idle) {
      const std::uint64_t now = spaces_[rank].hash(0);
      pending_[rank].is_settled = now == pending_[rank].idle_hash && !pending_[rank].has_overtaken;
      pending_[rank].idle_hash = now;
    }
  }
  memory_->tidy();
}

void Explorer::save(Frame& frame) const {
  memory_->save(frame.memory);
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    spaces_[static_cast<std::size_t>(rank)].save(frame.spaces[static_cast<std::size_t>(rank)]);
  }
  frame.pending = pending_;
  world_->save(frame.world);
}

void Explorer::restore(const Frame& frame) {
  memory_->restore(frame.memory);
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    spaces_[static_cast<std::size_t>(rank)].restore(frame.spaces[static_cast<std::size_t>(rank)]);
  }
  pending_ = frame.pending;
  world_->restore(frame.world);
}

std::uint64_t Explorer::hash() const {
  std::uint64_t hash = memory_->hash(1);
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    const Pending& pending = pending_[static_cast<std::size_t>(rank)];
    const std::uint64_t at[] = {static_cast<std::uint64_t>(pending.at),
                                static_cast<std::uint64_t>(pending.word),
                                pending.watched[0],
                                pending.watched[1],
                                pending.watched[2],
                                pending.watched[3],
                                pending.idle_hash,
                                pending.is_settled,
                                pending.has_overtaken,
                                pending.begins_block};
    hash = hash_bytes(at, sizeof(at), hash);
    if (pending.at != At::done) hash = spaces_[static_cast<std::size_t>(rank)].hash(hash);
  }
  std::vector<std::byte> world;
  world_->save(world);
  return hash_bytes(world.data(), world.size(), hash);
}

Outcome Explorer::explore(World& world, std::size_t states_max) {
  world_ = &world;
  writers_.clear();
  Outcome outcome;
  while (true) {
    outcome = {};
    begin_search();
    if (search(outcome, states_max)) break;
    // The size of views says how much each state costs, so there is as much room as needed and hardly more.
    words_max_ = std::max(words_max_, (memory_->words() + 15) / 16 * 16);
    places_max_ = std::max(places_max_, (memory_->places() + 31) / 32 * 32);
  }
  return outcome;
}

/// Makes the state in which everything is now the deepest one of the path.
void Explorer::enter(std::uint32_t id, std::vector<Event>& events, std::string delivery, Outcome& outcome) {
  if (frames_.size() == depth_) frames_.emplace_back();
  Frame& frame = frames_[depth_++];
  save(frame);
  frame.moves = moves();
  frame.next = 0;
  frame.id = id;
  frame.delivery = std::move(delivery);
  std::swap(frame.events, events);
  outcome.depth = std::max(outcome.depth, depth_);
}

/// Judges a state in which nothing can happen any more.
void Explorer::judge_end() {
  const bool all_done = std::ranges::all_of(pending_, [](const Pending& one) { return one.at == At::done; });
  if (!world_->must_wait()) {
    failure_ = all_done ? world_->at_end() : describe_deadlock();
  } else if (all_done) {
    failure_ = "calls that differ have ended: a message of one was taken by the other";
  }
}

/// False if it has to begin again, with what it has learned.
bool Explorer::search(Outcome& outcome, std::size_t states_max) {
  std::unordered_map<std::uint64_t, std::uint32_t> known{{hash(), 0}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<std::uint32_t> ends;
  std::vector<Event> events;
  enter(0, events, {}, outcome);
  bool is_at_deepest = true;
  while (depth_ != 0) {
    Frame& frame = frames_[depth_ - 1];
    if (frame.next == frame.moves.size()) {
      --depth_;
      is_at_deepest = false;
      continue;
    }
    if (!is_at_deepest) restore(frame);
    is_at_deepest = false;
    const Move move = frame.moves[frame.next++];
    std::string delivery = move.rank < 0 ? world_->describe_delivery(static_cast<std::size_t>(move.which)) : "";
    step(move, events);
    ++outcome.transitions;
    if (memory_->too_small()) return false;
    const auto [entry, is_new] = known.try_emplace(hash(), static_cast<std::uint32_t>(known.size()));
    edges.emplace_back(frame.id, entry->second);
    outcome.states = known.size();
    if (is_new || !failure_.empty()) {
      enter(entry->second, events, std::move(delivery), outcome);
      is_at_deepest = true;
      if (failure_.empty() && frames_[depth_ - 1].moves.empty()) {
        ends.push_back(entry->second);
        ++outcome.ends;
        judge_end();
      }
      if (!failure_.empty()) {
        describe(outcome);
        return true;
      }
      if (known.size() >= states_max) return true;
    }
    // A path is complete; more of them would only have to be repeated.
    if (wants_restart() && (!is_new || frames_[depth_ - 1].moves.empty())) return false;
  }
  if (wants_restart()) return false;
  outcome.failure = trapped_state(edges, ends, known.size());
  outcome.complete = outcome.failure.empty();
  return true;
}

/// From every state some order of events must lead to the end: a state without that is one in which ranks are busy for
/// ever.
std::string Explorer::trapped_state(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
                                    const std::vector<std::uint32_t>& ends, std::size_t states) const {
  std::vector<std::vector<std::uint32_t>> before(states);
  for (const auto& [from, to] : edges) before[to].push_back(from);
  std::vector<bool> reaches(states, false);
  std::vector<std::uint32_t> open = ends;
  for (const std::uint32_t end : ends) reaches[end] = true;
  while (!open.empty()) {
    const std::uint32_t state = open.back();
    open.pop_back();
    for (const std::uint32_t from : before[state]) {
      if (reaches[from]) continue;
      reaches[from] = true;
      open.push_back(from);
    }
  }
  const auto trapped = static_cast<std::size_t>(std::ranges::count(reaches, false));
  if (trapped == 0) return {};
  return "from " + std::to_string(trapped) + " states no order of events leads to the end: ranks are busy for ever";
}

std::string Explorer::describe_deadlock() const {
  std::string text = "deadlock:";
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    const Pending& pending = pending_[static_cast<std::size_t>(rank)];
    text += (rank == 0 ? " rank " : "; rank ") + std::to_string(rank);
    if (pending.at == At::done) {
      text += " has ended";
    } else if (pending.at == At::asleep) {
      text += " sleeps";
    } else {
      text += " waits for";
      for (std::size_t word = 0; word < memory_->words(); ++word) {
        if ((pending.watched[word / 64] >> (word % 64) & 1) == 0) continue;
        text += ' ' + memory_->name_of(memory_->address_of(static_cast<int>(word)));
      }
    }
  }
  return text;
}

void Explorer::describe(Outcome& outcome) const {
  outcome.failure = failure_;
  for (std::size_t i = 0; i < depth_; ++i) {
    if (!frames_[i].delivery.empty()) outcome.history.push_back("the network delivers " + frames_[i].delivery);
    for (const Event& event : frames_[i].events) outcome.history.push_back(describe(event));
  }
}

std::string Explorer::describe(const Event& event) const {
  std::string text = "rank " + std::to_string(event.rank);
  switch (event.access) {
    case Access::load:
      text += " loads ";
      break;
    case Access::store:
      text += " stores ";
      break;
    case Access::change:
      text += " changes ";
      break;
    case Access::fence:
      text += " fence";
      break;
    case Access::past_caches_fence:
      text += " fence of stores past the caches";
      break;
    case Access::plain:
      text += " accesses " + std::to_string(event.value) + " bytes of ";
      break;
  }
  if (event.at != nullptr) text += memory_->name_of(event.at);
  if (event.access == Access::load) {
    text += ": " + std::to_string(event.value);
    const int newer = event.readable - 1 - event.which;
    if (newer > 0) text += ", although " + std::to_string(newer) + " newer have been stored";
  } else if (event.access == Access::store || event.access == Access::change) {
    text += ": now " + std::to_string(event.value);
  }
  if (event.access != Access::plain) text += std::string(", ") + name(event.order);
  return text + "; " + describe_site(event.site);
}

}  // namespace torii::exploration
