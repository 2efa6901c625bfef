// SPDX-License-Identifier: Apache-2.0
// Pairwise exchanges: personalised messages. Transfers start in the order of the plan, and a bounded number is in
// flight. Each transfer that can move does, so a late receiver holds up only itself.
#include "runtime/execution/pairwise_schedule.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/execution/exchange_on_rings.hpp"
#include "runtime/execution/pairwise_operations.hpp"
#include "runtime/execution/sending.hpp"
#include "runtime/execution/try_run.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/plan/shortcuts.hpp"

namespace torii {
namespace {

/// Transfers from which a rank takes at once.
constexpr auto kTakesAtOnce = tuned<std::size_t>("exchanges.taken_at_once");

}  // namespace

/// The offer of a rank to a peer: the place and length of its block for the peer, and of the peer's block for it.
template <class Host>
struct PairwiseSchedule<Host>::ExchangeOffer {
  std::uint64_t reach;  ///< of the block to be sent; then its offset in the arena, or if kReadable its address
  std::int64_t input;
  std::uint64_t result_in_place;
  std::int64_t result;
  std::uint64_t send_bytes;
  std::uint64_t take_bytes;
};

template <class Host>
std::uint64_t PairwiseSchedule<Host>::reach_of_input() const noexcept {
  return call_.buffers.input_reachable ? kInArena : call_.private_read.readable ? kReadable : kByValue;
}

/// The signature of messages between two ranks. The call's signature does not contain lengths that differ between
/// pairs, so they are added here. Ranks that disagree about a length wait instead of mixing data.
template <class Host>
std::uint32_t PairwiseSchedule<Host>::pair_signature(std::size_t bytes) const noexcept {
  if (call_.buffers.blocks == nullptr) return call_.signature;
  if (bytes <= kAtOnceBytes) return with_length(call_.signature, bytes);
  const auto mixed = static_cast<std::uint32_t>((bytes * 0x9e3779b97f4a7c15ULL) >> 32);
  return (call_.signature ^ mixed) | 1U;
}

template <class Host>
void PairwiseSchedule<Host>::begin() noexcept {
  const InstalledExchange& exchange = call_.plan->exchange;
  turns_.assign(exchange.peers.size(), Turn{});
  sends_.active.clear();
  takes_.active.clear();
  sends_.next = takes_.next = 0;
  own_block_kept_ = false;
  free_of_ = 0;
  take_numbers(*call_.plan);
  call_.find_sendable(exchange_operand_stays(call_.plan->plan.exchange), false);
  choose_private_read();
  for (std::size_t i = 0; i < exchange.peers.size(); ++i) {
    const ExchangePeer& peer = exchange.peers[i];
    Turn& turn = turns_[i];
    const Block to = block_to(peer.rank);
    const Block from = block_from(peer.rank);
    turn.sent = !peer.sends || to.bytes == 0;
    turn.taken = !peer.takes || from.bytes == 0;
    if (peer.remote || is_short(to)) turn.out_way = Way::through_slots;
    if (peer.remote || is_short(from)) turn.in_way = Way::through_slots;
    const bool sends_by_offer = !turn.sent && turn.out_way == Way::unknown;
    const bool takes_by_offer = !turn.taken && turn.in_way == Way::unknown;
    turn.makes_offer = sends_by_offer || takes_by_offer;
    if (turn.makes_offer) offer(peer);
  }
  call_.on_rings.is_long = true;
  call_.on_rings.lacks_room = !claim_extent();
}

/// A rank whose operand its peers reach sends no long block through slots.
template <class Host>
bool PairwiseSchedule<Host>::claim_extent() noexcept {
  const std::vector<ExchangePeer>& peers = call_.plan->exchange.peers;
  slot_bytes_.assign(peers.size(), 0);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const Turn& turn = turns_[i];
    const bool may_use_slots = turn.out_way == Way::through_slots || reach_of_input() == kByValue;
    const std::size_t bytes = block_to(peers[i].rank).bytes;
    if (may_use_slots && !turn.sent && !Ring::is_inline(bytes)) slot_bytes_[i] = bytes;
  }
  return claim_blocks(call_, slot_bytes_);
}

/// Members count turns whether or not they have an operand to read.
template <class Host>
void PairwiseSchedule<Host>::choose_private_read() noexcept {
  const PrivateReads& reads = call_.plan->private_reads;
  std::size_t bytes = call_.shape->layout.total_bytes();
  if (call_.buffers.blocks == nullptr) {
    call_.count_turn();
  } else {
    const auto add_long = [](std::size_t sum, std::size_t one) { return one <= kAtOnceBytes ? sum : sum + one; };
    const ExchangeBlocks& blocks = *call_.buffers.blocks;
    bytes = std::accumulate(blocks.send_bytes.begin(), blocks.send_bytes.end(), std::size_t{0}, add_long);
    bytes = std::accumulate(blocks.take_bytes.begin(), blocks.take_bytes.end(), bytes, add_long) / 2;
    call_.turn = reads.turns->next_unequal();
  }
  if (reads.are_offered && !call_.buffers.input_reachable) call_.private_read.choose(*reads.choice, bytes, call_.turn);
}

template <class Host>
void PairwiseSchedule<Host>::offer(const ExchangePeer& peer) noexcept {
  static_assert(sizeof(ExchangeOffer) <= kInlineBytes, "an offer fits into its signal's line");
  const Block to = block_to(peer.rank);
  const Block from = block_from(peer.rank);
  const std::int64_t input =
      call_.buffers.input_reachable ? call_.buffers.input_offset : static_cast<std::int64_t>(call_.buffers.input);
  const ExchangeOffer offer = {reach_of_input(),
                               input + to.offset,
                               call_.buffers.result_reachable,
                               call_.buffers.result_offset + from.offset,
                               !peer.sends ? 0 : to.bytes,
                               !peer.takes ? 0 : from.bytes};
  const std::uint64_t line = line_of_offer(peer.offers_made) * kLineBytes;
  std::memcpy(peer.their_lines + line + sizeof(std::uint64_t), &offer, sizeof(offer));
  Put put;
  put.peer = peer.context_rank;
  put.signal_offset = peer.their_lines_offset + line;
  put.signal = signal_word(call_.signature, peer.offers_made);
  call_.note(call_.transport.put(put), put.peer);
}

/// Whether the peer offers blocks of this rank's lengths. If not, the call has failed.
template <class Host>
bool PairwiseSchedule<Host>::fits(const ExchangePeer& peer, const ExchangeOffer& offer) noexcept {
  const std::size_t own_send = !peer.sends ? 0 : block_to(peer.rank).bytes;
  const std::size_t own_take = !peer.takes ? 0 : block_from(peer.rank).bytes;
  const bool is_other_send = offer.send_bytes != own_take;
  if (!is_other_send && offer.take_bytes == own_send) return true;
  length_fault_ = {peer.context_rank, is_other_send, false, is_other_send ? offer.send_bytes : offer.take_bytes,
                   is_other_send ? own_take : own_send};
  call_.note(Status::mismatch, peer.context_rank);
  return false;
}

/// Reads the peer's buffer offer, and chooses the ways of the pair's long blocks. False if the offer has not come.
template <class Host>
bool PairwiseSchedule<Host>::match(const ExchangePeer& peer, Turn& turn) noexcept {
  const std::byte* line = peer.own_lines + line_of_offer(peer.offers_made) * kLineBytes;
  if (load_word(line) != signal_word(call_.signature, peer.offers_made)) return false;
  ExchangeOffer offer;
  std::memcpy(&offer, line + sizeof(std::uint64_t), sizeof(offer));
  if (!fits(peer, offer)) return false;
  const std::size_t own_send = !peer.sends ? 0 : block_to(peer.rank).bytes;
  const std::size_t own_take = !peer.takes ? 0 : block_from(peer.rank).bytes;
  const bool reads = offer.reach == kInArena;
  if (reads && !call_.accepts(peer.context_rank, static_cast<std::uint64_t>(offer.input), own_take)) return false;
  const bool stores = offer.result_in_place != 0;
  if (stores && !call_.accepts(peer.context_rank, static_cast<std::uint64_t>(offer.result), own_send)) return false;
  const auto base = reinterpret_cast<std::uintptr_t>(call_.transport.mapped(peer.context_rank, 0));
  const PairwiseExchange& exchange = call_.plan->plan.exchange;
  if (turn.out_way == Way::unknown) turn.out_way = way_of(exchange, reach_of_input(), offer.result_in_place != 0);
  if (turn.in_way == Way::unknown) turn.in_way = way_of(exchange, offer.reach, call_.buffers.result_reachable);
  turn.peer_input = (offer.reach == kReadable ? 0 : base) + static_cast<std::uintptr_t>(offer.input);
  turn.peer_result = base + static_cast<std::uintptr_t>(offer.result);
  return true;
}

template <class Host>
Progress PairwiseSchedule<Host>::advance() noexcept {
  const InstalledExchange& exchange = call_.plan->exchange;
  const auto limit = static_cast<std::size_t>(std::max(call_.plan->plan.exchange.in_flight, 1));
  if (call_.status != Status::ok) return Progress::idle;
  bool moved = false;
  for (bool again = true; again;) {
    again = pass(sends_, exchange.sends_in, limit, true);
    again = pass(takes_, exchange.takes_in, kTakesAtOnce, false) || again;
    if (call_.status != Status::ok) return Progress::idle;
    if (!again && !own_block_kept_) {
      keep_own_block();
      again = true;
    }
    moved = moved || again;
  }
  const bool all = sends_.active.empty() && takes_.active.empty() && sends_.next == exchange.sends_in.size() &&
                   takes_.next == exchange.takes_in.size() && operands_are_free();
  if (!all) return moved ? Progress::moved : Progress::idle;
  if (!call_.has_drained()) return Progress::idle;
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    if (turns_[i].makes_offer) ++call_.plan->exchange.peers[i].offers_made;
  }
  hand_on_numbers(call_);
  return call_.finish() ? Progress::done : Progress::idle;
}

/// Lets every transfer in flight move once, and starts the next ones of the order.
template <class Host>
bool PairwiseSchedule<Host>::pass(Pool& pool, const std::vector<std::uint32_t>& order, std::size_t limit,
                                  bool sends) noexcept {
  bool moved = false;
  std::size_t kept = 0;
  for (std::size_t i = 0;; ++i) {
    if (i == pool.active.size()) {
      if (kept == limit || pool.next == order.size()) break;
      pool.active.push_back(order[pool.next++]);
      // All others have had their turn, so those that were kept and this one are in flight.
      const auto begun = static_cast<int>(kept) + 1;
      if (sends && begun > transfers_in_flight_most())
        transfers_in_flight_most_.store(begun, std::memory_order_relaxed);
    }
    const std::uint32_t index = pool.active[i];
    ExchangePeer& peer = call_.plan->exchange.peers[index];
    Turn& turn = turns_[index];
    if (sends) {
      if (!turn.sent) send(peer, turn, moved);
    } else if (!turn.taken) {
      take(peer, turn, moved);
    }
    if (!(sends ? turn.sent : turn.taken)) pool.active[kept++] = index;
  }
  pool.active.resize(kept);
  return moved;
}

template <class Host>
void PairwiseSchedule<Host>::send(ExchangePeer& peer, Turn& turn, bool& moved) noexcept {
  if (turn.out_way == Way::unknown && !match(peer, turn)) return;
  const Block block = block_to(peer.rank);
  if (turn.out_bytes < block.bytes) {
    const SendOperation operation(*this, peer, turn, block);
    if (!try_run(host_, operation)) return;
    turn.out_bytes += operation.bytes();
    moved = true;
  }
  if (turn.out_bytes < block.bytes) return;
  const std::uint64_t next = peer.sent + messages_of(block.bytes);
  // Over a network a transfer is in flight until the receiver has taken it. The last transfers need not wait for that.
  if (peer.remote && sends_.next != call_.plan->exchange.sends_in.size() &&
      !peer.out.ring.is_taken(call_.entries, next - 1)) {
    return;
  }
  peer.sent = next;
  turn.sent = true;
  moved = true;
}

template <class Host>
void PairwiseSchedule<Host>::store_in_result(void* to, const void* from, std::size_t bytes) const noexcept {
  kernels::copy(to, from, bytes, call_.shape->non_temporal);
  if (call_.shape->non_temporal) kernels::store_fence();
}

/// Through the caches or past them, whichever is quicker now.
template <class Host>
void PairwiseSchedule<Host>::store_in_peer(std::byte* to, const std::byte* from, std::size_t bytes, StoreChoice& stores,
                                           bool is_first_touch) noexcept {
  if (bytes < StoreChoice::kBytesMin) {
    kernels::copy(to, from, bytes, false);
    return;
  }
  store_and_time(stores, bytes, is_first_touch, call_.transport.counters(),
                 [&](bool non_temporal) { kernels::copy(to, from, bytes, non_temporal); });
}

template <class Host>
void PairwiseSchedule<Host>::take(ExchangePeer& peer, Turn& turn, bool& moved) noexcept {
  if (turn.in_way == Way::unknown && !match(peer, turn)) return;
  const Block block = block_from(peer.rank);
  const TakeOperation operation(*this, peer, turn, block);
  if (!try_run(host_, operation) || call_.status != Status::ok) return;
  turn.in_bytes += operation.bytes();
  moved = true;
  if (turn.in_bytes != block.bytes) return;
  peer.taken += messages_of(block.bytes);
  turn.taken = true;
}

template <class Host>
void PairwiseSchedule<Host>::keep_own_block() noexcept {
  own_block_kept_ = true;
  const Plan& plan = call_.plan->plan;
  if (!plan.exchange.sends(plan.rank) || !plan.exchange.takes(plan.rank)) return;
  const Block from = block_to(plan.rank);
  const Block to = block_from(plan.rank);
  const std::uintptr_t source = call_.buffers.input + static_cast<std::uintptr_t>(from.offset);
  const std::uintptr_t target = call_.buffers.result + static_cast<std::uintptr_t>(to.offset);
  if (source == target || from.bytes == 0) return;
  if (!host_.runs(1, from.bytes)) return;
  store_in_result(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), from.bytes);
}

/// The caller may overwrite its input after the call, so its readers must be done.
template <class Host>
bool PairwiseSchedule<Host>::operands_are_free() noexcept {
  for (; free_of_ < turns_.size(); ++free_of_) {
    const Turn& turn = turns_[free_of_];
    const ExchangePeer& peer = call_.plan->exchange.peers[free_of_];
    if (!is_read(turn.out_way) || peer.sent == 0 || !peer.sends) continue;
    if (!peer.out.ring.is_taken(call_.entries, peer.sent - 1)) return false;
  }
  return true;
}

template <class Host>
Stall PairwiseSchedule<Host>::stall() const noexcept {
  Stall stall;
  stall.label = "exchange";
  const auto& exchange = call_.plan->exchange;
  if (!takes_.active.empty()) {
    const std::uint32_t index = takes_.active.front();
    stall.peer = exchange.peers[index].context_rank;
    stall.segment = static_cast<std::int64_t>(turns_[index].in_bytes / call_.shape->layout.segment_bytes());
  } else if (!sends_.active.empty()) {
    const std::uint32_t index = sends_.active.front();
    stall.peer = exchange.peers[index].context_rank;
    stall.segment = static_cast<std::int64_t>(turns_[index].out_bytes / call_.shape->layout.segment_bytes());
  } else if (free_of_ < exchange.peers.size()) {
    stall.peer = exchange.peers[free_of_].context_rank;
  }
  return stall;
}

template <class Host>
bool PairwiseSchedule<Host>::awaits(int peer) const noexcept {
  const auto& peers = call_.plan->exchange.peers;
  const auto is_peer = [&](std::uint32_t index) { return peers[index].context_rank == peer; };
  if (std::ranges::any_of(sends_.active, is_peer) || std::ranges::any_of(takes_.active, is_peer)) return true;
  return sends_.active.empty() && takes_.active.empty() && free_of_ < peers.size() &&
         peers[free_of_].context_rank == peer;
}

template class PairwiseSchedule<RealHost>;
template class PairwiseSchedule<ModelledHost>;

}  // namespace torii
