// SPDX-License-Identifier: Apache-2.0
// Which ranks share a node, and the transport that is shared memory inside nodes and a fabric between them.
#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/devices/cpus.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/mixed/mixed.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii::tests {
namespace {

using shared_memory::Nodes;

TEST(Nodes, AreNumberedInTheOrderOfTheirFirstRanks) {
  const std::vector<std::string> names = {"b", "a", "b", "", "a"};
  run_ranks_as_threads(5, [&](Bootstrap& bootstrap) {
    const Nodes nodes(bootstrap, names[static_cast<std::size_t>(bootstrap.rank())]);
    EXPECT_EQ(nodes.count(), 3);
    const std::vector<int> expected = {0, 1, 0, 2, 1};
    for (int rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(nodes.node(rank), expected[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(nodes.is_own(rank), nodes.node(rank) == nodes.node(bootstrap.rank()));
      EXPECT_FALSE(nodes.host(rank).empty());
      EXPECT_EQ(nodes.visible_pid(rank), getpid());
    }
    EXPECT_EQ(nodes.own_ranks(), bootstrap.rank() == 3 ? 1 : 2);
    EXPECT_FALSE(nodes.alone_in_process());
    EXPECT_TRUE(nodes.loopback_reaches_all());
    try {
      nodes.check_single();
      ADD_FAILURE() << "several nodes pass for one";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      const std::string text = error.what();
      EXPECT_NE(text.find("rank 0 is on host " + nodes.host(0) + " (TORII_NODE b), rank 1 on host "), std::string::npos)
          << text;
    }
  });
}

/// Ranks bound to one CPU each, whose caches are planted; the last rank is bound to none.
TEST(Nodes, TellToWhichCachesRanksAreBound) {
  const CpuList cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU has one cache";
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "torii_test_planted_caches";
  for (const int cpu : {cpus[0], cpus[1]}) {
    const std::filesystem::path cache =
        root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "cache/index0";
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << "3\n";
    std::ofstream(cache / "shared_cpu_list") << cpu << "\n";
  }
  run_ranks_as_threads(3, [&](Bootstrap& bootstrap) {
    if (bootstrap.rank() < 2) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpus[static_cast<std::size_t>(bootstrap.rank())], &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    }
    const Nodes nodes(bootstrap, "", Nodes::Rule::shared, root);
    EXPECT_EQ(nodes.cache(0), cpus[0]);
    EXPECT_EQ(nodes.cache(1), cpus[1]);
    EXPECT_EQ(nodes.cache(2), -1);
  });
  std::filesystem::remove_all(root);
}

TEST(Nodes, OneMachineIsOneNodeUnlessEveryRankStandsAlone) {
  run_ranks_as_threads(3, [](Bootstrap& bootstrap) {
    const Nodes together(bootstrap);
    EXPECT_EQ(together.count(), 1);
    EXPECT_EQ(together.own_ranks(), 3);
    EXPECT_NO_THROW(together.check_single());
    const Nodes apart(bootstrap, "x", Nodes::Rule::separate);
    EXPECT_EQ(apart.count(), 3);
    EXPECT_EQ(apart.own_ranks(), 1);
    EXPECT_EQ(apart.node(2), 2);
  });
}

/// Notes what it is asked; `wakes` and `notices` are its capabilities.
class Noting final : public Transport {
 public:
  Noting(Bootstrap& bootstrap, std::string_view name, bool wakes, bool notices, std::string& notes)
      : rank_(bootstrap.rank()),
        ranks_(bootstrap.ranks()),
        capabilities_{.name = name, .wakes_on_put = wakes, .notices_deaths = notices, .engines = 3},
        notes_(notes) {}
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return ranks_; }
  int node(int) const noexcept override { return 0; }
  std::byte* mapped(int, std::uint64_t) noexcept override { return nullptr; }
  Status put(const Put& put) noexcept override { return note("put" + std::to_string(put.peer)); }
  Status put_word(int peer, std::uint64_t, std::uint64_t) noexcept override {
    return note("word" + std::to_string(peer));
  }
  Status progress() noexcept override { return note("progress"); }
  bool drained() noexcept override { return note("drained") == Status::ok; }
  void sleep(SleepMark&, int most_us, bool (*)(void*), void*) noexcept override {
    (void)note("sleep" + std::to_string(most_us));
  }
  bool alive(int peer) noexcept override { return note("alive" + std::to_string(peer)) == Status::ok; }
  std::string failure_text() const override { return "because"; }
  bool oversubscribed() const noexcept override { return true; }

 private:
  Status note(const std::string& what) {
    notes_ += std::string(capabilities_.name) + "." + what + " ";
    return Status::ok;
  }
  int rank_;
  int ranks_;
  Capabilities capabilities_;
  std::string& notes_;
};

/// Rank 0's view of a job in which ranks 0 and 1 share a node and rank 2 has one of its own, or all stand alone.
void look_at_mixed(bool wakes, bool alone, const std::function<void(mixed::Mixed&, std::string&)>& look) {
  run_ranks_as_threads(3, [&](Bootstrap& bootstrap) {
    const Nodes nodes(bootstrap, bootstrap.rank() < 2 ? "a" : "b", alone ? Nodes::Rule::separate : Nodes::Rule::shared);
    if (bootstrap.rank() != 0) return;
    std::string notes;
    mixed::Mixed mixed(nodes, std::make_unique<Noting>(bootstrap, "in", true, true, notes),
                       std::make_unique<Noting>(bootstrap, "out", wakes, true, notes));
    look(mixed, notes);
  });
}

TEST(Mixed, EveryRankIsReachedByItsTransport) {
  look_at_mixed(true, false, [](mixed::Mixed& mixed, std::string& notes) {
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(mixed.put({.peer = peer}), Status::ok);
      EXPECT_EQ(mixed.put_word(peer, 0, 1), Status::ok);
      EXPECT_TRUE(mixed.alive(peer));
      EXPECT_EQ(mixed.node(peer), peer == 2 ? 1 : 0);
    }
    EXPECT_EQ(notes, "in.put0 in.word0 in.alive0 in.put1 in.word1 in.alive1 out.put2 out.word2 out.alive2 ");
    notes.clear();
    EXPECT_EQ(mixed.progress(), Status::ok);
    EXPECT_TRUE(mixed.drained());
    EXPECT_EQ(notes, "out.progress out.drained ");
    EXPECT_EQ(mixed.failure_text(), "because");
    EXPECT_EQ(mixed.capabilities().name, "shared_memory+out");
    EXPECT_EQ(mixed.capabilities().engines, 3);
    EXPECT_FALSE(mixed.capabilities().mapped);
    EXPECT_TRUE(mixed.capabilities().notices_deaths);
  });
}

TEST(Mixed, SleepsWhereItIsWoken) {
  const auto idle = [](void*) { return true; };
  look_at_mixed(true, false, [&](mixed::Mixed& mixed, std::string& notes) {
    EXPECT_FALSE(mixed.capabilities().wakes_on_put);
    mixed.sleep_once(5000, idle, nullptr);
    EXPECT_EQ(notes, "out.sleep1000 ");
  });
  look_at_mixed(false, false, [&](mixed::Mixed& mixed, std::string& notes) {
    mixed.sleep_once(500, idle, nullptr);
    EXPECT_EQ(notes, "in.sleep500 ");
  });
  look_at_mixed(true, true, [&](mixed::Mixed& mixed, std::string& notes) {
    EXPECT_TRUE(mixed.capabilities().wakes_on_put);
    EXPECT_EQ(mixed.capabilities().name, "out");
    mixed.sleep_once(5000, idle, nullptr);
    EXPECT_EQ(notes, "out.sleep5000 ");
  });
}

}  // namespace
}  // namespace torii::tests
