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

#include "tests/conformance/combine.hpp"

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

void fill_triangles(int rank, std::size_t first, std::size_t count, void* out, void*) {
  for (std::size_t i = 0; i < count; ++i) static_cast<Triangle*>(out)[i] = triangle_of(rank, first + i);
}

bool run_in_order(torii_team* team, const Cell& cell) {
  const Inputs inputs = {.fill = fill_triangles, .user = multiply_triangles, .user_bytes = sizeof(Triangle)};
  const torii_status status = run_and_expect(team, cell, inputs);
  EXPECT_EQ(status, TORII_OK) << text_of(cell) << ": " << torii_last_error();
  return status == TORII_OK;
}

/// A reduce_scatter with blocks of which every second is empty and the next one longer: two of `count` elements.
bool run_unequal_in_order(torii_team* team, const Cell& cell) {
  const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
  const auto rank = static_cast<std::size_t>(torii_team_rank(team));
  std::vector<std::size_t> counts(ranks, cell.count);
  for (std::size_t i = 0; i + 1 < ranks; i += 2) counts[i] = 0, counts[i + 1] *= 2;
  const std::size_t first = std::accumulate(counts.begin(), counts.begin() + static_cast<int>(rank), std::size_t{0});
  std::vector<Triangle> input(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  fill_triangles(static_cast<int>(rank), 0, input.size(), input.data(), nullptr);
  std::vector<Triangle> separate(counts[rank], Triangle{7, 7, 7});
  Triangle* const result = cell.in_place ? input.data() + first : separate.data();
  torii_call call = make_call(TORII_REDUCE_SCATTER, input.data(), result, counts[0], TORII_U8, TORII_USER);
  call.user = multiply_triangles;
  call.user_bytes = sizeof(Triangle);
  call.unequal = 1;
  call.input_counts = counts.data();
  const torii_status status = run_as(cell.form, team, call);
  EXPECT_EQ(status, TORII_OK) << text_of(cell) << ", unequal: " << torii_last_error();
  for (std::size_t i = 0; status == TORII_OK && i < counts[rank]; ++i) {
    if (result[i] == product_of(static_cast<int>(ranks), first + i) || ::testing::Test::HasFailure()) continue;
    ADD_FAILURE() << text_of(cell) << ", unequal, rank " << rank << ": element " << i << " has another order";
  }
  return status == TORII_OK;
}

/// Every collective that combines, every root, in place and not, and every way to make a call. `counts` are those of
/// whole vectors.
void check_orders(torii_team* team, const std::vector<std::size_t>& counts) {
  const int ranks = torii_team_ranks(team);
  for (const std::size_t count : counts) {
    for (const bool in_place : {false, true}) {
      for (const CallForm form : {CallForm::blocking, CallForm::started, CallForm::prepared, CallForm::grouped}) {
        // Long vectors choose their algorithms as blocking calls do.
        if (form != CallForm::blocking && count > 5000) continue;
        bool has_run = true;
        for (const torii_collective collective : kCombining) {
          Cell cell = {collective, TORII_U8, TORII_USER, count, 0, in_place, form};
          if (has_blocks(collective)) {
            cell.count = std::max<std::size_t>(count / static_cast<std::size_t>(ranks), 1);
            has_run = run_unequal_in_order(team, cell) && has_run;
          }
          for (; cell.root < (has_root(collective) ? ranks : 1); ++cell.root) {
            has_run = run_in_order(team, cell) && has_run;
          }
        }
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

/// A plan does not know the function, so a call must not find one that an equal call with a function left behind.
TEST(UserOperations, WithoutAFunctionAreRefusedAfterOthers) {
  run_as_threads(threads_of(2), [](torii_context*, torii_team* team) {
    const Triangle input = triangle_of(torii_team_rank(team), 0);
    Triangle result = {};
    torii_call call = make_call(TORII_ALLREDUCE, &input, &result, 1, TORII_U8, TORII_USER);
    call.user_bytes = sizeof(Triangle);
    torii_request* request = nullptr;
    for (const auto& refused :
         {+[](torii_team*of, const torii_call*one, torii_request**) { return torii_run(of, one); }, &torii_start,
          &torii_prepare}) {
      call.user = add_triangles;
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      call.user = nullptr;
      EXPECT_EQ(refused(team, &call, &request), TORII_INVALID_ARGUMENT);
      EXPECT_STREQ(torii_last_error(), "op is user, but no user function is given");
    }
    call.user = torii_team_rank(team) == 0 ? add_triangles : nullptr;
    EXPECT_EQ(torii_run(team, &call), torii_team_rank(team) == 0 ? TORII_MISMATCH : TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("no user function is given"), std::string::npos);
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
    EXPECT_TRUE(run_in_order(team, {TORII_SCAN, TORII_U8, TORII_USER, kCount}))
        << "every algorithm scans in the order of ranks";
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
      for (const CallForm form : {CallForm::blocking, CallForm::started, CallForm::prepared}) {
        ThreadTeam options = threads_of(3);
        options.determinism = determinism;
        run_as_threads(options, [&](torii_context*, torii_team* team) {
          std::vector<Triangle> input(3, triangle_of(torii_team_rank(team), 0));
          std::vector<Triangle> result(3);
          torii_call call = make_call(collective, input.data(), result.data(), 1, TORII_U8, TORII_USER);
          call.user = add_triangles;
          call.user_bytes = sizeof(Triangle);
          call.commutes = torii_team_rank(team) == 1 ? 1 : 0;
          const torii_status status = run_as(form, team, call);
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
