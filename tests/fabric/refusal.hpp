// SPDX-License-Identifier: Apache-2.0
// What ranks get when they open a transport with options that cannot be.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/process.hpp"
#include "tests/support/thread_ranks.hpp"

namespace torii::tests {

/// Fails the test if the text lacks the part.
inline void expect_holds(const std::string& text, const std::string& part) {
  EXPECT_TRUE(holds(text, part)) << "'" << text << "' lacks '" << part << "'";
}

/// A megabyte for a rank's engines.
class SmallArena {
 public:
  template <class Options>
  void give_to(Options& options) {
    void* aligned = memory_.data();
    std::size_t room = memory_.size();
    options.arena = static_cast<std::byte*>(std::align(4096, kBytes, aligned, room));
    options.arena_bytes = kBytes;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * kBytes);
};

/// What rank 0 of two gets from a transport made with these options; the test fails when they do not fail alike.
template <class Made, class Options, class... More>
std::string refusal(const std::function<void(int rank, Options& options)>& change, Status status, const More&... more) {
  std::string text;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    SmallArena arena;
    Options options;
    arena.give_to(options);
    options.engines = 1;
    options.source_addresses = {"127.0.0.1"};
    change(bootstrap.rank(), options);
    try {
      const Made made(bootstrap, options, more...);
      ADD_FAILURE() << "rank " << bootstrap.rank() << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status) << error.what();
      if (bootstrap.rank() == 0) text = error.what();
    }
    gather_values(bootstrap, 0);
  });
  return text;
}

/// The refusals that are the same for every transport of engines. `other` is a provider that is not auto.
template <class Made, class Options>
void expect_common_refusals(const std::string& other) {
  using Change = std::function<void(int, Options&)>;
  const auto of = [](const Change& change, Status status) { return refusal<Made, Options>(change, status); };
  expect_holds(of([&](int rank, Options& options) { options.provider = rank == 1 ? other : "auto"; }, Status::mismatch),
               "rank 1 has TORII_PROVIDER '" + other + "', rank 0 'auto'");
  expect_holds(of(
                   [](int rank, Options& options) {
                     if (rank == 1) options.engines = 17;
                   },
                   Status::invalid_argument),
               "rank 1: 17 engines; they must be 1 to 16");
  expect_holds(of([](int rank, Options& options) { options.engines = 1 + rank; }, Status::mismatch),
               "rank 1 has 2 engines");
  expect_holds(of([](int rank, Options& options) { options.arena_bytes = (1 << 19) << rank; }, Status::mismatch),
               "rank 1 has 1 engines and an arena of 1048576 bytes, rank 0 1 and 524288");
  expect_holds(of(
                   [](int rank, Options& options) {
                     if (rank == 1) options.source_addresses = {"lo"};
                   },
                   Status::invalid_argument),
               "'lo' is not an internet address such as");
  expect_holds(of([](int, Options& options) { options.source_addresses = {"203.0.113.77"}; }, Status::invalid_argument),
               "the source address 203.0.113.77 is none of this host's");
}

}  // namespace torii::tests
