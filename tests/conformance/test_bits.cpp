// SPDX-License-Identifier: Apache-2.0
// One hash per input, type and operation, whatever engines, segments, memory, instruction set and CPUs; one hash per
// number of ranks at the level `canonical`; the bits of an element do not depend on the length of the vector.
#include <gtest/gtest.h>
#include <sched.h>
#include <xxhash.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "reduce_kernels/kernels.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

constexpr torii_type kTypes[] = {TORII_F32, TORII_F64, TORII_BF16, TORII_F16, TORII_I32};
constexpr std::size_t kPage = 4096;
constexpr std::size_t kCount = 30'011;  // several segments of every size but the largest, and no round number

enum class Memory { malloced, allocated, adopted };
constexpr Memory kMemories[] = {Memory::malloced, Memory::allocated, Memory::adopted};

/// How a vector is held: the bits must not depend on it.
struct Holding {
  Memory memory = Memory::malloced;
  bool in_place = false;
};

/// Bytes from malloc, at an odd multiple of the element's size, the same adopted, or bytes from torii_allocate.
class Bytes {
 public:
  Bytes(torii_context* context, std::size_t bytes, Memory memory) : context_(context), memory_(memory) {
    if (memory == Memory::allocated) {
      void* address = nullptr;
      EXPECT_EQ(torii_allocate(context, bytes, &address), TORII_OK) << torii_last_error();
      data_ = static_cast<std::byte*>(address);
      return;
    }
    // Ranks are threads of one heap here: what they adopt must not share pages.
    const std::size_t rounded = (bytes + 8 + kPage - 1) / kPage * kPage;
    own_ =
        static_cast<std::byte*>(memory == Memory::adopted ? std::aligned_alloc(kPage, rounded) : std::malloc(rounded));
    data_ = own_ + 8;
    if (memory != Memory::adopted) return;
    EXPECT_EQ(torii_register(context, data_, bytes, TORII_REGISTER_ADOPT, &region_), TORII_OK) << torii_last_error();
  }
  ~Bytes() {
    EXPECT_EQ(torii_deregister(context_, region_), TORII_OK) << torii_last_error();
    if (memory_ == Memory::allocated) {
      EXPECT_EQ(torii_free(context_, data_), TORII_OK) << torii_last_error();
    }
    std::free(own_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::byte* data() { return data_; }

 private:
  torii_context* context_;
  Memory memory_;
  torii_region* region_ = nullptr;
  std::byte* own_ = nullptr;
  std::byte* data_ = nullptr;
};

/// The result of one allreduce of `count` elements; empty when it failed.
std::vector<std::byte> allreduce(torii_context* context, torii_team* team, torii_type type, std::size_t count,
                                 Holding holding) {
  const std::size_t bytes = count * torii_type_bytes(type);
  Bytes input(context, bytes, holding.memory);
  Bytes separate(context, bytes, holding.memory);
  std::byte* result = holding.in_place ? input.data() : separate.data();
  fill_operand(static_cast<Type>(type), 7, torii_team_rank(team), 0, count, input.data());
  const torii_call call = make_call(TORII_ALLREDUCE, input.data(), result, count, type, TORII_SUM);
  const torii_status status = torii_run(team, &call);
  EXPECT_EQ(status, TORII_OK) << torii_last_error();
  if (status != TORII_OK) return {};
  return {result, result + bytes};
}

std::uint64_t hash_of(const std::vector<std::byte>& bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

/// Hashes by key, from all ranks and runs; each key must have one.
class Hashes {
 public:
  void add(const std::string& key, const std::string& run, const std::vector<std::byte>& result) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = hashes_.try_emplace(key, hash_of(result), run);
    EXPECT_EQ(at->second.first, hash_of(result)) << key << ": " << run << " against " << at->second.second;
    runs_.insert(run);
  }
  std::size_t keys() const { return hashes_.size(); }
  std::size_t runs() const { return runs_.size(); }

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<std::uint64_t, std::string>> hashes_;
  std::set<std::string> runs_;
};

bool can(torii_team* team) {
  const float probe = 0;
  float place = 0;
  torii_choice choice = {};
  choice.size = sizeof(choice);
  const torii_call call = make_call(TORII_ALLREDUCE, &probe, &place, 1, TORII_F32);
  return torii_choose(team, &call, &choice) == TORII_OK;
}

std::string type_name(torii_type type) { return std::string(name(static_cast<Type>(type))); }

/// One setting of everything that must not change a bit.
struct Variation {
  int engines = 4;
  std::string isa = "auto";
  std::size_t segment_bytes = 16384;
  Holding holding = {};
  std::string wait = "auto";
  std::string drawn_by = {};

  std::string text() const {
    return "engines " + std::to_string(engines) + ", isa " + isa + ", segment " + std::to_string(segment_bytes) +
           ", memory " + std::to_string(static_cast<int>(holding.memory)) + ", in place " +
           std::to_string(holding.in_place) + ", wait " + wait;
  }
};

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const kernels::Isa isa : kernels::available_isas()) names.emplace_back(kernels::name(isa));
  return names;
}

/// Each value of each knob once, and combinations drawn at random; all of them in a full run.
std::vector<Variation> variations() {
  const std::vector<std::string> isas = isa_names();
  constexpr std::size_t kSegments[] = {4096, 16384, 65536, 262144};
  const std::vector<std::string> waits = {"auto", "yield", "sleep"};
  std::vector<Variation> all;
  for (int engines = 1; engines <= 4; ++engines) {
    for (const std::string& isa : isas) {
      for (const std::size_t segment_bytes : kSegments) {
        for (const Memory memory : kMemories) {
          for (const bool in_place : {false, true}) {
            all.push_back({engines, isa, segment_bytes, {memory, in_place}, waits[all.size() % waits.size()]});
          }
        }
      }
    }
  }
  if (is_full()) return all;
  std::vector<Variation> few;
  for (const int engines : {1, 2, 3}) few.push_back({.engines = engines});
  for (const std::string& isa : isas) few.push_back({.isa = isa});
  for (const std::size_t segment_bytes : kSegments) few.push_back({.segment_bytes = segment_bytes});
  for (const Memory memory : kMemories) {
    for (const bool in_place : {false, true}) few.push_back({.holding = {memory, in_place}});
  }
  for (const Seed& seed : seeds_of("conformance_bits", 8)) {
    few.push_back(all[std::mt19937_64(seed.value)() % all.size()]);
    few.back().drawn_by = ::testing::PrintToString(seed);
  }
  return few;
}

void run_variation(const std::string& algorithm, const std::string& topology, int ranks, const Variation& variation,
                   Hashes& hashes) {
  ThreadTeam options;
  options.ranks = ranks;
  options.topology = topology;
  options.algorithm = algorithm;
  options.segment_bytes = variation.segment_bytes;
  options.settings = "ARENA=1G\nTIMEOUT=30\nENGINES=" + std::to_string(variation.engines) + "\nISA=" + variation.isa +
                     "\nWAIT=" + variation.wait;
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    SCOPED_TRACE(variation.drawn_by);
    for (const torii_type type : kTypes) {
      const auto result = allreduce(context, team, type, kCount, variation.holding);
      hashes.add(algorithm + " " + type_name(type), variation.text(), result);
    }
  });
}

/// The topology of four ranks for which an algorithm is made.
std::string topology_for(const std::string& algorithm) {
  return algorithm == "trinaryx3" ? "torus:2x2" : algorithm == "levels" ? "node:2*2" : "node";
}

class Bits : public ::testing::TestWithParam<std::string> {};

TEST_P(Bits, DependOnNothingButTheInput) {
  const int repetitions = is_full() ? 20 : 1;
  Hashes hashes;
  std::size_t expected_runs = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (const Variation& variation : variations()) {
      run_variation(GetParam(), topology_for(GetParam()), 4, variation, hashes);
      ++expected_runs;
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(hashes.keys(), std::size(kTypes));
  if (is_replay()) return;
  EXPECT_GT(hashes.runs(), 15U) << "of " << expected_runs;
}

/// The CPUs this thread and those it starts may use, put back at the end.
class OnCpus {
 public:
  explicit OnCpus(int cpus) {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t fewer;
    CPU_ZERO(&fewer);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&fewer) < cpus; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &fewer);
    }
    sched_setaffinity(0, sizeof(fewer), &fewer);
  }
  ~OnCpus() { sched_setaffinity(0, sizeof(before_), &before_); }
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;

 private:
  cpu_set_t before_;
};

TEST_P(Bits, DependOnNoNumberOfCpus) {
  Hashes hashes;
  for (const int cpus : {1, 2}) {
    const OnCpus on(cpus);
    run_variation(GetParam(), "node", 2, {.wait = cpus == 1 ? "yield" : "auto"}, hashes);
  }
  EXPECT_EQ(hashes.keys(), std::size(kTypes));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Bits,
                         ::testing::Values("trinaryx3", "node", "ring", "recursive_doubling", "binomial",
                                           "rabenseifner", "bucket"),
                         [](const auto& test) { return test.param; });

TEST(Canonical, IsOneHashForAllAlgorithmsAndTopologies) {
  Hashes hashes;
  std::mutex mutex;
  std::set<std::string> able;
  std::set<std::string> refused;
  for (const Algorithm& algorithm : catalogue()) {
    for (const char* topology : {"node", "node:2*4", "torus:2x2x2", "torus:4x2", "mesh:8", "mesh:2x4"}) {
      ThreadTeam options;
      options.ranks = 8;
      options.topology = topology;
      options.algorithm = algorithm.name;
      options.determinism = "canonical";
      options.segment_bytes = 8192;
      options.settings = "ARENA=1G\nTIMEOUT=30";
      run_as_threads(options, [&](torii_context* context, torii_team* team) {
        const bool honours = can(team);
        if (torii_team_rank(team) == 0) {
          const std::lock_guard lock(mutex);
          (honours ? able : refused).insert(std::string(algorithm.name));
        }
        if (!honours) {
          EXPECT_NE(std::string(torii_last_error()).find("binomial"), std::string::npos)
              << "those that can are listed: " << torii_last_error();
          return;
        }
        for (const torii_type type : {TORII_F32, TORII_BF16, TORII_F16}) {
          const auto result = allreduce(context, team, type, 4001, {.in_place = topology[0] == 'm'});
          hashes.add(type_name(type), std::string(algorithm.name) + " on " + topology, result);
        }
      });
    }
  }
  EXPECT_EQ(hashes.keys(), 3U);
  EXPECT_TRUE(able.count("binomial") == 1 && able.count("node") == 1 && able.count("levels") == 1) << able.size();
  EXPECT_EQ(refused.count("trinaryx3"), 1U);
}

class PrefixBits : public ::testing::TestWithParam<std::string> {};

TEST_P(PrefixBits, HasTheSameBitsInAVectorOfAnyLength) {
  constexpr std::size_t kPrefix = 1000;
  Hashes hashes;
  ThreadTeam options;
  options.ranks = 4;
  options.topology = topology_for(GetParam());
  options.algorithm = GetParam();
  options.settings = "ARENA=1G\nTIMEOUT=30";
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    for (const torii_type type : kTypes) {
      for (const std::size_t count :
           {kPrefix, std::size_t{100'000}, std::size_t{is_full() ? 10'000'000U : 1'000'000U}}) {
        if (count > 100'000 && !is_full() && type != TORII_F32) continue;
        auto result = allreduce(context, team, type, count, {});
        result.resize(std::min(result.size(), kPrefix * torii_type_bytes(type)));
        hashes.add(type_name(type), std::to_string(count) + " elements", result);
      }
    }
  });
  EXPECT_EQ(hashes.keys(), std::size(kTypes));
  EXPECT_EQ(hashes.runs(), 3U);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PrefixBits,
                         ::testing::Values("trinaryx3", "node", "levels", "recursive_doubling", "binomial"),
                         [](const auto& test) { return test.param; });

TEST(Engines, NoneCarriesLessThanItsShare) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  ThreadTeam options;
  options.ranks = 8;
  options.topology = "torus:2x2x2";
  options.algorithm = "trinaryx3";
  options.settings = "ENGINES=4\nARENA=1G\nTIMEOUT=30";
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    for (const Memory memory : kMemories) {
      std::uint64_t before[4] = {};
      std::uint64_t after[4] = {};
      ASSERT_EQ(torii_engine_bytes(context, before, 4), 4);
      allreduce(context, team, TORII_F32, kBytes / sizeof(float), {.memory = memory});
      torii_engine_bytes(context, after, 4);
      std::uint64_t all = 0;
      for (int engine = 0; engine < 4; ++engine) all += after[engine] - before[engine];
      EXPECT_GE(all, kBytes / 2) << "a rank sends at least what it does not keep";
      for (int engine = 0; engine < 4; ++engine) {
        EXPECT_GE(static_cast<double>(after[engine] - before[engine]), 0.15 * static_cast<double>(all))
            << "engine " << engine << ", memory " << static_cast<int>(memory);
      }
    }
  });
}

}  // namespace
}  // namespace torii::tests
