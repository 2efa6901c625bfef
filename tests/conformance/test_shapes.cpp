// SPDX-License-Identifier: Apache-2.0
// Lengths beyond the comfortable, of all collectives: none, one element, and more bytes than 32 bits count; blocks
// farther apart than that; and segments that are too long for an outbox.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr std::size_t kBeyond = 2 * kGiB + 1;

/// The last rank, or 0 where there is no root.
int last_root(torii_collective collective, int ranks) { return has_root(collective) ? ranks - 1 : 0; }

ThreadTeam threads(int ranks, const std::string& more = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=2G\nTIMEOUT=60\n" + more;
  return options;
}

/// Bytes that this machine, or the group of processes that the test is in, can still give.
std::size_t available_bytes() {
  std::size_t bytes = 0;
  std::ifstream machine("/proc/meminfo");
  for (std::string line; std::getline(machine, line);) {
    if (line.starts_with("MemAvailable:")) bytes = std::stoull(line.substr(13)) << 10;
  }
  std::ifstream most("/sys/fs/cgroup/memory.max");
  std::ifstream current("/sys/fs/cgroup/memory.current");
  std::size_t limit = 0;
  std::size_t used = 0;
  if (most >> limit && current >> used) bytes = std::min(bytes, limit > used ? limit - used : 0);
  return bytes;
}

/// Byte i of rank r's vector: a random one that comes again after a prime number of bytes, so that what stands a
/// segment, or a power of two, from its place is seen.
class Pattern {
 public:
  static constexpr int kRanksMost = 64;
  static constexpr std::size_t kPeriod = 100'003;

  /// That of a rank.
  static const Pattern& of(int rank) {
    static const std::vector<Pattern> kAll = [] {
      std::vector<Pattern> all;
      for (int each = 0; each < kRanksMost; ++each) all.push_back(Pattern(each));
      return all;
    }();
    return kAll[static_cast<std::size_t>(rank)];
  }
  explicit Pattern(int rank) : bytes_(kPeriod) {
    std::uint32_t state = static_cast<std::uint32_t>(rank) * 2654435761U + 1;
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
  }
  /// The sum of the patterns of all ranks before `ranks`, at least one.
  static const Pattern& sum_of(int ranks) {
    static const std::vector<Pattern> kSums = [] {
      std::vector<Pattern> sums = {Pattern(0)};
      for (int rank = 1; rank < kRanksMost; ++rank) {
        const Pattern own(rank);
        Pattern sum = sums.back();
        std::transform(own.bytes_.begin(), own.bytes_.end(), sum.bytes_.begin(), sum.bytes_.begin(),
                       [](std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(a + b); });
        sums.push_back(std::move(sum));
      }
      return sums;
    }();
    return kSums[static_cast<std::size_t>(ranks) - 1];
  }
  /// Writes what stands from `first` on.
  void write(std::uint8_t* to, std::size_t count, std::size_t first = 0) const {
    each(count, first, [&](std::size_t done, std::size_t at, std::size_t now) {
      std::memcpy(to + done, bytes_.data() + at, now);
      return true;
    });
  }
  bool is_at(const std::uint8_t* from, std::size_t count, std::size_t first = 0) const {
    return each(count, first, [&](std::size_t done, std::size_t at, std::size_t now) {
      return std::memcmp(from + done, bytes_.data() + at, now) == 0;
    });
  }

 private:
  template <typename Visit>
  static bool each(std::size_t count, std::size_t first, const Visit& visit) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t at = (first + done) % kPeriod;
      const std::size_t now = std::min(kPeriod - at, count - done);
      if (!visit(done, at, now)) return false;
      done += now;
    }
    return true;
  }
  std::vector<std::uint8_t> bytes_;
};

/// Elements of the vectors that a rank needs.
VectorLengths needed_of(torii_collective collective, std::size_t count, int ranks, int rank, int root) {
  VectorLengths lengths = lengths_of(collective, count, ranks, rank);
  if (!has_input(collective, rank, root) || collective == TORII_BROADCAST) lengths.input = 0;
  if (!has_result(collective, rank, root)) lengths.result = 0;
  return lengths;
}

/// Whether the result of a call of blocks of `count` bytes is right.
bool is_right(torii_collective collective, const std::uint8_t* result, std::size_t count, int ranks, int rank,
              int root) {
  if (!has_result(collective, rank, root)) return true;
  const std::size_t first = gives_blocks(collective) ? static_cast<std::size_t>(rank) * count : 0;
  if (combines(collective)) {
    const int operands = collective == TORII_SCAN ? rank + 1 : collective == TORII_EXSCAN ? rank : ranks;
    return Pattern::sum_of(operands).is_at(result, count, first);
  }
  for (int block = 0; block < (gets_blocks(collective) ? ranks : 1); ++block) {
    const Pattern& pattern = Pattern::of(gets_blocks(collective) ? block : root);
    if (!pattern.is_at(result + static_cast<std::size_t>(block) * count, count, first)) return false;
  }
  return true;
}

/// Bytes from malloc that nobody has touched.
std::unique_ptr<std::uint8_t[]> untouched(std::size_t bytes) {
  return std::unique_ptr<std::uint8_t[]>(new std::uint8_t[bytes == 0 ? 1 : bytes]);
}

void check_call(torii_team* team, torii_collective collective, std::size_t count, int root) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  const VectorLengths needed = needed_of(collective, count, ranks, rank, root);
  const auto input = untouched(needed.input);
  const auto result = untouched(needed.result);
  Pattern::of(rank).write(input.get(), needed.input);
  if (collective == TORII_BROADCAST && rank == root) Pattern::of(rank).write(result.get(), count);
  const torii_call call = make_call(collective, input.get(), result.get(), count, TORII_U8, TORII_SUM, root);
  ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_collective_name(collective) << ": " << torii_last_error();
  EXPECT_TRUE(is_right(collective, result.get(), count, ranks, rank, root))
      << torii_collective_name(collective) << " of " << count << ", rank " << rank << " of " << ranks;
}

/// No buffer is looked at where there is nothing, on 64 ranks of a node as on two.
TEST(Shapes, NothingAndOneElement) {
  for (const int ranks : {1, 2, 5, 64}) {
    run_as_threads(threads(ranks), [&](torii_context*, torii_team* team) {
      for (const torii_collective collective : kAllCollectives) {
        const int root = last_root(collective, ranks);
        const torii_call nothing = make_call(collective, nullptr, nullptr, 0, TORII_F16, TORII_SUM, root);
        EXPECT_EQ(torii_run(team, &nothing), TORII_OK)
            << torii_collective_name(collective) << ": " << torii_last_error();
        check_call(team, collective, 1, root);
        EXPECT_EQ(torii_run(team, &nothing), TORII_OK)
            << torii_collective_name(collective) << ": " << torii_last_error();
      }
      const std::vector<std::size_t> none(static_cast<std::size_t>(ranks), 0);
      EXPECT_EQ(torii_alltoallv(team, nullptr, none.data(), nullptr, nullptr, none.data(), nullptr, TORII_U8), TORII_OK)
          << torii_last_error();
      EXPECT_EQ(torii_all_gatherv(team, nullptr, 0, nullptr, none.data(), nullptr, TORII_U8), TORII_OK)
          << torii_last_error();
      EXPECT_EQ(torii_scatterv(team, nullptr, none.data(), nullptr, nullptr, 0, TORII_U8, 0), TORII_OK)
          << torii_last_error();
      EXPECT_EQ(torii_gatherv(team, nullptr, 0, nullptr, none.data(), nullptr, TORII_U8, 0), TORII_OK)
          << torii_last_error();
      EXPECT_EQ(torii_reduce_scatterv(team, nullptr, nullptr, none.data(), TORII_U8, TORII_SUM), TORII_OK)
          << torii_last_error();
    });
  }
}

/// Calls of two ranks whose vector, or block, has 2^31 + 1 bytes: one collective in every fourth short run, all in full
/// ones.
class MoreThan2GiB : public ::testing::TestWithParam<torii_collective> {};

TEST_P(MoreThan2GiB, IsMovedWhole) {
  if (!is_in_share(0, 4)) GTEST_SKIP() << "a quarter of the short runs, and full runs, move so much";
  constexpr int kRanks = 2;
  const torii_collective collective = GetParam();
  const int root = last_root(collective, kRanks);
  std::size_t needed = kGiB;  // what other tests take meanwhile
  for (int rank = 0; rank < kRanks; ++rank) {
    const VectorLengths own = needed_of(collective, kBeyond, kRanks, rank, root);
    needed += own.input + own.result;
  }
  if (available_bytes() < needed) {
    GTEST_SKIP() << torii_collective_name(collective) << " needs " << (needed >> 20) << " MiB, "
                 << (available_bytes() >> 20) << " are available";
  }
  // A busy machine takes its time to fill so much.
  run_as_threads(threads(kRanks, "TIMEOUT=300"),
                 [&](torii_context*, torii_team* team) { check_call(team, collective, kBeyond, root); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, MoreThan2GiB,
                         ::testing::ValuesIn(is_full() ? std::vector<torii_collective>(kAllCollectives.begin() + 1,
                                                                                       kAllCollectives.end())
                                                       : std::vector<torii_collective>{TORII_BROADCAST}),
                         [](const auto& test) { return std::string(torii_collective_name(test.param)); });

/// Address space without memory, but for the pages that are touched.
class Sparse {
 public:
  explicit Sparse(std::size_t bytes) : bytes_(bytes) {
    void* const address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = address == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(address);
  }
  ~Sparse() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  std::uint8_t* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::uint8_t* data_;
};

/// Blocks with 4 GiB and more between them.
TEST(Shapes, DisplacementsBeyond4GiB) {
  constexpr int kRanks = 3;
  constexpr std::size_t kDistance = 4 * kGiB + 4099;
  for (const std::size_t block : {std::size_t{5}, std::size_t{100'000}}) {
    run_as_threads(threads(kRanks), [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      const Sparse input(kRanks * kDistance);
      const Sparse result(kRanks * kDistance);
      ASSERT_TRUE(input.data() != nullptr && result.data() != nullptr) << "no address space";
      const std::vector<std::size_t> counts(kRanks, block);
      const std::vector<std::size_t> places = {0, kDistance, 2 * kDistance};
      for (std::size_t peer = 0; peer < kRanks; ++peer) {
        Pattern::of(rank).write(input.data() + places[peer], block, peer * block);
      }
      ASSERT_EQ(torii_alltoallv(team, input.data(), counts.data(), places.data(), result.data(), counts.data(),
                                places.data(), TORII_U8),
                TORII_OK)
          << torii_last_error();
      const std::size_t own = static_cast<std::size_t>(rank) * block;
      for (std::size_t peer = 0; peer < kRanks; ++peer) {
        EXPECT_TRUE(Pattern::of(static_cast<int>(peer)).is_at(result.data() + places[peer], block, own))
            << "alltoallv, rank " << rank << ", from " << peer;
      }
      ASSERT_EQ(torii_all_gatherv(team, input.data() + places[1], block, result.data(), counts.data(), places.data(),
                                  TORII_U8),
                TORII_OK)
          << torii_last_error();
      for (std::size_t peer = 0; peer < kRanks; ++peer) {
        EXPECT_TRUE(Pattern::of(static_cast<int>(peer)).is_at(result.data() + places[peer], block, block))
            << "all_gatherv, rank " << rank << ", from " << peer;
      }
      std::vector<std::uint8_t> got(block);
      ASSERT_EQ(torii_scatterv(team, input.data(), counts.data(), places.data(), got.data(), block, TORII_U8, 2),
                TORII_OK)
          << torii_last_error();
      EXPECT_TRUE(Pattern::of(2).is_at(got.data(), block, own)) << "scatterv, rank " << rank;
      ASSERT_EQ(torii_gatherv(team, got.data(), block, result.data(), counts.data(), places.data(), TORII_U8, 0),
                TORII_OK)
          << torii_last_error();
      for (std::size_t peer = 0; rank == 0 && peer < kRanks; ++peer) {
        EXPECT_TRUE(Pattern::of(2).is_at(result.data() + places[peer], block, peer * block))
            << "gatherv, from " << peer;
      }
    });
  }
}

/// Segments that the user asks for become shorter where they do not fit into an outbox.
TEST(Shapes, LongSegmentsAreMadeToFit) {
  run_as_threads(threads(2, "SEGMENT=16M\nSLOTS=16\nALGORITHM=ring"), [](torii_context*, torii_team* team) {
    std::vector<float> vector(std::size_t{5} << 20);
    for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = static_cast<float>(i % 1000);
    ASSERT_EQ(torii_allreduce(team, vector.data(), vector.data(), vector.size(), TORII_F32, TORII_SUM), TORII_OK)
        << torii_last_error();
    for (std::size_t i = 0; i < vector.size(); ++i) ASSERT_EQ(vector[i], static_cast<float>(2 * (i % 1000))) << i;
  });
}

}  // namespace
}  // namespace torii::tests
