// SPDX-License-Identifier: Apache-2.0
// The network of an exploration.
#include "tests/exploration/network_world.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/fabric/words.hpp"

namespace torii::exploration {

/// The transport of one rank: peers of its node are in shared memory, others behind the network.
class NetworkWorld::Wire final : public Transport {
 public:
  Wire(NetworkWorld& world, int rank) : world_(world), inner_(Station::instance().transport(rank)), rank_(rank) {
    capabilities_ = inner_.capabilities();
    capabilities_.name = "explored";
    capabilities_.gathers = true;
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return world_.ranks(); }
  int node(int rank) const noexcept override { return world_.nodes_.nodes[static_cast<std::size_t>(rank)]; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override {
    return is_near(peer) ? inner_.mapped(peer, offset) : nullptr;
  }
  std::uint64_t arena_bytes() const noexcept override { return inner_.arena_bytes(); }
  const std::atomic<std::uint32_t>* sleeping(int peer) noexcept override {
    return is_near(peer) ? inner_.sleeping(peer) : nullptr;
  }
  void ring(int peer) noexcept override { inner_.ring(peer); }
  Status put(const Put& put) noexcept override {
    if (is_near(put.peer)) return inner_.put(put);
    Flight flight;
    flight.from = rank_;
    flight.to = put.peer;
    flight.line_before = put.line_before;
    flight.bytes = put.bytes;
    if (put.is_in_line()) {
      std::memcpy(flight.in_line.data(), put.source, put.bytes);
    } else {
      flight.source = const_cast<std::byte*>(put.source);
    }
    if (put.bytes != 0) flight.target = at(put.peer, put.target_offset);
    flight.signal_at = at(put.peer, put.signal_offset);
    flight.signal = put.signal;
    flight.owner = put.source == nullptr ? nullptr : put.owner;
    if (flight.owner != nullptr) flight.owner->add();
    world_.put(flight);
    return Status::ok;
  }
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override {
    if (is_near(peer)) return inner_.put_word(peer, offset, value);
    Flight flight;
    flight.from = rank_;
    flight.to = peer;
    flight.signal_at = at(peer, offset);
    flight.signal = value;
    world_.put(flight);
    return Status::ok;
  }
  Status progress() noexcept override {
    world_.notice(rank_);
    return Status::ok;
  }
  bool drained() noexcept override { return false; }
  void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept override {
    inner_.sleep(mark, most_us, still_idle, data);
  }
  bool alive(int) noexcept override { return true; }
  bool oversubscribed() const noexcept override { return false; }

 private:
  bool is_near(int peer) const noexcept { return node(peer) == node(rank_); }
  static std::byte* at(int peer, std::uint64_t offset) {
    return Station::instance().transport(peer).mapped(peer, offset);
  }

  NetworkWorld& world_;
  Transport& inner_;
  int rank_;
  Capabilities capabilities_;
};

NetworkWorld::NetworkWorld(std::unique_ptr<TransportWorld> inner, NodesOfRanks nodes)
    : inner_(std::move(inner)), nodes_(std::move(nodes)) {
  for (int rank = 0; rank < ranks(); ++rank) wires_.push_back(std::make_unique<Wire>(*this, rank));
  inner_->use([this](int rank) -> Transport& { return *wires_[static_cast<std::size_t>(rank)]; });
}

NetworkWorld::~NetworkWorld() = default;

void NetworkWorld::set_up(Explorer& explorer) {
  under_way_.clear();
  inner_->set_up(explorer);
}

void NetworkWorld::put(Flight flight) {
  RankSpace* const before = set_heap(nullptr);
  for (const Flight& other : under_way_) {
    if (other.signal_at == flight.signal_at && !other.has_moved) {
      explorer().fail("rank " + std::to_string(flight.from) + " puts to " +
                      explorer().memory().name_of(flight.signal_at) + " while another put to that word is under way");
    }
  }
  const auto behind = std::ranges::find_if(under_way_, [&](const Flight& one) { return one.from > flight.from; });
  const auto index = static_cast<std::size_t>(behind - under_way_.begin());
  explorer().memory().depart(flight.from, index);
  under_way_.insert(behind, flight);
  explorer().has_put();
  if (nodes_.moves_at_once) {
    move(under_way_[index], index);
    if (flight.owner == nullptr) remove(index);
  }
  set_heap(before);
  RankSpace::forget_calls();
}

void NetworkWorld::notice(int rank) {
  for (std::size_t i = 0; i < under_way_.size();) {
    const Flight flight = under_way_[i];
    if (flight.from != rank || !flight.has_arrived) {
      ++i;
      continue;
    }
    explorer().memory().learn(rank, i);
    remove(i);
    flight.owner->remove();
  }
  RankSpace::forget_calls();
}

void NetworkWorld::remove(std::size_t index) {
  explorer().memory().forget(index);
  under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::size_t NetworkWorld::index_of(std::size_t delivery) const {
  for (std::size_t i = 0;; ++i) {
    if (!under_way_[i].has_arrived && delivery-- == 0) return i;
  }
}

std::size_t NetworkWorld::deliveries() const {
  const auto under_way = static_cast<std::size_t>(std::ranges::count(under_way_, false, &Flight::has_arrived));
  // All that the executor asks is whether every put has ended.
  return nodes_.moves_at_once ? std::min<std::size_t>(under_way, 1) : under_way;
}

void NetworkWorld::deliver(std::size_t number) {
  const std::size_t index = index_of(number);
  if (nodes_.moves_at_once) {
    const int from = under_way_[index].from;
    for (Flight& flight : under_way_) flight.has_arrived = flight.has_arrived || flight.from == from;
    return;
  }
  move(under_way_[index], index);
  if (under_way_[index].owner != nullptr) {
    under_way_[index].has_arrived = true;
  } else {
    remove(index);
  }
}

void NetworkWorld::move(Flight& flight, std::size_t message) {
  if (flight.bytes != 0) move_payload(flight, message);
  explorer().store_from_network(message, flight.signal_at, flight.signal);
  flight.has_moved = true;
}

void NetworkWorld::move_payload(const Flight& flight, std::size_t message) {
  Memory& memory = explorer().memory();
  const std::string from = "rank " + std::to_string(flight.from);
  if (flight.source != nullptr && !memory.read_by_message(message, flight.source, flight.bytes)) {
    explorer().fail(from + " has changed a payload in " + memory.name_of(flight.source) +
                    " that the network had yet to take");
  }
  if (!memory.write_by_message(message, flight.target, flight.bytes)) {
    explorer().fail("a payload of " + from + " is stored in " + memory.name_of(flight.target) +
                    ", but nothing orders that behind all earlier accesses: a data race");
  }
  std::memmove(flight.target, flight.source != nullptr ? flight.source : flight.in_line.data(), flight.bytes);
  if (!flight.line_before) return;
  // The network may use that line for the signal.
  std::byte* const line = flight.source - kLineBytes;
  if (!memory.write_by_message(message, line, kLineBytes)) {
    explorer().fail("the line before a payload of " + from + " in " + memory.name_of(flight.source) + " is in use");
  }
  std::memset(line, 0xee, kLineBytes);
}

std::string NetworkWorld::describe_delivery(std::size_t number) const {
  const Flight& flight = under_way_[index_of(number)];
  return std::to_string(flight.bytes) + " bytes and signal " + std::to_string(flight.signal) + " from rank " +
         std::to_string(flight.from) + " at " + explorer().memory().name_of(flight.signal_at);
}

bool NetworkWorld::has_news_for(int rank) const {
  return std::ranges::any_of(under_way_, [&](const Flight& one) { return one.from == rank && one.has_arrived; });
}

std::string NetworkWorld::at_end() {
  if (std::ranges::any_of(under_way_, [](const Flight& one) { return one.bytes != 0; })) {
    return "a call has ended before the network has taken its payload";
  }
  return inner_->at_end();
}

void NetworkWorld::save(std::vector<std::byte>& to) const {
  static_assert(std::is_trivially_copyable_v<Flight>);
  to.resize(under_way_.size() * sizeof(Flight));
  if (!to.empty()) std::memcpy(to.data(), under_way_.data(), to.size());
}

void NetworkWorld::restore(const std::vector<std::byte>& from) {
  under_way_.resize(from.size() / sizeof(Flight));
  if (!from.empty()) std::memcpy(under_way_.data(), from.data(), from.size());
}

}  // namespace torii::exploration
