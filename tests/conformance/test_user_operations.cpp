// SPDX-License-Identifier: Apache-2.0
// Operations of a user's: those that do not commute get their operands in the order of ranks, by every call and root;
// whether they commute is a part of the call.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// An upper triangular matrix modulo 2^32. Its 12 bytes divide no segment.
struct Triangle {
  std::uint32_t a, b, c;
  bool operator==(const Triangle&) const = default;
};
/// Associative, and does not commute.
void multiply_triangles(const void* left, const void* right, void* out, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    const Triangle l = static_cast<const Triangle*>(left)[i];
    const Triangle r = static_cast<const Triangle*>(right)[i];
    static_cast<Triangle*>(out)[i] = {l.a * r.a, l.a * r.b + l.b * r.c, l.c * r.c};
  }
}
void add_triangles(const void* left, const void* right, void* out, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    const Triangle l = static_cast<const Triangle*>(left)[i];
    const Triangle r = static_cast<const Triangle*>(right)[i];
    static_cast<Triangle*>(out)[i] = {l.a + r.a, l.b + r.b, l.c + r.c};
  }
}

Triangle triangle_of(int rank, std::size_t index) {
  const auto word = static_cast<std::uint32_t>(index * 7 + static_cast<std::size_t>(rank) * 1013 + 5);
  return {2 * word + 1, word * word, 6 * word + 1};
}
/// Element `index` of the operands of ranks 0 .. last - 1.
Triangle product_of(int last, std::size_t index) {
  Triangle product = triangle_of(0, index);
  for (int rank = 1; rank < last; ++rank) {
    const Triangle next = triangle_of(rank, index);
    multiply_triangles(&product, &next, &product, 1, nullptr);
  }
  return product;
}

enum class Made { run, started, prepared, grouped };

torii_status make_as(Made made, torii_team* team, const torii_call& call) {
  torii_request* request = nullptr;
  torii_status status = TORII_OK;
  switch (made) {
    case Made::run:
      return torii_run(team, &call);
    case Made::started:
      status = torii_start(team, &call, &request);
      return status != TORII_OK ? status : torii_wait(&request);
    case Made::grouped: {
      EXPECT_EQ(torii_group_begin(team), TORII_OK) << torii_last_error();
      std::uint64_t sums[2] = {1, 1};
      for (std::uint64_t& sum : sums) (void)torii_allreduce(team, &sum, &sum, 1, TORII_U64, TORII_SUM);
      (void)torii_run(team, &call);
      return torii_group_end(team);
    }
    default:
      break;
  }
  status = torii_prepare(team, &call, &request);
  if (status == TORII_OK) status = torii_restart(request);
  if (status == TORII_OK) status = torii_wait(&request);
  EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
  return status;
}

/// One call, its vectors and what must come. `count` is that of the whole vector of a reduce_scatter too.
struct Trial {
  torii_collective collective;
  std::size_t count;
  int root = 0;
  bool in_place = false;
  bool is_unequal = false;
  Made made = Made::run;
};

std::string text_of(const Trial& trial, int ranks, int rank) {
  return "collective " + std::to_string(trial.collective) + " of " + std::to_string(trial.count) + ", root " +
         std::to_string(trial.root) + ", in place " + std::to_string(trial.in_place) + ", unequal " +
         std::to_string(trial.is_unequal) + ", made " + std::to_string(static_cast<int>(trial.made)) + ", rank " +
         std::to_string(rank) + " of " + std::to_string(ranks);
}

/// The blocks of a reduce_scatter: equal ones, or some that are longer and some empty.
std::vector<std::size_t> counts_of(const Trial& trial, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> counts(all, std::max<std::size_t>(trial.count / all, 1));
  for (std::size_t i = 0; trial.is_unequal && i + 1 < all; i += 2) {
    counts[i + 1] += counts[i];
    counts[i] = 0;
  }
  return counts;
}

/// True if the call came to an end. One wrong result is reported; all ranks go on, since the others wait for each.
bool run_in_order(torii_team* team, const Trial& trial) {
  const int ranks = torii_team_ranks(team);
  const int rank = torii_team_rank(team);
  const std::vector<std::size_t> counts = counts_of(trial, ranks);
  const bool scatters = trial.collective == TORII_REDUCE_SCATTER;
  const std::size_t length = scatters ? std::accumulate(counts.begin(), counts.end(), std::size_t{0}) : trial.count;
  const std::size_t first =
      scatters ? std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0}) : std::size_t{0};
  const std::size_t results = scatters ? counts[static_cast<std::size_t>(rank)] : length;
  std::vector<Triangle> input(length);
  for (std::size_t i = 0; i < length; ++i) input[i] = triangle_of(rank, i);
  std::vector<Triangle> separate(results, Triangle{7, 7, 7});
  Triangle* const result = trial.in_place ? input.data() + first : separate.data();
  torii_call call = make_call(trial.collective, input.data(), result, scatters ? counts[0] : length, TORII_U8,
                              TORII_USER, trial.root);
  call.user = multiply_triangles;
  call.user_bytes = sizeof(Triangle);
  if (trial.is_unequal) {
    call.unequal = 1;
    call.input_counts = counts.data();
  }
  const torii_status status = make_as(trial.made, team, call);
  EXPECT_EQ(status, TORII_OK) << text_of(trial, ranks, rank) << ": " << torii_last_error();
  if (status != TORII_OK) return false;
  int operands = ranks;
  if (trial.collective == TORII_SCAN) operands = rank + 1;
  if (trial.collective == TORII_EXSCAN) operands = rank;
  if (operands == 0 || (trial.collective == TORII_REDUCE && rank != trial.root)) return true;
  for (std::size_t i = 0; i < results; ++i) {
    if (result[i] == product_of(operands, first + i) || ::testing::Test::HasFailure()) continue;
    ADD_FAILURE() << text_of(trial, ranks, rank) << ": element " << i << " has another order";
  }
  return true;
}

/// Every collective that combines, every root, in place and not, and every way to make a call.
void check_orders(torii_team* team, const std::vector<std::size_t>& counts) {
  for (const std::size_t count : counts) {
    for (const bool in_place : {false, true}) {
      for (const Made made : {Made::run, Made::started, Made::prepared, Made::grouped}) {
        // Long vectors choose their algorithms as blocking calls do.
        if (made != Made::run && count > 5000) continue;
        bool has_run = true;
        for (int root = 0; root < torii_team_ranks(team); ++root) {
          has_run = run_in_order(team, {TORII_REDUCE, count, root, in_place, false, made}) && has_run;
        }
        for (const torii_collective collective : {TORII_ALLREDUCE, TORII_SCAN, TORII_EXSCAN, TORII_REDUCE_SCATTER}) {
          has_run = run_in_order(team, {collective, count, 0, in_place, false, made}) && has_run;
        }
        has_run = run_in_order(team, {TORII_REDUCE_SCATTER, count, 0, in_place, true, made}) && has_run;
        if (!has_run) return;
      }
    }
  }
}

ThreadTeam threads_of(int ranks, const std::string& algorithm = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=20\nWAIT=yield";
  options.algorithm = algorithm;
  return options;
}

TEST(UserOperations, ThatDoNotCommuteKeepTheOrderOfRanks) {
  for (const int ranks : {2, 3, 5}) {
    run_as_threads(threads_of(ranks), [](torii_context*, torii_team* team) {
      check_orders(team, {1, 100, 5000, 60000});
    });
    if (HasFailure()) return;
  }
}

/// Also on other topologies, where other algorithms serve other calls.
TEST(UserOperations, KeepTheOrderOnATorus) {
  ThreadTeam options = threads_of(6);
  options.topology = "torus:3x2";
  run_as_threads(options, [](torii_context*, torii_team* team) { check_orders(team, {1, 100, 60000}); });
}

#ifdef TORII_TEST_LIBFABRIC
TEST(UserOperations, KeepTheOrderBetweenNodes) {
  ThreadTeam options = threads_of(5);
  options.settings += "\nENGINES=2";
  options.nodes = {0, 1, 0, 2, 1};
  run_as_threads(options, [](torii_context*, torii_team* team) { check_orders(team, {1, 5000}); });
}
#endif

/// The call of an older program ends before the field.
TEST(UserOperations, OfOlderProgramsKeepTheOrder) {
  run_as_threads(threads_of(2), [](torii_context*, torii_team* team) {
    const Triangle input = triangle_of(torii_team_rank(team), 0);
    Triangle result = {};
    torii_call call = make_call(TORII_REDUCE, &input, &result, 1, TORII_U8, TORII_USER, 1);
    call.user = multiply_triangles;
    call.user_bytes = sizeof(Triangle);
    call.size = offsetof(torii_call, commutes);
    call.commutes = 1;
    ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    if (torii_team_rank(team) == 1) {
      EXPECT_EQ(result, product_of(2, 0));
    }
  });
}

/// A forced algorithm that has another order is refused, unless the call says that its operation commutes.
TEST(UserOperations, ThatCommuteRunByEveryAlgorithm) {
  run_as_threads(threads_of(4, "ring"), [](torii_context*, torii_team* team) {
    constexpr std::size_t kCount = 1000;
    std::vector<Triangle> input(kCount);
    for (std::size_t i = 0; i < kCount; ++i) input[i] = triangle_of(torii_team_rank(team), i);
    std::vector<Triangle> result(kCount);
    torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), kCount, TORII_U8, TORII_USER);
    call.user = add_triangles;
    call.user_bytes = sizeof(Triangle);
    for (const int commutes : {0, -1, 0, 1}) {
      call.commutes = commutes;
      const torii_status status = torii_run(team, &call);
      const std::string text = torii_last_error();
      if (commutes == 0) {
        EXPECT_EQ(status, TORII_UNSUPPORTED);
        EXPECT_NE(text.find("ring cannot serve this call"), std::string::npos) << text;
        EXPECT_NE(text.find("an operation that does not commute runs at canonical"), std::string::npos) << text;
        continue;
      }
      ASSERT_EQ(status, TORII_OK) << text;
      Triangle sum = triangle_of(0, 3);
      for (int rank = 1; rank < 4; ++rank) {
        const Triangle next = triangle_of(rank, 3);
        add_triangles(&sum, &next, &sum, 1, nullptr);
      }
      EXPECT_EQ(result[3], sum);
      EXPECT_EQ(algorithm_of(team, call), "ring");
    }
    EXPECT_TRUE(run_in_order(team, {TORII_SCAN, kCount})) << "every algorithm scans in the order of ranks";
    call.op = TORII_SUM;
    call.type = TORII_U8;
    call.commutes = 0;
    EXPECT_EQ(torii_run(team, &call), TORII_OK) << "of other operations nobody asks: " << torii_last_error();
  });
}

/// Whether it commutes is compared between ranks, also where the plan is the same one.
TEST(UserOperations, MustCommuteOnAllRanksOrOnNone) {
  for (const char* const determinism : {"run", "canonical"}) {
    for (const torii_collective collective : {TORII_ALLREDUCE, TORII_REDUCE_SCATTER}) {
      for (const Made made : {Made::run, Made::started, Made::prepared}) {
        ThreadTeam options = threads_of(3);
        options.determinism = determinism;
        run_as_threads(options, [&](torii_context*, torii_team* team) {
          std::vector<Triangle> input(3, triangle_of(torii_team_rank(team), 0));
          std::vector<Triangle> result(3);
          torii_call call = make_call(collective, input.data(), result.data(), 1, TORII_U8, TORII_USER);
          call.user = add_triangles;
          call.user_bytes = sizeof(Triangle);
          call.commutes = torii_team_rank(team) == 1 ? 1 : 0;
          const torii_status status = make_as(made, team, call);
          const std::string text = torii_last_error();
          EXPECT_EQ(status, TORII_MISMATCH) << text;
          EXPECT_NE(text.find("user type, op user that commutes"), std::string::npos) << text;
          EXPECT_NE(text.find("user type, op user that does not commute"), std::string::npos) << text;
        });
      }
    }
  }
}

/// Elements of another length are another call, whose text has no length.
TEST(UserOperations, OfOtherElementsAreNamed) {
  run_as_threads(threads_of(2), [](torii_context*, torii_team* team) {
    std::vector<std::uint64_t> vector(4, 1);
    torii_call call = make_call(TORII_ALLREDUCE, vector.data(), vector.data(), 1, TORII_U8, TORII_USER);
    call.user = [](const void*, const void*, void*, std::size_t, void*) {};
    call.user_bytes = torii_team_rank(team) == 0 ? 8 : 16;
    EXPECT_EQ(torii_run(team, &call), TORII_MISMATCH);
    const std::string text = torii_last_error();
    EXPECT_NE(
        text.find("rank 1 calls allreduce of 1 x user type, op user that does not commute, with other user_bytes"),
        std::string::npos)
        << text;
  });
}

}  // namespace
}  // namespace torii::tests
