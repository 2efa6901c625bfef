// SPDX-License-Identifier: Apache-2.0
// Installs a plan that is a pairwise exchange.
#include "runtime/execution/stream_addresses.hpp"
#include "runtime/plan/transfer_rules.hpp"

static_assert(torii::kExchangeOffersBegin + torii::kOfferLines == torii::kPairOfferLines);

namespace torii {
namespace {

void set_lines(ExchangePeer& peer, const OfferLine& theirs, const OfferLine& own) {
  peer.their_lines = theirs.line;
  peer.their_lines_offset = theirs.line_offset;
  peer.own_lines = own.line;
}

ExchangePeer exchange_peer(const Plan& plan, const StreamAddresses& addresses, int peer, bool sends, bool takes) {
  const int rank = plan.rank;
  ExchangePeer result;
  result.rank = peer;
  result.context_rank = addresses.context_rank(peer);
  result.remote = !addresses.shares_node(peer, rank);
  result.sends = sends;
  result.takes = takes;
  const Stream stream = {.peer = peer};
  ChannelRings& rings = addresses.rings();
  const int ring = rings.sizes().ring(RingKind::exchange, 0);
  if (sends) {
    SendEnd& end = rings.to(peer, ring);
    result.out.ring = SendRing(addresses.place_of(stream, end), end);
  }
  if (takes) {
    ReceiveEnd& end = rings.from(peer, ring);
    result.in.ring = ReceiveRing(addresses.place_of(stream, end), end);
  }
  if (result.remote) return result;
  set_lines(result, addresses.offer_line(peer, peer, kExchangeOffersBegin),
            addresses.offer_line(peer, rank, kExchangeOffersBegin));
  return result;
}

}  // namespace

void install_exchange(InstalledPlan& installed, const StreamAddresses& addresses) {
  const Plan& plan = installed.plan;
  const PairwiseExchange& exchange = plan.exchange;
  InstalledExchange& done = installed.exchange;
  std::vector<std::uint32_t> index(static_cast<std::size_t>(plan.ranks), 0);
  for (int peer = 0; peer < plan.ranks; ++peer) {
    const bool sends = exchange.sends(plan.rank) && exchange.takes(peer);
    const bool takes = exchange.takes(plan.rank) && exchange.sends(peer);
    if (peer == plan.rank || (!sends && !takes)) continue;
    index[static_cast<std::size_t>(peer)] = static_cast<std::uint32_t>(done.peers.size());
    done.peers.push_back(exchange_peer(plan, addresses, peer, sends, takes));
    installed.remote = installed.remote || done.peers.back().remote;
  }
  for (int transfer = 0; transfer < exchange.order->transfers(); ++transfer) {
    const int receiver = exchange.order->receiver(plan.rank, transfer);
    const int sender = exchange.order->sender(plan.rank, transfer);
    if (exchange.sends(plan.rank) && exchange.takes(receiver)) {
      done.sends_in.push_back(index[static_cast<std::size_t>(receiver)]);
    }
    if (exchange.takes(plan.rank) && exchange.sends(sender)) {
      done.takes_in.push_back(index[static_cast<std::size_t>(sender)]);
    }
  }
  bool readable = true;
  for (const std::uint32_t to : done.sends_in) {
    const ExchangePeer& peer = done.peers[to];
    if (!peer.remote) readable = readable && addresses.transport().readable(peer.context_rank);
  }
  installed.private_reads.are_offered = readable && !done.sends_in.empty();
}

}  // namespace torii
