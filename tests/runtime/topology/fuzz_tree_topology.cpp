// SPDX-License-Identifier: Apache-2.0
// Tree topology files with random words, bytes, cuts and repetitions: each is a tree that reads back, or a clear error.
#include <gtest/gtest.h>

#include <random>

#include "runtime/base/status.hpp"
#include "runtime/topology/tree_topology.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr const char* kSeeds[] = {
    "node a comm\nnode s relay\nnode b comm\nlink a s 100MB/s 11.5MB/s 15us 0.5ms full\n"
    "link s b 350Mbit/s 350Mbit/s 8ms 20ns half\nrank 1 a\nrank 0 b\nroot a\n",
    "# one\nnode x comm\n",
    "node 1 relay\nnode 2 comm\nnode 3 comm\nlink 2 1 1B/s 6B/s 0s 0s full\nlink 3 1 3B/s 3B/s 1s 2s half\nroot 2\n"};

constexpr const char* kWords[] = {"node",  "link",  "rank",  "root",       "comm", "relay", "full",   "half",  "a",
                                  "b",     "s",     "0",     "-1",         "1e99", "nan",   "0MB/s",  "1GB/s", "10us",
                                  "3601s", "#",     "\n",    "\t",         "1e-9", "5B/s",  "99999",  "x",     "infs",
                                  "0x1p3", "1.B/s", ".5B/s", "2147483648", "",     "root",  "1kbit/s"};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string text() {
    std::string text = kSeeds[draw(std::size(kSeeds))];
    for (std::size_t edits = 1 + draw(6); edits > 0; --edits) edit(text);
    return text;
  }

 private:
  std::size_t draw(std::size_t below) { return random_() % below; }

  void edit(std::string& text) {
    const std::size_t at = draw(text.size() + 1);
    const std::size_t length = draw(12);
    switch (draw(5)) {
      case 0:
        text.insert(at, std::string(" ") + kWords[draw(std::size(kWords))] + " ");
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(draw(256));
        break;
      case 3:
        text.insert(at, text.substr(draw(text.size() + 1), 5 * length));
        break;
      default:
        text.insert(at, 1, '\n');
    }
  }

  std::mt19937_64 random_;
};

TEST(FuzzTreeTopology, ReadsBackOrSaysWhatIsWrong) {
  const std::vector<Seed> seeds = seeds_of("fuzz_tree_topology", is_full() ? 1'000'000 : 20'000);
  std::size_t trees = 0;
  for (const Seed& seed : seeds) {
    const std::string text = Mutator(seed.value).text();
    try {
      const TreeTopology tree = TreeTopology::parse(text, "F");
      ++trees;
      ASSERT_EQ(TreeTopology::parse(tree.text(), "F"), tree) << seed << "\n" << text;
      ASSERT_EQ(tree.depth_first(tree.root()).size(), static_cast<std::size_t>(tree.ranks())) << seed;
    } catch (const Error& error) {
      ASSERT_EQ(error.status(), Status::invalid_argument) << seed << "\n" << text;
      ASSERT_EQ(std::string(error.what()).rfind("topology file 'F'", 0), 0u) << seed << ": " << error.what();
    }
  }
  if (is_replay()) return;
  EXPECT_GT(trees, seeds.size() / 50);
  EXPECT_LT(trees, seeds.size() / 10 * 9);
}

}  // namespace
}  // namespace torii::tests
