// SPDX-License-Identifier: Apache-2.0
// Somebody who is no rank of the job, and reaches the ports of its engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/test_run.hpp"

namespace torii::tests {

/// The ports on which this process listens at 127.0.0.1.
std::vector<int> listening_ports();

/// Connects to the port and sends garbage: nothing, a few bytes, many, in several connections that end or stay open.
void send_garbage(int port, std::uint64_t seed);

/// Places in every arena that no rank of an attacked job writes to. The last one begins a line whose word the job has
/// set to `kHalfArrived`, as a put does that has arrived in part.
inline constexpr std::uint64_t kCanary = std::uint64_t{28} << 20;
inline constexpr std::size_t kCanaryBytes = std::size_t{1} << 20;
inline constexpr std::uint64_t kHalfLine = std::uint64_t{30} << 20;
inline constexpr std::uint64_t kHalfArrived = ~std::uint64_t{12345};

/// Where the engines of an attacked job are.
struct Exposed {
  std::vector<int> ports;
  std::vector<std::string> texts;  ///< what its ranks have told each other while they joined
};

/// Two ranks exchange puts of all lengths over the transport of this name while `attack` runs in a thread of its own,
/// and find every byte right. Fails the test where a canary has changed. Returns how much the ranks have dropped.
/// `seed` draws the lengths.
std::uint64_t attack_job(const std::string& transport, const Seed& seed,
                         const std::function<void(const Exposed& exposed)>& attack);

}  // namespace torii::tests
