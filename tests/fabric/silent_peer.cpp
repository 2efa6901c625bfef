// SPDX-License-Identifier: Apache-2.0
// The scenario of a rank that takes nothing for a while, and of others that go on.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "runtime/fabric/put_owner.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/places.hpp"
#include "tests/fabric/scenarios.hpp"
#include "tests/fabric/transports.hpp"

namespace torii::tests {
namespace {

constexpr int kToSilent = 1500;
constexpr std::size_t kLongBytes = 16384;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kSilentNs = 2'000'000'000;
#else
constexpr std::int64_t kSilentNs = 1'000'000'000;
#endif
/// Devices of software on busy CPUs may repeat a packet after 1 or 2 s, whoever is silent.
std::int64_t silent_ns() { return rdma_address() != nullptr ? 4'000'000'000 : kSilentNs; }

/// Whether put number i is in one line with its signal: every fourth one of each engine.
bool is_short(int i, int engines) { return i / engines % 4 == 0; }

std::uint64_t line_to_silent(int sender, int i) {
  return of_rank(kSlots, sender) + static_cast<std::uint64_t>(i) * kLineBytes;
}

/// More than an engine has operations for, and more than sockets hold. With up to 4 engines each of them has more
/// notices than the 128 receives that ofi_rxm posts for a connection.
void put_much(Stage& stage, int peer, int first, int count, const PutOwner& owner) {
  const int engines = stage.transport().capabilities().engines;
  std::byte* const source = stage.at(of_rank(kSources, stage.rank()));
  fill(source, kLongBytes, stage.seed() + static_cast<std::uint64_t>(stage.rank()));
  for (int i = first; i < first + count; ++i) {
    Put put;
    put.peer = peer;
    put.engine = i % engines;
    put.source = source;
    put.signal_offset = line_to_silent(stage.rank(), i);
    put.bytes = is_short(i, engines) ? kInlineBytes : kLongBytes;
    put.target_offset =
        is_short(i, engines) ? put.signal_offset + sizeof(put.signal) : of_rank(kLandings, stage.rank());
    put.signal = stage.seed() | 1;
    put.owner = owner.count();
    stage.expect(stage.transport().put(put), "a put to a silent rank");
  }
}

/// All that put_much() of that rank has put.
void take_much(Stage& stage, int sender) {
  const int engines = stage.transport().capabilities().engines;
  const std::uint64_t key = stage.seed() + static_cast<std::uint64_t>(sender);
  for (int i = 0; i < kToSilent; ++i) {
    std::byte* const line = stage.at(line_to_silent(sender, i));
    stage.await("all that was put while it was silent", [&] { return load_word(line) == (stage.seed() | 1); });
    if (is_short(i, engines)) check(line + sizeof(std::uint64_t), kInlineBytes, key, "a line put to a silent rank");
  }
  check(stage.at(of_rank(kLandings, sender)), kLongBytes, key, "what was put to a silent rank");
}

/// A message to the peer and one from it, whose puts are then done.
void exchange_line(Stage& stage, int peer, std::uint64_t number, PutOwner& owner) {
  constexpr std::size_t kBytes = 48;
  // Two in turn: the peer puts the next one before this rank has looked at the last.
  const auto line = [=](int of) { return of_rank(kSlots, of) + kOfRank / 2 + number % 2 * kLineBytes; };
  std::byte* const source = stage.at(of_rank(kSources, peer));
  fill(source, kBytes, number);
  Put put;
  put.peer = peer;
  put.engine = static_cast<int>(number % static_cast<std::uint64_t>(stage.transport().capabilities().engines));
  put.source = source;
  put.bytes = kBytes;
  put.signal_offset = line(stage.rank());
  put.target_offset = put.signal_offset + sizeof(std::uint64_t);
  put.signal = number;
  put.owner = owner.count();
  stage.expect(stage.transport().put(put), "a line");
  stage.await("a line", [&] { return load_word(stage.at(line(peer))) == number; });
  check(stage.at(line(peer) + sizeof(std::uint64_t)), kBytes, number, "a line");
  stage.await("its own puts", [&] { return owner.drained(); });
}

}  // namespace

/// The last rank calls nothing for a while. Others have much under way to it and ask whether it lives, and yet what
/// they say to each other takes no longer than always; an owner is drained when its own puts are done.
void silent_peer(Stage& stage) {
  const int silent = stage.ranks() - 1;
  const std::int64_t silence_ns = silent_ns();
  stage.meet();
  if (stage.rank() == silent) {
    const timespec nap = {silence_ns / 1'000'000'000, silence_ns % 1'000'000'000};
    nanosleep(&nap, nullptr);
    for (int peer = 0; peer < silent; ++peer) take_much(stage, peer);
    return;
  }
  PutOwner much;
  PutOwner little;
  const std::int64_t begun_ns = now_ns();
  // Whose owner goes before they are done: a call that was abandoned.
  put_much(stage, silent, 0, kToSilent / 4, PutOwner());
  put_much(stage, silent, kToSilent / 4, kToSilent - kToSilent / 4, much);
  std::int64_t longest_ns = 0;
  std::int64_t before_ns = begun_ns;
  for (std::uint64_t number = 1; number <= kToSilent; ++number) {
    exchange_line(stage, 1 - stage.rank(), number, little);
    if (!stage.transport().alive(silent)) throw std::runtime_error("a silent rank is taken for dead");
    const std::int64_t now = now_ns();
    if (before_ns - begun_ns < silence_ns) longest_ns = std::max(longest_ns, now - before_ns);
    before_ns = now;
  }
  if (longest_ns > silence_ns * 7 / 10) {
    throw std::runtime_error("an exchange took " + std::to_string(longest_ns / 1'000'000) +
                             " ms beside a rank that is silent for " + std::to_string(silence_ns / 1'000'000));
  }
  stage.await("the puts to the silent rank", [&] { return much.drained(); });
}

}  // namespace torii::tests
