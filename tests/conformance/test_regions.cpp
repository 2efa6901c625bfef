// SPDX-License-Identifier: Apache-2.0
// Registered memory through the public interface: results in place equal those through slots, bad arguments are named,
// and memory outlives its context.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <torii/torii.hpp>
#include <vector>

#include "tests/conformance/combine.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kPage = 4096;

bool says(const char* words) { return std::string(torii_last_error()).find(words) != std::string::npos; }

/// Private anonymous pages, which nothing else stands on.
class OwnPages {
 public:
  explicit OwnPages(std::size_t bytes)
      : bytes_((bytes + 2 * kPage - 1) / kPage * kPage),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~OwnPages() { munmap(data_, bytes_); }
  OwnPages(const OwnPages&) = delete;
  OwnPages& operator=(const OwnPages&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

Context alone() {
  torii_context_options options = {};
  options.size = sizeof(options);
  options.settings = "ARENA=256M";
  return Context(&options);
}

TEST(Regions, BadArgumentsAreNamed) {
  const Context context = alone();
  torii_context* const handle = context.handle();
  const OwnPages pages(kPage);
  torii_region* region = nullptr;
  EXPECT_EQ(torii_register(nullptr, pages.data(), 1, 0, &region), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_register(handle, pages.data(), 1, 0, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_register(handle, pages.data(), 1, 6, &region), TORII_INVALID_ARGUMENT);
  EXPECT_TRUE(says("flags is 6")) << torii_last_error();
  for (const unsigned flags : {0u, static_cast<unsigned>(TORII_REGISTER_ADOPT)}) {
    EXPECT_EQ(torii_register(handle, nullptr, 1, flags, &region), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_register(handle, pages.data(), 0, flags, &region), TORII_INVALID_ARGUMENT);
    EXPECT_TRUE(says("cannot register 0 bytes")) << torii_last_error();
    EXPECT_EQ(torii_register(handle, pages.data(), SIZE_MAX, flags, &region), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(region, nullptr);
  }
  static const int constant = 5;  // in a file's pages
  EXPECT_EQ(torii_register(handle, const_cast<int*>(&constant), sizeof(constant), TORII_REGISTER_ADOPT, &region),
            TORII_UNSUPPORTED);
  EXPECT_EQ(region, nullptr);
  EXPECT_EQ(torii_deregister(nullptr, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_deregister(handle, nullptr), TORII_OK);
  ASSERT_EQ(torii_register(handle, pages.data(), 1, TORII_REGISTER_ADOPT, &region), TORII_OK) << torii_last_error();
  EXPECT_EQ(torii_deregister(handle, region), TORII_OK) << torii_last_error();
  EXPECT_EQ(torii_deregister(handle, region), TORII_NOT_REGISTERED) << "a second time";
  EXPECT_TRUE(says("torii_register")) << torii_last_error();
}

TEST(Regions, PlainAndAllocatedMemoryIsAccepted) {
  const Context context = alone();
  static const int constant = 5;
  torii_region* region = nullptr;
  ASSERT_EQ(torii_register(context.handle(), const_cast<int*>(&constant), sizeof(constant), 0, &region), TORII_OK);
  EXPECT_EQ(torii_deregister(context.handle(), region), TORII_OK) << torii_last_error();
  const Buffer<int> buffer = context.allocate<int>(100);
  buffer.span()[3] = 9;
  { const Region adopted = context.adopt(buffer.span()); }
  EXPECT_EQ(buffer.span()[3], 9);
}

TEST(Regions, MemoryOutlivesTheContext) {
  const OwnPages pages(3 * kPage);
  std::memset(pages.data(), 7, 3 * kPage);
  {
    const Context context = alone();
    torii_region* region = nullptr;
    ASSERT_EQ(torii_register(context.handle(), pages.data() + 5, kPage, TORII_REGISTER_ADOPT, &region), TORII_OK);
    pages.data()[6] = std::byte{8};
  }
  EXPECT_EQ(pages.data()[5], std::byte{7});
  EXPECT_EQ(pages.data()[6], std::byte{8});
}

TEST(Regions, AForkedChildIsRefused) {
  const Context context = alone();
  const OwnPages pages(kPage);
  torii_region* region = nullptr;
  ASSERT_EQ(torii_register(context.handle(), pages.data(), 1, TORII_REGISTER_ADOPT, &region), TORII_OK);
  const pid_t child = fork();
  if (child == 0) {
    torii_region* other = nullptr;
    const bool refused = torii_register(context.handle(), pages.data(), 1, 0, &other) == TORII_INVALID_ARGUMENT &&
                         torii_deregister(context.handle(), region) == TORII_INVALID_ARGUMENT && says("forked");
    _exit(refused ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(torii_deregister(context.handle(), region), TORII_OK) << torii_last_error();
}

/// Every collective, on buffers of which some ranks have adopted the one, some the other, some both.
TEST(Regions, ResultsAreTheSameWhoeverAdopts) {
  constexpr std::size_t kCount = 40'000;
  for (const char* algorithm : {"auto", "trinaryx3", "ring", "rabenseifner"}) {
    ThreadTeam options;
    options.ranks = 4;
    options.topology = "torus:2x2";
    options.algorithm = algorithm;
    options.segment_bytes = 16384;
    options.settings = "ARENA=256M\nTIMEOUT=30";
    run_as_threads(options, [](torii_context* context, torii_team* team) {
      const int rank = torii_team_rank(team);
      const OwnPages input(4 * kCount * sizeof(float));
      const OwnPages result(4 * kCount * sizeof(float));
      std::vector<std::byte> before;
      for (const int adopted : {0, 3, 5, 10, 15}) {  // bits: the input of even and odd ranks, the result of those
        const auto adopt = [&](bool wanted, const OwnPages& pages) -> torii_region* {
          torii_region* region = nullptr;
          if (!wanted) return nullptr;
          EXPECT_EQ(
              torii_register(context, pages.data() + 64, 4 * kCount * sizeof(float), TORII_REGISTER_ADOPT, &region),
              TORII_OK)
              << torii_last_error();
          return region;
        };
        torii_region* const first = adopt((adopted >> (rank & 1) & 1) != 0, input);
        torii_region* const second = adopt((adopted >> (2 + (rank & 1)) & 1) != 0, result);
        std::vector<std::byte> all;
        for (const torii_collective collective :
             {TORII_ALLREDUCE, TORII_BROADCAST, TORII_REDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER}) {
          const std::size_t elements = has_blocks(collective) ? 4 * kCount : kCount;
          fill_operand(Type::f32, 7, rank, 0, elements, input.data() + 64);
          std::memcpy(result.data() + 64, input.data() + 64, elements * sizeof(float));
          const torii_call call =
              make_call(collective, input.data() + 64, result.data() + 64, kCount, TORII_F32, TORII_SUM, 1);
          if (!is_served(team, call)) continue;
          ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
          if (!has_result(collective, rank, 1)) continue;
          const std::size_t bytes = lengths_of(collective, kCount, 4, rank).result * sizeof(float);
          all.insert(all.end(), result.data() + 64, result.data() + 64 + bytes);
        }
        ASSERT_FALSE(all.empty());
        if (before.empty()) before = all;
        EXPECT_TRUE(before == all) << "adopted " << adopted << ", rank " << rank;
        EXPECT_EQ(torii_deregister(context, first), TORII_OK) << torii_last_error();
        EXPECT_EQ(torii_deregister(context, second), TORII_OK) << torii_last_error();
      }
    });
  }
}

/// Calls on adopted memory go on while another thread of each rank registers and deregisters other memory.
TEST(Regions, OthersMayRegisterDuringACall) {
  ThreadTeam options;
  options.ranks = 2;
  options.settings = "ARENA=256M\nTIMEOUT=30";
  run_as_threads(options, [](torii_context* context, torii_team* team) {
    constexpr std::size_t kCount = 100'000;
    const OwnPages data(kCount * sizeof(std::int32_t));
    const OwnPages other(64 * kPage);
    torii_region* region = nullptr;
    ASSERT_EQ(torii_register(context, data.data(), kCount * sizeof(std::int32_t), TORII_REGISTER_ADOPT, &region),
              TORII_OK);
    std::atomic<bool> stop = false;
    std::thread changing([&] {
      for (std::size_t round = 0; !stop.load(); ++round) {
        torii_region* mine = nullptr;
        EXPECT_EQ(torii_register(context, other.data() + round % 60 * kPage, 3 * kPage, TORII_REGISTER_ADOPT, &mine),
                  TORII_OK)
            << torii_last_error();
        EXPECT_EQ(torii_deregister(context, mine), TORII_OK) << torii_last_error();
      }
    });
    auto* const values = reinterpret_cast<std::int32_t*>(data.data());
    for (int call = 0; call < 100; ++call) {
      for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<std::int32_t>(i) + call;
      EXPECT_EQ(torii_allreduce(team, values, values, kCount, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < kCount; ++i) wrong += values[i] != 2 * (static_cast<std::int32_t>(i) + call);
      EXPECT_EQ(wrong, 0u) << "call " << call;
    }
    stop = true;
    changing.join();
    EXPECT_EQ(torii_deregister(context, region), TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
