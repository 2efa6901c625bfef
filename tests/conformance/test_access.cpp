// SPDX-License-Identifier: Apache-2.0
// Broadcasts of vectors that only functions of the caller reach, beside ranks whose vectors are plain memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kStride = 3;  ///< every third byte of the memory is one of the vector
constexpr std::byte kHole{0xAA};

std::byte right(std::size_t at, int call) {
  return static_cast<std::byte>(at * 7 + at / 251 + static_cast<std::size_t>(call) * 13);
}

/// A vector with holes, and what has been asked of its functions.
struct Scattered {
  std::vector<std::byte> memory;
  std::size_t bytes;
  std::size_t loaded = 0;
  std::size_t stored = 0;

  explicit Scattered(std::size_t length) : memory(length * kStride, kHole), bytes(length) {}
  void fill(int call) {
    for (std::size_t i = 0; i < bytes; ++i) memory[i * kStride] = right(i, call);
  }
  static void load(void* to, std::size_t offset, std::size_t length, void* data) {
    auto& own = *static_cast<Scattered*>(data);
    ASSERT_LE(offset + length, own.bytes);
    ASSERT_EQ(offset % 64, 0U);
    for (std::size_t i = 0; i < length; ++i) static_cast<std::byte*>(to)[i] = own.memory[(offset + i) * kStride];
    own.loaded += length;
  }
  static void store(const void* from, std::size_t offset, std::size_t length, void* data) {
    auto& own = *static_cast<Scattered*>(data);
    ASSERT_LE(offset + length, own.bytes);
    ASSERT_EQ(offset % 64, 0U);
    for (std::size_t i = 0; i < length; ++i)
      own.memory[(offset + i) * kStride] = static_cast<const std::byte*>(from)[i];
    own.stored += length;
  }
  void expect(int call) const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::byte wanted = i % kStride == 0 ? right(i / kStride, call) : kHole;
      ASSERT_EQ(memory[i], wanted) << "byte " << i << " of " << memory.size();
    }
  }
};

torii_call call_of(Scattered& vector, int root) {
  torii_call call = make_call(TORII_BROADCAST, nullptr, nullptr, vector.bytes, TORII_U8, TORII_SUM, root);
  call.load = Scattered::load;
  call.store = Scattered::store;
  call.access_data = &vector;
  return call;
}

/// One broadcast; rank r has functions where bit r of `scattered` is set, and otherwise plain memory.
void broadcast(torii_context* context, torii_team* team, std::size_t bytes, int root, unsigned scattered, int number) {
  const int rank = torii_team_rank(team);
  if ((scattered >> rank & 1) != 0) {
    Scattered vector(bytes);
    if (rank == root) vector.fill(number);
    const torii_call call = call_of(vector, root);
    ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    vector.expect(number);
    EXPECT_EQ(vector.stored, rank == root ? 0 : bytes);
    EXPECT_GE(vector.loaded, rank == root ? bytes : 0);
    return;
  }
  // Memory that peers can address, and such that they cannot.
  std::vector<std::byte> own(bytes);
  std::byte* memory = own.data();
  void* allocated = nullptr;
  if (number % 2 == 0) {
    ASSERT_EQ(torii_allocate(context, bytes, &allocated), TORII_OK) << torii_last_error();
    memory = static_cast<std::byte*>(allocated);
  }
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = rank == root ? right(i, number) : kHole;
  ASSERT_EQ(torii_broadcast(team, memory, bytes, TORII_U8, root), TORII_OK) << torii_last_error();
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], right(i, number)) << "byte " << i << " of " << bytes;
  ASSERT_EQ(torii_free(context, allocated), TORII_OK);
}

ThreadTeam team_of(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  return options;
}

struct Row {
  const char* algorithm;
  int ranks;
  const char* topology;
};

TEST(Access, EveryAlgorithmMovesVectorsByFunctions) {
  for (const Row& row : {Row{"node", 3, "node"}, Row{"binomial", 5, "node"}, Row{"chain", 3, "node"},
                         Row{"scheduled", 5, "node"}, Row{"trinaryx3", 8, "torus:2x2*2"}}) {
    ThreadTeam options = team_of(row.ranks);
    options.topology = row.topology;
    options.algorithm = row.algorithm;
    options.segment_bytes = 8192;
    SCOPED_TRACE(row.algorithm);
    run_as_threads(options, [&](torii_context* context, torii_team* team) {
      int number = 0;
      // Within the signal's line and beyond, one segment, and many of which the last is short.
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{57}, std::size_t{5000}, std::size_t{100'003}}) {
        for (const unsigned scattered : {~0U, 0b0101'0101U, 0b1010'1010U}) {
          broadcast(context, team, bytes, number % row.ranks, scattered, number);
          if (::testing::Test::HasFatalFailure()) return;
          ++number;
        }
      }
    });
  }
}

/// Messages of up to 8 and 24 bytes stand in cells, others in slots, of the same stream and under the same numbers.
TEST(Access, CellsAndSlotsOfAStreamTakeTurns) {
  for (const int ranks : {2, 3}) {
    ThreadTeam options = team_of(ranks);
    options.algorithm = "node";
    options.segment_bytes = 512;
    run_as_threads(options, [ranks](torii_context* context, torii_team* team) {
      for (int number = 0; number < 600; ++number) {
        const std::size_t bytes = number % 160 < 80 ? 1 + static_cast<std::size_t>(number) % 80 : 8;
        const unsigned scattered = number % 7 < 3 ? 0 : static_cast<unsigned>(number) % (1U << ranks);
        broadcast(context, team, bytes, 0, scattered, number);
        if (::testing::Test::HasFatalFailure()) return;
      }
    });
  }
}

/// Readers of private memory must find the functions' vector by value, in whatever turn of their trials it comes.
TEST(Access, BesideOperandsInPrivateMemory) {
  run_as_threads(team_of(2), [](torii_context* context, torii_team* team) {
    for (int number = 0; number < 16; ++number) {
      broadcast(context, team, 200'001, number / 2 % 2, static_cast<unsigned>(number / 3 % 4), number);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(Access, RequestsMoveThemToo) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    Scattered first(70'001);
    Scattered second(333);
    torii_request* requests[3] = {};
    const torii_call calls[] = {call_of(first, 0), call_of(second, 1)};
    if (rank == 0) first.fill(1);
    if (rank == 1) second.fill(2);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(torii_start(team, &calls[i], &requests[i]), TORII_OK) << torii_last_error();
    for (int i = 1; i >= 0; --i) ASSERT_EQ(torii_wait(&requests[i]), TORII_OK) << torii_last_error();
    first.expect(1);
    second.expect(2);
    ASSERT_EQ(torii_prepare(team, calls, &requests[2]), TORII_OK) << torii_last_error();
    for (int number = 3; number < 6; ++number) {
      if (rank == 0) first.fill(number);
      ASSERT_EQ(torii_restart(requests[2]), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait(&requests[2]), TORII_OK) << torii_last_error();
      first.expect(number);
    }
    ASSERT_EQ(torii_request_free(&requests[2]), TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
