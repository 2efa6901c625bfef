// SPDX-License-Identifier: Apache-2.0
// How ranks find each other: an all-gather of small blobs, offered by the embedder, by torii-run, by a launcher or a
// file, or by a job of one rank.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/base/settings.hpp"

namespace torii {

/// Used while a context or a team is made, never on the data path. All ranks call all_gather() equally often, in the
/// same order, from one thread each.
class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  virtual int rank() const noexcept = 0;
  virtual int ranks() const noexcept = 0;
  /// Writes the `mine` of every rank to `all`, in rank order. `mine` has the same size on all ranks and `all` holds
  /// ranks() times that. Throws Error: timeout or peer_lost naming the missing rank, mismatch for unequal sizes.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// True when all_gather() fails at once after a rank has ended, and names the same rank on all ranks. A rank that
  /// noticed a death otherwise then calls it once more before it leaves: the others could take its leaving for the
  /// first death.
  virtual bool notices_deaths() const noexcept { return false; }
  /// The number of this host's address from which the other ranks were reached: one to offer them. Empty when the
  /// exchange knows none.
  virtual std::string address() const { return {}; }
  /// True when all_gather() may fail on one rank and succeed on others, as a function of the embedder's does.
  virtual bool may_fail_alone() const noexcept { return false; }
  /// Each rank calls it after the last all_gather() of an agreement that no rank refused: `agreed` when that call told
  /// it that all have agreed, false when the call failed, so that this rank does not know. Returns true on all ranks,
  /// or throws Error on all. Where the exchange cannot tell, it returns `agreed`.
  virtual bool decide(bool agreed) { return agreed; }
  /// The bootstrap behind this one, if this one only adds to it.
  virtual Bootstrap& plain() noexcept { return *this; }
};

/// One value of every rank.
template <class Value>
std::vector<Value> gather_values(Bootstrap& bootstrap, const Value& mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Value> all(static_cast<std::size_t>(bootstrap.ranks()));
  bootstrap.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// One text of every rank; the texts may differ in length.
std::vector<std::string> gather_texts(Bootstrap& bootstrap, std::string_view mine);

/// The embedder's function; the same type as torii_exchange in include/torii/torii.h. Returns 0 on success.
using ExchangeFunction = int (*)(const void* mine, void* all, std::size_t bytes, void* data);

/// Calls it, and checks what can be checked of what it did: a code, an exception, this rank's own part of `all`. Throws
/// Error{transport} that begins with `who`, as in "the exchange function of the embedder".
void call_exchange(ExchangeFunction function, void* data, int rank, std::span<const std::byte> mine,
                   std::span<std::byte> all, std::string_view who);

/// What the embedder offers; without a function join() looks at the environment.
struct JoinOffer {
  ExchangeFunction function = nullptr;
  void* data = nullptr;
  int rank = 0;
  int ranks = 1;
};

/// Chooses, in this order: the offer's function; the socket inherited from torii-run; what join_environment() finds; a
/// job of one rank. Logs the settings' warnings on rank 0. Throws Error{unsupported} when the environment speaks of a
/// launcher with several ranks that offers no exchange: never a silent job of one rank.
std::unique_ptr<Bootstrap> join(const Settings& settings, const JoinOffer& offer = {});

}  // namespace torii
