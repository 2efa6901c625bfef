// SPDX-License-Identifier: Apache-2.0
// Adopted memory in forked children: pages of their own, whose contents last as long as the child and its children do,
// and no longer take memory afterwards.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "tests/transports/shared_memory/adoption_fixture.hpp"

namespace torii::shared_memory {
namespace {

/// How a forked child that does `what` ends.
template <class What>
int forked(What&& what) {
  const pid_t child = fork();
  if (child == 0) {
    what();
    _exit(7);
  }
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  return how;
}

TEST_F(AdoptionTest, ForkedChildrenHavePagesOfTheirOwn) {
  const OwnPages pages(4);
  fill(pages.data(), pages.bytes(), 8);
  ASSERT_EQ(adopt(pages.data(), pages.bytes()), Status::ok) << message_;
  const int executed = forked([] { execl("/bin/sh", "sh", "-c", "exit 5", nullptr); });
  EXPECT_TRUE(WIFEXITED(executed) && WEXITSTATUS(executed) == 5);
  const int left = forked([] {});
  EXPECT_TRUE(WIFEXITED(left) && WEXITSTATUS(left) == 7);
  const int wrote = forked([&] {
    if (!holds(pages.data(), pages.bytes(), 8)) _exit(8);
    fill(pages.data(), pages.bytes(), 9);
    // A child of the child has what its parent has.
    const int below = forked([&] {
      if (!holds(pages.data(), pages.bytes(), 9)) _exit(8);
      fill(pages.data(), pages.bytes(), 10);
    });
    if (!WIFEXITED(below) || WEXITSTATUS(below) != 7) _exit(9);
    if (!holds(pages.data(), pages.bytes(), 9)) _exit(10);
  });
  EXPECT_TRUE(WIFEXITED(wrote) && WEXITSTATUS(wrote) == 7) << wrote;
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 8));
  pid_t spawned = -1;
  char shell[] = "sh", option[] = "-c", script[] = "exit 6";
  char* arguments[] = {shell, option, script, nullptr};
  ASSERT_EQ(posix_spawn(&spawned, "/bin/sh", nullptr, nullptr, arguments, environ), 0);
  int how = 0;
  EXPECT_EQ(waitpid(spawned, &how, 0), spawned);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 6);
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 8));
  ASSERT_EQ(give_back(pages.data(), pages.bytes()), Status::ok) << message_;
  const int wrote_private = forked([&] { *pages.data() = std::byte{0}; });
  EXPECT_TRUE(WIFEXITED(wrote_private) && WEXITSTATUS(wrote_private) == 7);
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 8));
}

/// First and last pages hold data of the heap too, so they are those of the moment of the fork.
TEST_F(AdoptionTest, AForkedChildDoesNotSeeLaterStoresOnEdgePages) {
  const OwnPages pages(4);
  fill(pages.data(), pages.bytes(), 8);
  ASSERT_EQ(adopt(pages.data() + 100, pages.bytes() - 200), Status::ok) << message_;
  int stored[2];
  ASSERT_EQ(pipe(stored), 0);
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    const bool is_told = read(stored[0], &word, 1) == 1;
    _exit(is_told && holds(pages.data(), kPage, 8) && pages.page(3)[kPage - 1] != std::byte{0xee} ? 7 : 8);
  }
  std::memset(pages.data(), 0xee, pages.bytes());
  ASSERT_EQ(write(stored[1], "x", 1), 1);
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 7) << how;
  close(stored[0]);
  close(stored[1]);
  ASSERT_EQ(give_back(pages.data() + 100, pages.bytes() - 200), Status::ok) << message_;
}

/// Blocks of malloc share their edge pages with neighbours and with the allocator's own words.
TEST_F(AdoptionTest, AForkedChildUsesTheHeapAroundAdoptedBlocks) {
  if (kUnderThreadSanitizer || kUnderAddressSanitizer)
    GTEST_SKIP() << "sanitizers report that whole pages of their heap are copied";
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 64; ++i)
    blocks.push_back(static_cast<std::byte*>(std::malloc(3000 + 700 * static_cast<std::size_t>(i % 9))));
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    fill(blocks[i], 3000, static_cast<unsigned>(i));
    ASSERT_EQ(adopt(blocks[i], 3000), Status::ok) << message_;
  }
  const auto churn = [&] {
    for (std::size_t i = 1; i < blocks.size(); i += 2) std::free(std::exchange(blocks[i], nullptr));
    for (std::size_t i = 1; i < blocks.size(); i += 2) {
      blocks[i] = static_cast<std::byte*>(std::malloc(2500 + i));
      std::memset(blocks[i], 0x55, 2500 + i);
    }
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      if (!holds(blocks[i], 3000, static_cast<unsigned>(i))) _exit(8);
    }
  };
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 20; ++i) churn();
      _exit(7);
    }
    churn();  // both at once
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 7) << how;
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) ASSERT_EQ(give_back(blocks[i], 3000), Status::ok) << message_;
  for (std::byte* const block : blocks) std::free(block);
}

/// Nothing is put over memory that the program has mapped where it gave adopted memory away.
TEST_F(AdoptionTest, AForkedChildKeepsWhatIsMappedInAnAdoptedPlace) {
  const OwnPages pages(2);
  ASSERT_EQ(adopt(pages.data(), pages.bytes()), Status::ok) << message_;
  void* const other =
      mmap(pages.data(), pages.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(other, pages.data());
  fill(pages.data(), pages.bytes(), 3);
  const int looked = forked([&] {
    if (!holds(pages.data(), pages.bytes(), 3)) _exit(8);
  });
  EXPECT_TRUE(WIFEXITED(looked) && WEXITSTATUS(looked) == 7) << looked;
  EXPECT_EQ(give_back(pages.data(), pages.bytes()), Status::invalid_argument);
}

/// A pipe by which a test tells its child to go on.
class Gate {
 public:
  Gate() { EXPECT_EQ(pipe(ends_), 0); }
  ~Gate() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() const { EXPECT_EQ(write(ends_[1], "gg", 2), 2); }
  void pass() const {
    close(ends_[1]);  // a parent that has failed opens it too
    char word = 0;
    if (read(ends_[0], &word, 1) != 1) _exit(20);
  }
  /// As daemons do.
  void keep_alone() const {
    const auto end = static_cast<unsigned>(ends_[0]);
    if ((end != 0 && close_range(0, end - 1, 0) != 0) || close_range(end + 1, ~0U, 0) != 0) _exit(21);
  }

 private:
  int ends_[2] = {-1, -1};
};

class AdoptionOfChildren : public AdoptionTest {
 protected:
  static constexpr std::size_t kPages = 64;
  AdoptionOfChildren() { fill(pages_.data(), pages_.bytes(), 8); }

  /// A child that `prepares`, waits and looks for its pages; exits with 7 if they are as at the fork.
  template <class Prepare>
  pid_t start(const Gate& gate, Prepare&& prepare) {
    const pid_t child = fork();
    if (child != 0) return child;
    prepare();
    gate.pass();
    _exit(holds(pages_.data(), pages_.bytes(), 8) ? 7 : 8);
  }
  pid_t start(const Gate& gate) {
    return start(gate, [] {});
  }
  static int code_of(pid_t child) {
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 1000 + how;
  }
  std::size_t taken_bytes() const {
    struct stat file {};
    EXPECT_EQ(fstat(arena_.fd(), &file), 0);
    return static_cast<std::size_t>(file.st_blocks) * 512;
  }
  /// Other pages come and go: with them goes what no child sees any more.
  void adopt_others() {
    const OwnPages others(1);
    ASSERT_EQ(adopt(others.data(), others.bytes()), Status::ok) << message_;
    ASSERT_EQ(give_back(others.data(), others.bytes()), Status::ok) << message_;
  }

  OwnPages pages_{kPages};
};

TEST_F(AdoptionOfChildren, KeepTheirContentsWhenTheParentGivesThePagesBack) {
  const Gate gate;
  ASSERT_EQ(adopt(pages_.data() + 5, pages_.bytes() - 10), Status::ok) << message_;
  const pid_t plain = start(gate);
  const pid_t daemon = start(gate, [&] { gate.keep_alone(); });
  ASSERT_EQ(give_back(pages_.data() + 5, pages_.bytes() - 10), Status::ok) << message_;
  std::memset(pages_.data(), 0xee, pages_.bytes());
  adopt_others();
  gate.open();
  EXPECT_EQ(code_of(plain), 7);
  EXPECT_EQ(code_of(daemon), 7);
  EXPECT_NE(arena_.used_bytes(), 0u);
  adopt_others();
  EXPECT_EQ(arena_.used_bytes(), 0u);
  EXPECT_EQ(taken_bytes(), 0u);
}

TEST_F(AdoptionOfChildren, OfTheirOwnKeepThemToo) {
  const Gate gate;
  int answer[2];
  ASSERT_EQ(pipe(answer), 0);
  ASSERT_EQ(adopt(pages_.data(), pages_.bytes()), Status::ok) << message_;
  const int left = forked([&] {
    if (fork() != 0) _exit(7);
    gate.pass();
    const char word = holds(pages_.data(), pages_.bytes(), 8) ? 'y' : 'n';
    (void)!write(answer[1], &word, 1);
    _exit(0);
  });
  EXPECT_TRUE(WIFEXITED(left) && WEXITSTATUS(left) == 7) << left;
  ASSERT_EQ(give_back(pages_.data(), pages_.bytes()), Status::ok) << message_;
  adopt_others();
  gate.open();
  char word = 0;
  EXPECT_EQ(read(answer[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  close(answer[0]);
  close(answer[1]);
}

TEST_F(AdoptionOfChildren, ThatExecKeepNothing) {
  ASSERT_EQ(adopt(pages_.data(), pages_.bytes()), Status::ok) << message_;
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);
  }
  ASSERT_EQ(give_back(pages_.data(), pages_.bytes()), Status::ok) << message_;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (taken_bytes() != 0 && std::chrono::steady_clock::now() < deadline) adopt_others();
  EXPECT_EQ(taken_bytes(), 0u);
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(code_of(child), 1000 + SIGKILL);
}

/// A worker that lives for long must not make each later adoption cost memory.
TEST_F(AdoptionOfChildren, KeepOnlyWhatWasAdoptedWhenTheyWereForked) {
  const Gate gate;
  ASSERT_EQ(adopt(pages_.page(8), 8 * kPage), Status::ok) << message_;
  const pid_t child = start(gate);
  const std::size_t before = taken_bytes();
  for (int round = 0; round < 40; ++round) {
    ASSERT_EQ(adopt(pages_.page(17), 30 * kPage), Status::ok) << message_;
    ASSERT_EQ(give_back(pages_.page(17), 30 * kPage), Status::ok) << message_;
    EXPECT_EQ(taken_bytes(), before);
  }
  ASSERT_EQ(give_back(pages_.page(8), 8 * kPage), Status::ok) << message_;
  EXPECT_EQ(taken_bytes(), before);
  for (int round = 0; round < 40; ++round) {
    ASSERT_EQ(adopt(pages_.page(4), 20 * kPage), Status::ok) << message_;
    std::memset(pages_.page(4), round, 20 * kPage);
    EXPECT_TRUE(is_one_memory(pages_.page(10)));
    ASSERT_EQ(give_back(pages_.page(4), 20 * kPage), Status::ok) << message_;
    EXPECT_EQ(taken_bytes(), before);
  }
  gate.open();
  EXPECT_EQ(code_of(child), 7);
  adopt_others();
  EXPECT_EQ(taken_bytes(), 0u);
  EXPECT_EQ(arena_.used_bytes(), 0u);
}

/// There is one place for pages that a live neighbour shares. The child sees what is stored there, as before.
TEST_F(AdoptionOfChildren, DoNotPreventThatSharedPagesAreAdoptedAgain) {
  const Gate gate;
  std::byte* const left = pages_.data() + 100;
  std::byte* const right = pages_.page(20) + 50;
  const auto left_bytes = static_cast<std::size_t>(right - left);
  ASSERT_EQ(adopt(left, left_bytes), Status::ok) << message_;
  ASSERT_EQ(adopt(right, 30 * kPage), Status::ok) << message_;
  const pid_t child = start(gate);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(give_back(left, left_bytes), Status::ok) << message_;
    ASSERT_EQ(adopt(pages_.page(6), right - pages_.page(6)), Status::ok) << message_;
    ASSERT_EQ(adopt(left, left_bytes), Status::ok) << message_;
    EXPECT_TRUE(is_one_memory(left) && is_one_memory(pages_.page(10)));
    ASSERT_EQ(give_back(pages_.page(6), right - pages_.page(6)), Status::ok) << message_;
  }
  ASSERT_EQ(give_back(right, 30 * kPage), Status::ok) << message_;
  ASSERT_EQ(give_back(left, left_bytes), Status::ok) << message_;
  EXPECT_TRUE(holds(pages_.data(), pages_.bytes(), 8));
  gate.open();
  EXPECT_EQ(code_of(child), 7);
  adopt_others();
  EXPECT_EQ(taken_bytes(), 0u);
}

/// Without a descriptor the end of the child cannot be seen: then its pages stay.
TEST_F(AdoptionOfChildren, KeepTheirContentsWhereNoDescriptorIsLeft) {
  const Gate gate;
  ASSERT_EQ(adopt(pages_.data(), pages_.bytes()), Status::ok) << message_;
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const pid_t child = start(gate);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_EQ(give_back(pages_.data(), pages_.bytes()), Status::ok) << message_;
  std::memset(pages_.data(), 0xee, pages_.bytes());
  adopt_others();
  gate.open();
  EXPECT_EQ(code_of(child), 7);
}

/// With a context its arena goes, not what its children see.
TEST_F(AdoptionOfChildren, KeepTheirContentsAfterTheArena) {
  const Gate gate;
  pid_t child = -1;
  {
    Arena arena(kArenaBytesMin);
    Adoption adoption(arena);
    adoption.adopt(pages_.data(), pages_.bytes());
    child = start(gate);
  }
  std::memset(pages_.data(), 0xee, pages_.bytes());
  gate.open();
  EXPECT_EQ(code_of(child), 7);
}

}  // namespace
}  // namespace torii::shared_memory
