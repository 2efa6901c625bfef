// SPDX-License-Identifier: Apache-2.0
// How ranks find each other: an all-gather of small values. The embedder, torii-run, a launcher or a file provides it,
// or the job has one rank.
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

/// Used while a context or a team is made, never on the data path. All ranks make the same all_gather() calls in the
/// same order, each from one thread.
class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  virtual int rank() const noexcept = 0;
  virtual int ranks() const noexcept = 0;
  /// Writes the `mine` of every rank to `all`, in rank order. `mine` has the same size on all ranks and `all` has
  /// ranks() times that size. Throws Error: timeout or peer_lost naming the missing rank, mismatch for unequal sizes.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Whether all_gather() fails at once after a rank has ended, and names the same rank on all ranks. If so, a rank
  /// that noticed a death in another way calls it once more before it leaves. Otherwise the others could report the
  /// leaving rank as the first death.
  virtual bool notices_deaths() const noexcept { return false; }
  /// Every rank calls this before the all-gathers of a new context or team. Ranks count these calls: after a failure,
  /// and on a rank that is late, messages of different ones are kept apart.
  virtual void begin() noexcept {}
  /// The address of this host that the other ranks can reach, without a port; empty if unknown.
  virtual std::string address() const { return {}; }
  /// Whether all_gather() may fail on one rank and succeed on others, like a function of the embedder.
  virtual bool may_fail_alone() const noexcept { return false; }
  /// Each rank calls this after the last all_gather() of an agreement that no rank refused. `agreed` is true if that
  /// call succeeded, false if it failed and this rank does not know the outcome. Returns true on all ranks, or throws
  /// Error on all. A bootstrap that cannot find out returns `agreed`.
  virtual bool decide(bool agreed) { return agreed; }
  /// The bootstrap behind this one, if this one only adds to it.
  virtual Bootstrap& plain() noexcept { return *this; }

 protected:
  /// Throws Error{internal} unless `all_bytes` is ranks() times `mine_bytes`.
  void check_sizes(std::size_t mine_bytes, std::size_t all_bytes) const;
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

/// Calls the function and checks the code, exceptions, and this rank's own part of `all`. Throws Error{transport} that
/// begins with `who`, such as "the exchange function of the embedder".
void call_exchange(ExchangeFunction function, void* data, int rank, std::span<const std::byte> mine,
                   std::span<std::byte> all, std::string_view who);

/// The embedder's way to join; without a function join() searches the environment, though not for the numbers if
/// `ranks` is above 0.
struct JoinExchange {
  ExchangeFunction function = nullptr;
  void* data = nullptr;
  int rank = 0;
  int ranks = 0;
};

/// Joins by the first of these: the embedder's function; the embedder's numbers, at the meeting place that the
/// environment names; the socket inherited from torii-run; join_environment(). Otherwise makes a job of one rank. Logs
/// the settings' warnings on rank 0. Throws Error{unsupported} if a launcher has started several ranks and offers no
/// way to join: never silently makes a job of one rank.
std::unique_ptr<Bootstrap> join(const Settings& settings, const JoinExchange& given = {});

}  // namespace torii
