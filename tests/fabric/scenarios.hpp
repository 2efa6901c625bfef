// SPDX-License-Identifier: Apache-2.0
// What every transport must do, played by all ranks together; the same with ranks as threads and as processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "runtime/fabric/transport.hpp"

namespace torii::tests {

/// One rank's place in a scenario. All offsets are those of kArenaBytes of zeros.
class Stage {
 public:
  Stage(Transport& transport, std::byte* arena, std::uint64_t seed)
      : transport_(transport), arena_(arena), seed_(seed) {}

  Transport& transport() const noexcept { return transport_; }
  int rank() const noexcept { return transport_.rank(); }
  int ranks() const noexcept { return transport_.ranks(); }
  std::byte* at(std::uint64_t offset) const noexcept { return arena_ + offset; }
  std::uint64_t seed() const noexcept { return seed_; }

  /// Moves the transport until `done`. Throws std::runtime_error naming what was waited for after 30 s, or what failed.
  void await(const std::string& what, const std::function<bool()>& done) const;
  /// Returns when all ranks have come, and nothing of this rank is under way any more.
  void meet();
  void expect(Status status, const std::string& what) const;

 private:
  Transport& transport_;
  std::byte* arena_;
  std::uint64_t seed_;
  std::uint64_t meetings_ = 0;
};

using Scenario = void (*)(Stage& stage);

struct NamedScenario {
  std::string name;
  Scenario play;
};

/// What GoogleTest prints of a parameter.
void PrintTo(const NamedScenario& scenario, std::ostream* stream);

/// Those that need nobody to die.
const std::vector<NamedScenario>& scenarios();

// Four of scenarios(), in files of their own: the last rank takes nothing for a while; ranks that sleep are put to, by
// one thread each or two; and a rank to which nothing is put sleeps.
void silent_peer(Stage& stage);
void sleepers(Stage& stage);
void two_sleepers(Stage& stage);
void rest(Stage& stage);

/// The last rank ends its process at once (`die`); the others notice it within five seconds and can still put to each
/// other.
void peer_dies(Stage& stage, const std::function<void()>& die);

}  // namespace torii::tests
