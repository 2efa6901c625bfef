// SPDX-License-Identifier: Apache-2.0
// A rank whose vectors are malloc'ed and then adopted: every collective must give the same bits before and after, and
// children started meanwhile must work. Exits with 0 when all is right.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <torii/torii.hpp>
#include <vector>

#include "tools/collective_shape.hpp"

namespace {

constexpr std::size_t kCounts[] = {1, 2'000, 30'011, 400'000};
constexpr torii_collective kCollectives[] = {TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE, TORII_ALL_GATHER,
                                             TORII_REDUCE_SCATTER};

/// A block of the heap, or for long ones of pages of its own, as malloc sees fit.
class Vector {
 public:
  explicit Vector(std::size_t count) : data_(static_cast<float*>(std::malloc(count * sizeof(float)))), count_(count) {}
  ~Vector() { std::free(data_); }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  std::span<float> span() const { return {data_, count_}; }

 private:
  float* data_;
  std::size_t count_;
};

/// The results of all collectives, one after the other.
std::vector<float> run_all(torii::Team& team, std::size_t count, std::span<float> input, std::span<float> result) {
  std::vector<float> all;
  for (const torii_collective collective : kCollectives) {
    for (std::size_t i = 0; i < input.size(); ++i) {
      input[i] = 1.0f / static_cast<float>(i % 9973 + static_cast<std::size_t>(team.rank()) + 1);
    }
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = input[i];
    torii::check(team.run(torii::make_call(collective, input.data(), result.data(), count, TORII_F32, TORII_SUM, 1)));
    if (!torii::has_result(collective, team.rank(), 1)) continue;
    const std::size_t filled = torii::lengths_of(collective, count, team.ranks(), team.rank()).result;
    all.insert(all.end(), result.begin(), result.begin() + static_cast<std::ptrdiff_t>(filled));
  }
  return all;
}

/// True when a child of fork that execs works.
bool child_works() {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 0", nullptr);
    _exit(1);
  }
  int how = 1;
  return child > 0 && waitpid(child, &how, 0) == child && how == 0 && std::system("exit 0") == 0;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool run_count(const torii::Context& context, torii::Team& team, std::size_t count) {
  const std::size_t elements = count * static_cast<std::size_t>(team.ranks());
  const Vector input(elements);
  const Vector result(elements);
  const std::vector<float> plain = run_all(team, count, input.span(), result.span());
  {
    const torii::Region first = context.adopt(input.span());
    const torii::Region second = context.adopt(result.span());
    if (!same(plain, run_all(team, count, input.span(), result.span()))) return false;
    if (!child_works()) return false;
    if (!same(plain, run_all(team, count, input.span(), result.span()))) return false;
  }
  return same(plain, run_all(team, count, input.span(), result.span()));
}

}  // namespace

int main() {
  try {
    const torii::Context context;
    torii::Team team = context.team();
    for (const std::size_t count : kCounts) {
      if (run_count(context, team, count)) continue;
      std::fprintf(stderr, "rank %d: other bits, or a child that failed, at %zu elements\n", team.rank(), count);
      return 1;
    }
    std::printf("rank %d: same bits\n", team.rank());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
