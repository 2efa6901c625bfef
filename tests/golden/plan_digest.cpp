// SPDX-License-Identifier: Apache-2.0
// Writes plans field by field. Structured bindings name all fields of a struct, so a new field does not compile until
// it is written here.
#include "tests/golden/plan_digest.hpp"

#include <xxhash.h>

#include <cstdlib>
#include <map>

#include "collectives/proof/verify.hpp"

namespace torii::golden {
namespace {

/// Digests of the orders that were met, since all plans of a set refer to one order.
using OrderDigests = std::map<const TransferOrder*, std::uint64_t>;

std::int64_t number_of(Dealing dealing) {
  switch (dealing) {
    case Dealing::block:
      return 0;
    case Dealing::block_cyclic:
      return 1;
  }
  std::abort();
}

std::int64_t number_of(Delivery delivery) {
  switch (delivery) {
    case Delivery::through_slots:
      return 0;
    case Delivery::read_in_place:
      return 1;
    case Delivery::write_in_place:
      return 2;
    case Delivery::local:
      return 3;
  }
  std::abort();
}

std::int64_t number_of(Fold fold) {
  switch (fold) {
    case Fold::left:
      return 0;
    case Fold::canonical:
      return 1;
  }
  std::abort();
}

void append(const Ties& ties, Bytes& bytes) {
  for (const std::int8_t way : ties) bytes.number(way);
}

void append(const Walk& walk, Bytes& bytes) {
  const auto& [first, step, count, modulus] = walk;
  bytes.number(first);
  bytes.number(step);
  bytes.number(count);
  bytes.number(modulus);
}

void append(const StreamEnd& end, Bytes& bytes) {
  const auto& [stream, position] = end;
  bytes.number(stream);
  bytes.number(position);
}

void append(const Stream& one, Bytes& bytes) {
  const auto& [peer, tag, messages_per_segment, bundle, delivery, operand, operand_step, wide, is_awaited, ties] = one;
  bytes.number(peer);
  bytes.number(tag);
  bytes.number(messages_per_segment);
  bytes.number(bundle);
  bytes.number(number_of(delivery));
  bytes.number(wide ? 1 : 0);
  bytes.number(is_awaited ? 1 : 0);
  append(ties, bytes);
  if (operand != 0) bytes.number(operand);  // only plans over leaves have several operands
  if (operand_step != 0) bytes.number(operand_step);
}

void append(const Flow& flow, Bytes& bytes);
void append(const Lane& lane, Bytes& bytes);

template <typename Element>
void append(const std::vector<Element>& elements, Bytes& bytes) {
  bytes.number(static_cast<std::int64_t>(elements.size()));
  for (const Element& element : elements) append(element, bytes);
}

void append(const Flow& flow, Bytes& bytes) {
  const auto& [walk, sources, keep, targets, fold, label] = flow;
  append(walk, bytes);
  append(sources, bytes);
  bytes.number(keep ? 1 : 0);
  append(targets, bytes);
  bytes.number(number_of(fold));
  bytes.text(label);
}

void append(const Lane& lane, Bytes& bytes) {
  const auto& [flows, window] = lane;
  append(flows, bytes);
  bytes.number(window);
}

std::uint64_t digest_of_order(const TransferOrder& order, int ranks) {
  Bytes bytes;
  bytes.text(order.name());
  bytes.number(order.transfers());
  for (int rank = 0; rank < ranks; ++rank) {
    for (int entry = 0; entry < order.transfers(); ++entry) {
      bytes.number(order.receiver(rank, entry));
      bytes.number(order.sender(rank, entry));
      append(order.ties(rank, entry), bytes);
    }
  }
  return bytes.digest();
}

void append(const PairwiseExchange& exchange, int ranks, OrderDigests& orders, Bytes& bytes) {
  const auto& [order, in_flight, from, to, lends] = exchange;
  bytes.number(order != nullptr ? 1 : 0);
  if (order != nullptr) {
    const auto [at, is_new] = orders.try_emplace(order.get(), 0);
    if (is_new) at->second = digest_of_order(*order, ranks);
    bytes.number(static_cast<std::int64_t>(at->second));
  }
  bytes.number(in_flight);
  bytes.number(from);
  bytes.number(to);
  bytes.number(lends ? 1 : 0);
}

void append(const Plan& plan, OrderDigests& orders, Bytes& bytes) {
  const auto& [rank, ranks, dealing, blocks, slots, in_streams_max, out_streams_max, bundle_max, lanes, in, out,
               exchange] = plan;
  bytes.number(rank);
  bytes.number(ranks);
  bytes.number(number_of(dealing));
  bytes.number(blocks);
  bytes.number(slots);
  bytes.number(in_streams_max);
  bytes.number(out_streams_max);
  bytes.number(bundle_max);
  append(lanes, bytes);
  append(in, bytes);
  append(out, bytes);
  append(exchange, ranks, orders, bytes);
}

void append_all(std::span<const Plan> plans, Bytes& bytes) {
  OrderDigests orders;
  bytes.number(static_cast<std::int64_t>(plans.size()));
  for (const Plan& plan : plans) append(plan, orders, bytes);
}

}  // namespace

void Bytes::number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  char little_endian[8];
  for (int i = 0; i < 8; ++i) little_endian[i] = static_cast<char>((bits >> (8 * i)) & 0xff);
  bytes_.append(little_endian, sizeof(little_endian));
}

void Bytes::text(std::string_view value) {
  number(static_cast<std::int64_t>(value.size()));
  bytes_ += value;
}

std::uint64_t Bytes::digest() const { return XXH3_64bits(bytes_.data(), bytes_.size()); }

void append(const ExpressionPool& pool, ExpressionId id, Bytes& bytes) {
  if (id == kNoExpression) return bytes.number(0);
  const auto& [leaf_rank, left, right, rounded] = pool.node(id);
  if (leaf_rank >= 0) {
    bytes.number(1);
    return bytes.number(leaf_rank);
  }
  bytes.number(2);
  bytes.number(rounded ? 1 : 0);
  append(pool, left, bytes);
  append(pool, right, bytes);
}

std::uint64_t digest_of(std::span<const Plan> plans) {
  Bytes bytes;
  append_all(plans, bytes);
  return bytes.digest();
}

std::uint64_t digest_of(const Algorithm& algorithm, const PlanRequest& request) {
  const std::vector<Plan> plans = plan_all(algorithm, request);
  Bytes bytes;
  append_all(plans, bytes);
  if (algorithm.order == nullptr || !combines(request.collective)) return bytes.digest();
  const int orders = is_prefix(request.collective) ? plans.front().ranks : plans.front().blocks;
  bytes.number(orders);
  for (int block = 0; block < orders; ++block) {
    ExpressionPool pool;
    append(pool, algorithm.order(request, block, pool), bytes);
  }
  return bytes.digest();
}

std::string hexadecimal(std::uint64_t digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(digest >> shift) & 0xf];
  return text;
}

}  // namespace torii::golden
