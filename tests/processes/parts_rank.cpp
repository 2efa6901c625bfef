// SPDX-License-Identifier: Apache-2.0
// A rank that keeps many live parts of two ranks, each of which has made a call: what test_many_ranks starts.
#include <torii/torii.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t kCount = 8;  ///< doubles of a call: payloads longer than a line, so a part takes an outbox

int fail(std::size_t part, const char* what) {
  std::printf("part %zu: %s: %s\n", part, what, torii_last_error());
  return 1;
}

/// Whether both ranks of the part get the sum of what they gave.
bool is_right(torii_team* part, double factor) {
  std::array<double, kCount> from = {};
  std::array<double, kCount> to = {};
  const int rank = torii_team_rank(part);
  for (std::size_t i = 0; i < kCount; ++i) from[i] = factor * (rank + 1) + static_cast<double>(i);
  if (torii_allreduce(part, from.data(), to.data(), kCount, TORII_F64, TORII_SUM) != TORII_OK) return false;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (to[i] != 3 * factor + 2 * static_cast<double>(i)) return false;
  }
  return true;
}

}  // namespace

/// parts_rank PARTS
int main(int argc, char** argv) {
  const auto wanted = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  torii_context* context = nullptr;
  if (torii_context_create(nullptr, &context) != TORII_OK) return fail(0, "context");
  torii_team* team = nullptr;
  if (torii_team_create(context, nullptr, &team) != TORII_OK) return fail(0, "team");
  const int rank = torii_team_rank(team);
  std::vector<torii_team*> parts;
  for (std::size_t i = 0; i < wanted; ++i) {
    torii_team* part = nullptr;
    if (torii_team_split(team, rank / 2, rank, nullptr, &part) != TORII_OK) return fail(i, "split");
    if (!is_right(part, static_cast<double>(i))) return fail(i, "first call");
    parts.push_back(part);
  }
  for (std::size_t i = 0; i < wanted; ++i) {
    if (!is_right(parts[i], -static_cast<double>(i))) return fail(i, "second call");
  }
  for (torii_team* part : parts) {
    if (torii_team_destroy(part) != TORII_OK) return fail(0, "part's end");
  }
  if (rank == 0) std::printf("%zu parts are right\n", parts.size());
  torii_team_destroy(team);
  torii_context_destroy(context);
  return 0;
}
