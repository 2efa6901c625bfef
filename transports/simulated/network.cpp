// SPDX-License-Identifier: Apache-2.0
// Events of the virtual network: puts wait for engines, message heads for links, signals for their time.
#include "transports/simulated/network.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "runtime/base/index.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/words.hpp"

namespace torii::simulated {
namespace {

constexpr std::size_t kNoEngine = kEnginesMax;

}  // namespace

double uniform(std::uint64_t seed, std::uint64_t number) noexcept {
  // splitmix64, by Sebastiano Vigna: a bijection whose outputs pass for random.
  std::uint64_t z = seed * 0x9e3779b97f4a7c15U + number + 1;
  for (int round = 0; round < 2; ++round) {
    z += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
  }
  return static_cast<double>(z >> 11) * 0x1p-53;
}

void Network::Unmap::operator()(void* memory) const { ::munmap(memory, bytes); }

Network::Network(const NetworkModel& model, std::size_t arena_bytes, bool carries_data, int parts)
    : model_(model), world_(std::make_shared<World>()), carries_data_(carries_data) {
  if (model.topology.kind() == Topology::Kind::torus && model.topology.per_node() != 1) {
    throw Error(Status::unsupported, "the simulated network has one rank on each node, not " + model.topology.text());
  }
  World& world = *world_;
  world.arena_bytes = round_up(arena_bytes, kLineBytes);
  world.parts = parts;
  world.stripe = std::clamp(model.topology.ranks() / parts, 1, kStripe);
  for (std::vector<Mail>& mails : world.mails) mails.resize(index(parts) * index(parts));
  const std::size_t ranks = index(model.topology.ranks());
  const std::size_t bytes = ranks * world.arena_bytes + kLineBytes;
  // Most slots are never touched and then take no memory.
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_resource, "cannot map " + std::to_string(bytes) + " bytes of entries and payloads for " +
                                         std::to_string(ranks) + " ranks; shorter segments or fewer slots take less");
  }
  world.memory = {memory, Unmap{bytes}};
  world.arenas = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(memory), kLineBytes));
  alpha_ = in_ticks(model.alpha_us);
  overhead_ = in_ticks(model.overhead_us);
  world.ranks.resize(ranks);
  add_links();
  if (model.sharing) share_links();
}

Network::Network(const Network& first, int part)
    : model_(first.model_),
      world_(first.world_),
      part_(part),
      carries_data_(first.carries_data_),
      alpha_(first.alpha_),
      overhead_(first.overhead_) {}

Time Network::in_ticks(double us) const noexcept {
  return static_cast<Time>(std::llround(us * kPicosecondsPerMicrosecond));
}

void Network::schedule(Time time, Kind kind, std::uint32_t number) noexcept { agenda_.add(time, {number, kind}); }

void Network::wake_at(int number, Time time) noexcept {
  schedule(time, Kind::wake, static_cast<std::uint32_t>(number));
}

void Network::compute_until(int number, Time time) noexcept {
  rank(number).clock = time;
  wake_at(number, time);
}

Status Network::put(int from, const Put& put) noexcept {
  Rank& sender = rank(from);
  const auto way = std::ranges::upper_bound(sender.ways, std::pair(put.peer, put.signal_offset), {},
                                            [](const Way& one) { return std::pair(one.peer, one.begin); });
  if (way == sender.ways.begin() || (way - 1)->peer != put.peer || (way - 1)->end <= put.signal_offset) {
    if (put.bytes == 0) return put_word(from, put.peer, put.signal_offset, put.signal);  // a credit
    return Status::transport;  // a put that belongs to no stream
  }
  std::uint32_t number = 0;
  if (free_messages_.empty()) {
    number = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    number = free_messages_.back();
    free_messages_.pop_back();
  }
  const auto place = static_cast<std::uint32_t>(way - 1 - sender.ways.begin());
  messages_[number] = {put, PutHold(put.owner), from, place, (way - 1)->first, (way - 1)->first + (way - 1)->count, 0};
  if (carries_data_ && put.is_in_line()) {  // its source may change when put() has returned
    if (lines_.size() <= number) lines_.resize(messages_.size());
    std::memcpy(lines_[number].data(), put.source, put.bytes);
  }
  ++sender.under_way;
  note_moved(sender);
  if (sender.clock > now_) {
    schedule(sender.clock, Kind::post, number);
  } else {
    wait_for_engine(number);
  }
  return Status::ok;
}

Status Network::put_word(int from, int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  ++words_sent_;
  send_word(std::max(rank(from).clock, now_) + alpha_ + way_latency(from, peer), {peer, true, offset, value});
  return Status::ok;
}

void Network::send_word(Time time, const Word& word) noexcept {
  if (const int part = part_of(word.peer); part != part_) {
    Mail& letters = mail(world_->filling, part_, part);
    letters.letters.push_back({time, word});
    letters.soonest = std::min(letters.soonest, time);
    return;
  }
  add_word(time, word);
}

void Network::add_word(Time time, const Word& word) noexcept {
  std::uint32_t number = 0;
  if (free_words_.empty()) {
    number = static_cast<std::uint32_t>(words_.size());
    words_.emplace_back();
  } else {
    number = free_words_.back();
    free_words_.pop_back();
  }
  words_[number] = word;
  schedule(time, Kind::word, number);
}

void Network::take_mail() noexcept {
  for (int from = 0; from < world_->parts; ++from) {
    Mail& letters = mail(1 - world_->filling, from, part_);
    for (const Letter& letter : letters.letters) add_word(letter.time, letter.word);
    letters.letters.clear();
    letters.soonest = kNever;
  }
}

Time Network::next_time() noexcept {
  Time soonest = agenda_.empty() ? kNever : agenda_.time();
  for (int from = 0; from < world_->parts; ++from) {
    soonest = std::min(soonest, mail(world_->filling, from, part_).soonest);
  }
  return soonest;
}

void Network::wait_for_engine(std::uint32_t message) noexcept {
  const Message& one = messages_[message];
  Rank& sender = rank(one.from);
  const std::uint32_t engine = static_cast<std::uint32_t>(one.put.engine) % queues_per_way();
  const std::uint32_t queue = one.way * queues_per_way() + engine;
  std::vector<Waiting>& waiting = sender.waiting[queue].puts;
  if (waiting.empty()) sender.active.push_back(queue);
  waiting.push_back({static_cast<std::uint32_t>(one.put.signal), order_++, message});
  std::push_heap(waiting.begin(), waiting.end());
  use_engines(one.from);
}

/// The index in `active` of the queue whose first put goes next. If all first links, or the engines that puts name, are
/// busy, it is the number of queues. `earliest` is then the time at which a put can go.
std::size_t Network::find_queue(const Rank& sender, Time& earliest) const noexcept {
  std::size_t best = sender.active.size();
  for (std::size_t i = 0; i < sender.active.size(); ++i) {
    const std::uint32_t queue = sender.active[i];
    const Resource& first = world_->resources[sender.waiting[queue].first_resource];
    Time free_at = std::max(first.free_at, first.fed_until);
    if (!model_.engine_rates.empty()) {
      free_at = std::max(free_at, sender.engine_free_at[queue % queues_per_way()]);
    }
    if (free_at > now_) {
      earliest = std::min(earliest, free_at);
    } else if (best == sender.active.size() ||
               sender.waiting[sender.active[best]].puts.front() < sender.waiting[queue].puts.front()) {
      best = i;
    }
  }
  return best;
}

/// Free engines take waiting puts; the rest is looked at again when an engine and a link are free.
void Network::use_engines(int number) noexcept {
  Rank& sender = rank(number);
  while (!sender.active.empty()) {
    const auto first = sender.engine_free_at.begin();
    const auto soonest = std::min_element(first, first + model_.engines);
    Time again = *soonest;
    if (again <= now_) {
      again = kNever;
      const std::size_t place = find_queue(sender, again);
      if (place != sender.active.size()) {
        const std::uint32_t queue = sender.active[place];
        std::vector<Waiting>& waiting = sender.waiting[queue].puts;
        std::pop_heap(waiting.begin(), waiting.end());
        const std::uint32_t message = waiting.back().message;
        waiting.pop_back();
        if (waiting.empty()) sender.active.erase(sender.active.begin() + static_cast<std::ptrdiff_t>(place));
        ++messages_sent_;
        const std::size_t engine =
            model_.engine_rates.empty() ? static_cast<std::size_t>(soonest - first) : queue % queues_per_way();
        if (sharing_) {
          start_flow(message, engine);
        } else {
          move_head(message, engine);
        }
        continue;
      }
    }
    if (again == kNever) return;  // a flow whose end is not yet known
    if (sender.engine_event <= now_ || again < sender.engine_event) {
      sender.engine_event = again;
      schedule(again, Kind::engine, static_cast<std::uint32_t>(number));
    }
    return;
  }
}

/// The time from the arrival of a message's last byte to its signal.
Time Network::late() const noexcept {
  if (model_.jitter_us <= 0) return alpha_;
  return alpha_ + in_ticks(model_.jitter_us * uniform(model_.seed, messages_sent_));
}

void Network::note_use(const Message& message, std::size_t engine, Time begin, Time end) noexcept {
  if (message.from != watched_) return;
  uses_.push_back({static_cast<int>(engine), message.put.peer, message.put.bytes,
                   static_cast<std::uint32_t>(message.put.signal), begin, end});
}

/// Moves the head over free links, up to the first busy one, which it gets after the messages before it. A link is
/// taken for the bytes at its own rate, though they may arrive more slowly; others can use the time in between.
/// `engine`: the engine from which the message starts; kNoEngine if it is already on its way.
void Network::move_head(std::uint32_t number, std::size_t engine) noexcept {
  Message& message = messages_[number];
  while (message.next_hop != message.last_hop) {
    const Hop hop = world_->hops[message.next_hop++];
    const Time length = transfer(message.put.bytes, hop.link);
    Resource& resource = world_->resources[hop.resource];
    const Time start = std::max(now_, resource.free_at);
    const bool is_port = hop.resource >= world_->link_bytes.size();
    const Time head = start + (is_port ? 0 : latency(hop.link));
    resource.free_at = start + length;
    message.tail = std::max(start + length, message.tail) + (head - start);
    if (!is_port) world_->link_bytes[hop.resource] += message.put.bytes;
    if (engine != kNoEngine) {
      const Time fed = start + feeding(length, engine);
      resource.fed_until = start + length + overhead_;
      rank(message.from).engine_free_at[engine] = fed + overhead_;
      message.tail = std::max(message.tail, fed + (head - start));
      note_use(message, engine, now_, fed + overhead_);
      engine = kNoEngine;
    }
    if (message.next_hop == message.last_hop) {
      const Time arrival = message.tail + late();
      schedule(arrival, Kind::arrival, number);
      const Put& put = message.put;
      if (part_of(put.peer) != part_) send_word(arrival, {put.peer, false, put.signal_offset, put.signal});
    } else if (head > now_) {
      schedule(head, Kind::head, number);
      return;
    }
  }
}

void Network::arrive(std::uint32_t number, std::vector<int>& woken) noexcept {
  Message& message = messages_[number];
  const Put& put = message.put;
  if (carries_data_ && put.bytes != 0) {
    const std::byte* const source = put.is_in_line() ? lines_[number].data() : put.source;
    std::memcpy(arena(put.peer) + put.target_offset, source, put.bytes);
  }
  if (part_of(put.peer) == part_) show({put.peer, false, put.signal_offset, put.signal}, woken);
  message.hold.let_go();
  // A rank that waits only for its last put has to be asked once more.
  Rank& sender = rank(message.from);
  if (--sender.under_way == 0 && sender.wakes_when_drained) wake(message.from, woken);
  free_messages_.push_back(number);
}

void Network::show(const Word& word, std::vector<int>& woken) noexcept {
  change(word.peer, word.offset, word.value);
  Rank& peer = rank(word.peer);
  if (!word.is_credit) note_moved(peer);
  if (!word.is_credit || peer.wakes_by_words) wake(word.peer, woken);
}

void Network::change(int number, std::uint64_t offset, std::uint64_t value) noexcept {
  store_word(arena(number) + offset, value);
  Rank& one = rank(number);
  if (one.listener != nullptr) one.listener->changed(offset);
}

void Network::wake(int number, std::vector<int>& woken) noexcept {
  Rank& one = rank(number);
  if (one.is_woken) return;
  one.is_woken = true;
  woken.push_back(number);
}

void Network::happen(const Event& event, std::vector<int>& woken) noexcept {
  switch (event.kind) {
    case Kind::post:
      wait_for_engine(event.index);
      break;
    case Kind::head:
      move_head(event.index, kNoEngine);
      break;
    case Kind::arrival:
      arrive(event.index, woken);
      break;
    case Kind::word:
      show(words_[event.index], woken);
      free_words_.push_back(event.index);
      break;
    case Kind::flow:
      end_flow(event.index);
      break;
    case Kind::engine:
      use_engines(static_cast<int>(event.index));
      break;
    case Kind::wake:
      wake(static_cast<int>(event.index), woken);
      break;
  }
}

bool Network::next_instant(std::vector<int>& woken, Time end) noexcept {
  for (const int number : woken) rank(number).is_woken = false;
  woken.clear();
  if (!is_settled_) settle_flows();
  if (agenda_.empty() || agenda_.time() >= end) return false;
  now_ = agenda_.time();
  // These events may make more events of this instant, which come after.
  while (!agenda_.empty() && agenda_.time() == now_) {
    due_.clear();
    while (!agenda_.empty() && agenda_.time() == now_) agenda_.take(due_);
    for (const Event& event : due_) happen(event, woken);
  }
  return true;
}

}  // namespace torii::simulated
