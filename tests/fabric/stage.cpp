// SPDX-License-Identifier: Apache-2.0
// How a rank waits for the others in a scenario, never for ever.
#include <sched.h>
#include <time.h>

#include <stdexcept>

#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/scenarios.hpp"

namespace torii::tests {
namespace {

constexpr std::uint64_t kMeetings = 0;  // a word per rank
constexpr std::int64_t kPatienceNs = 30'000'000'000;
constexpr int kPollsMost = 20'000;  // without a nap

}  // namespace

void Stage::await(const std::string& what, const std::function<bool()>& done) const {
  const std::int64_t deadline = now_ns() + kPatienceNs;
  for (int polls = 0; !done(); ++polls) {
    expect(transport_.progress(), "progress while waiting for " + what);
    if (polls % 16 == 15) sched_yield();
    // A scenario that polls for so long waits for a clock; a nap leaves the CPU to other tests.
    const timespec nap = {0, 1'000'000};
    if (polls > kPollsMost && polls % 64 == 0) nanosleep(&nap, nullptr);
    if (polls % 1024 == 1023 && now_ns() > deadline) {
      throw std::runtime_error("rank " + std::to_string(rank()) + " waits in vain for " + what + " (seed " +
                               std::to_string(seed_) + "; " + transport_.failure_text() + ")");
    }
  }
}

void Stage::meet() {
  ++meetings_;
  const auto word = [](int of) { return kMeetings + static_cast<std::uint64_t>(of) * sizeof(std::uint64_t); };
  for (int peer = 0; peer < ranks(); ++peer) {
    expect(transport_.put_word(peer, word(rank()), meetings_), "a word to meet");
  }
  for (int peer = 0; peer < ranks(); ++peer) {
    await("rank " + std::to_string(peer) + " to meet", [&] { return load_word(at(word(peer))) >= meetings_; });
  }
  await("drained", [&] { return transport_.drained(); });
  // Small puts have left their source but may still be with the provider; they go on with the next calls.
  for (int call = 0; call < 64; ++call) expect(transport_.progress(), "progress after meeting");
}

void Stage::expect(Status status, const std::string& what) const {
  if (status == Status::ok) return;
  throw std::runtime_error("rank " + std::to_string(rank()) + ", " + what + ": " + std::string(name(status)) + ": " +
                           transport_.failure_text() + " (seed " + std::to_string(seed_) + ")");
}

}  // namespace torii::tests
