// SPDX-License-Identifier: Apache-2.0
// What cannot be adopted, what goes wrong half-way, and memory that was freed too early: contents are never lost.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>

#include "runtime/base/descriptor.hpp"
#include "tests/transports/shared_memory/adoption_fixture.hpp"

namespace torii::shared_memory {
namespace {

/// A mapping of 4 pages of some kind.
class Mapped {
 public:
  Mapped(int protection, int flags, int fd = -1) : data_(mmap(nullptr, 4 * kPage, protection, flags, fd, 0)) {}
  ~Mapped() {
    if (data_ != MAP_FAILED) munmap(data_, 4 * kPage);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

TEST_F(AdoptionTest, RefusesWhatIsNotPrivateAnonymousMemory) {
  constexpr int kReadWrite = PROT_READ | PROT_WRITE;
  const Mapped shared(kReadWrite, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_EQ(adopt(shared.data(), 9000), Status::unsupported);
  EXPECT_TRUE(says("a shared mapping")) << message_;
  const Descriptor file(memfd_create("torii-test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 4 * kPage), 0);
  const Mapped of_file(kReadWrite, MAP_PRIVATE, file.get());
  EXPECT_EQ(adopt(of_file.data(), 1), Status::unsupported);
  EXPECT_TRUE(says("a private mapping of a file, /memfd:torii-test")) << message_;
  const Mapped read_only(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  EXPECT_EQ(adopt(read_only.data(), 1), Status::unsupported);
  EXPECT_TRUE(says("not both readable and writable")) << message_;
  const Mapped code(kReadWrite | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
  if (code.data() != MAP_FAILED) {
    EXPECT_EQ(adopt(code.data(), 1), Status::unsupported);
    EXPECT_TRUE(says("executable")) << message_;
  }
  const Mapped locked(kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS);
  // By number: sanitizers make mlock do nothing.
  ASSERT_EQ(syscall(SYS_mlock, static_cast<std::byte*>(locked.data()) + kPage, kPage), 0);
  EXPECT_EQ(adopt(locked.data(), 4 * kPage), Status::unsupported);
  EXPECT_TRUE(says("locked (mlock)")) << message_;
  EXPECT_EQ(adopt(locked.data(), kPage), Status::ok) << "its neighbour is not locked: " << message_;
  EXPECT_EQ(give_back(locked.data(), kPage), Status::ok) << message_;
  const int on_stack = 0;
  EXPECT_EQ(adopt(&on_stack, sizeof(on_stack)), Status::unsupported);
  EXPECT_TRUE(says("the stack")) << message_;
  EXPECT_EQ(adopt(arena_.base(), 1), Status::unsupported);
  const OwnPages pages(2);
  EXPECT_EQ(adopt(pages.page(1), kPage + 1), Status::unsupported) << "into the page that cannot be touched";
  EXPECT_EQ(adopt(reinterpret_cast<void*>(kPage), 1), Status::unsupported);
  EXPECT_TRUE(says("0x1000 is not mapped")) << message_;
  EXPECT_EQ(arena_.used_bytes(), 0u);
}

/// Coroutines have such stacks. The thread would wait for itself.
TEST_F(AdoptionTest, RefusesTheStackOfTheCallerWhereverItCameFrom) {
  constexpr std::size_t kStackPages = 1024;  // ThreadSanitizer asks a megabyte of every stack
  const OwnPages pages(kStackPages + 1);
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstack(&attributes, pages.data(), kStackPages * kPage), 0);
  Status status = Status::ok;
  std::function<void()> body = [&] { status = adopt(pages.data() + kStackPages * kPage - 64, 128); };
  pthread_t thread{};
  const auto run = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(status, Status::unsupported);
  EXPECT_NE(message_.find("stack of the calling thread"), std::string::npos) << message_;
}

TEST_F(AdoptionTest, RefusesHugePages) {
  const Mapped huge(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
  if (huge.data() == MAP_FAILED)
    GTEST_SKIP() << "no huge pages here; tests/transports/shared_memory/test_mappings.cpp knows their line";
  EXPECT_EQ(adopt(huge.data(), 1), Status::unsupported);
  EXPECT_TRUE(says("huge pages")) << message_;
}

TEST_F(AdoptionTest, RefusesWhatIsNoRange) {
  const OwnPages pages(1);
  EXPECT_EQ(adopt(nullptr, 1), Status::invalid_argument);
  EXPECT_EQ(adopt(pages.data(), 0), Status::invalid_argument);
  EXPECT_TRUE(says("cannot adopt 0 bytes")) << message_;
  EXPECT_EQ(adopt(pages.data(), SIZE_MAX), Status::invalid_argument);
}

TEST_F(AdoptionTest, TwoArenasCannotHaveOnePage) {
  const OwnPages pages(3);
  fill(pages.data(), pages.bytes(), 1);
  Arena other(kArenaBytesMin);
  Adoption adoption(other);
  adoption.adopt(pages.page(1), 1);
  EXPECT_EQ(adopt(pages.data(), pages.bytes()), Status::unsupported);
  EXPECT_TRUE(says("a shared mapping, /memfd:torii-arena")) << message_;
  EXPECT_EQ(adopt(pages.page(2), kPage), Status::ok) << message_;
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 1));
}

TEST_F(AdoptionTest, AFullArenaChangesNothing) {
  const OwnPages pages(40);
  fill(pages.data(), pages.bytes(), 2);
  const std::size_t all = arena_.allocate(kArenaBytesMin, Backing::on_touch);
  EXPECT_EQ(adopt(pages.data(), pages.bytes()), Status::no_resource);
  EXPECT_TRUE(says("TORII_ARENA")) << message_;
  arena_.free(all);
  const std::size_t most = arena_.allocate(kArenaBytesMin - 5 * 65536, Backing::on_touch);
  EXPECT_EQ(adopt(pages.data(), pages.bytes()), Status::ok) << "there is room without margins: " << message_;
  EXPECT_TRUE(is_one_memory(pages.page(39)));
  EXPECT_EQ(give_back(pages.data(), pages.bytes()), Status::ok) << message_;
  arena_.free(most);
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 2));
  EXPECT_EQ(arena_.used_bytes(), 0u);
}

TEST_F(AdoptionTest, NoRoomBesideASharedPageIsSaid) {
  const OwnPages pages(2048);
  ASSERT_EQ(adopt(pages.page(0), 1), Status::ok) << message_;
  EXPECT_EQ(adopt(pages.data(), pages.bytes()), Status::no_resource);
  EXPECT_TRUE(says("share some with other registered memory")) << message_;
  EXPECT_EQ(adopt(pages.page(1), 2047 * kPage), Status::ok) << message_;
  EXPECT_EQ(adopt(pages.page(0), 2 * kPage), Status::no_resource) << "its pages lie in two windows";
  EXPECT_EQ(give_back(pages.page(1), 2047 * kPage), Status::ok) << message_;
  EXPECT_EQ(give_back(pages.page(0), 1), Status::ok) << message_;
  EXPECT_EQ(adopt(pages.data(), pages.bytes()), Status::ok) << message_;
  EXPECT_TRUE(is_one_memory(pages.page(2047)));
}

/// Lowers the limit of address space to what is in use, for as long as it lives.
class NoMoreAddresses {
 public:
  NoMoreAddresses() {
    getrlimit(RLIMIT_AS, &before_);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit now = {pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 64 * kPage, before_.rlim_max};
    setrlimit(RLIMIT_AS, &now);
  }
  ~NoMoreAddresses() { setrlimit(RLIMIT_AS, &before_); }
  NoMoreAddresses(const NoMoreAddresses&) = delete;
  NoMoreAddresses& operator=(const NoMoreAddresses&) = delete;

 private:
  rlimit before_{};
};

TEST_F(AdoptionTest, NoAddressSpaceChangesNothing) {
  if (kUnderThreadSanitizer || kUnderAddressSanitizer) GTEST_SKIP() << "sanitizers need address space themselves";
  const OwnPages pages(512);
  fill(pages.data(), pages.bytes(), 3);
  {
    const NoMoreAddresses limit;
    EXPECT_EQ(adopt(pages.data(), pages.bytes()), Status::no_resource);
  }
  EXPECT_TRUE(says("ulimit -v")) << message_;
  EXPECT_EQ(as_peer(pages.data(), 1), nullptr);
  EXPECT_EQ(arena_.used_bytes(), 0u);
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 3));
  ASSERT_EQ(adopt(pages.data(), pages.bytes()), Status::ok) << message_;
  {
    const NoMoreAddresses limit;
    EXPECT_EQ(give_back(pages.data(), pages.bytes()), Status::no_resource);
  }
  EXPECT_TRUE(says("stay shared memory, contents kept")) << message_;
  EXPECT_EQ(as_peer(pages.data(), 1), nullptr) << "given back as far as calls are concerned";
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 3));
  EXPECT_EQ(adopt(pages.data(), 1), Status::unsupported);
  const OwnPages others(8);
  ASSERT_EQ(adopt(others.data(), others.bytes()), Status::ok) << message_;
  std::memset(as_peer(others.data(), others.bytes()), 255, others.bytes());
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 3)) << "their place in the arena is nobody else's";
}

/// Takes all mappings that the kernel grants a process but `left`.
class FewMappings {
 public:
  explicit FewMappings(std::size_t left) : pages_(2 * 70'000 * kPage) {
    data_ =
        static_cast<std::byte*>(mmap(nullptr, pages_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    std::size_t made = 0;
    while (made < pages_ / kPage / 2 && mprotect(data_ + 2 * made * kPage, kPage, PROT_READ) == 0) ++made;
    // Each page that becomes as its neighbours again gives two back.
    exhausted_ = made < pages_ / kPage / 2;
    for (std::size_t given = 0; exhausted_ && given < left; given += 2)
      mprotect(data_ + 2 * --made * kPage, kPage, PROT_NONE);
  }
  ~FewMappings() { munmap(data_, pages_); }
  FewMappings(const FewMappings&) = delete;
  FewMappings& operator=(const FewMappings&) = delete;
  bool exhausted() const { return exhausted_; }

 private:
  std::size_t pages_;
  std::byte* data_;
  bool exhausted_ = false;
};

/// The kernel refuses at another call with every number of mappings that are left.
TEST_F(AdoptionTest, NoMappingsChangesNothing) {
  if (kUnderThreadSanitizer || kUnderAddressSanitizer) GTEST_SKIP() << "sanitizers need mappings themselves";
  int adoptions_refused = 0, returns_refused = 0;
  for (std::size_t left = 0; left <= 12; left += 2) {
    const OwnPages pages(24);
    fill(pages.data(), pages.bytes(), 4);
    // Two parts are exchanged, one on each side of this page: the second may be refused after the first.
    ASSERT_EQ(adopt(pages.page(12), kPage), Status::ok) << message_;
    Status status = Status::ok;
    {
      const FewMappings few(left);
      if (!few.exhausted()) GTEST_SKIP() << "vm.max_map_count is too large to use up";
      status = adopt(pages.page(8), 8 * kPage);
    }
    ASSERT_TRUE(holds(pages.data(), pages.bytes(), 4)) << left << " mappings left";
    ASSERT_EQ(as_peer(pages.page(8), 1) != nullptr, status == Status::ok);
    ASSERT_TRUE(is_one_memory(pages.page(12)));
    if (status == Status::ok) {
      ASSERT_EQ(give_back(pages.page(8), 8 * kPage), Status::ok) << message_;
    } else {
      ++adoptions_refused;
      ASSERT_EQ(status, Status::no_resource) << message_;
    }
    ASSERT_EQ(give_back(pages.page(12), kPage), Status::ok) << message_;
    ASSERT_TRUE(holds(pages.data(), pages.bytes(), 4)) << left << " mappings left";
  }
  for (std::size_t left = 0; left <= 12; left += 2) {
    const OwnPages more(16);
    fill(more.data(), more.bytes(), 5);
    ASSERT_EQ(adopt(more.page(4), 4 * kPage), Status::ok) << message_;
    Status status = Status::ok;
    {
      const FewMappings few(left);
      status = give_back(more.page(4), 4 * kPage);
    }
    if (status != Status::ok) ++returns_refused;
    ASSERT_TRUE(status == Status::ok || status == Status::no_resource) << message_;
    ASSERT_TRUE(holds(more.data(), more.bytes(), 5)) << left << " mappings left";
  }
  EXPECT_GT(adoptions_refused, 0);
  EXPECT_GT(returns_refused, 0);
}

/// Of two parts that are exchanged the kernel refuses the second, because its pages are sealed: the first comes back.
TEST_F(AdoptionTest, ARefusalHalfWayIsUndone) {
  constexpr long kMseal = 462;                      // the same on all architectures; older headers do not name it
  static OwnPages* const pages = new OwnPages(12);  // stays: what is sealed cannot be unmapped
  fill(pages->data(), pages->bytes(), 9);
  ASSERT_EQ(adopt(pages->page(5), kPage), Status::ok) << message_;
  const std::size_t used_bytes = arena_.used_bytes();
  if (syscall(kMseal, pages->page(6), kPage, 0) != 0) GTEST_SKIP() << "the kernel cannot seal pages";
  EXPECT_EQ(adopt(pages->page(2), 6 * kPage), Status::no_resource);
  EXPECT_TRUE(says("cannot put other pages under")) << message_;
  EXPECT_EQ(as_peer(pages->page(2), 1), nullptr);
  EXPECT_TRUE(is_one_memory(pages->page(5)));
  EXPECT_TRUE(holds(pages->data(), pages->bytes(), 9));
  EXPECT_EQ(arena_.used_bytes(), used_bytes);
  EXPECT_EQ(adopt(pages->page(2), 4 * kPage), Status::ok) << "private again, so it can be adopted: " << message_;
  EXPECT_TRUE(is_one_memory(pages->page(2)));
}

TEST_F(AdoptionTest, UnmappedTooEarlyIsNoticed) {
  auto pages = std::make_unique<OwnPages>(8);
  std::byte* const buffer = pages->page(2);
  ASSERT_EQ(adopt(buffer, 3 * kPage), Status::ok) << message_;
  // Others' memory comes to stand at the same address.
  ASSERT_EQ(mmap(buffer, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), buffer);
  fill(buffer, 3 * kPage, 6);
  EXPECT_EQ(adopt(buffer, kPage), Status::invalid_argument);
  EXPECT_TRUE(says("deregister it before it is registered anew")) << message_;
  EXPECT_EQ(give_back(buffer, 3 * kPage), Status::invalid_argument);
  EXPECT_TRUE(says("12288 bytes")) << message_;
  EXPECT_TRUE(holds(buffer, 3 * kPage, 6));
  EXPECT_EQ(arena_.used_bytes(), 0u);
  ASSERT_EQ(adopt(buffer, 3 * kPage), Status::ok) << message_;
  EXPECT_TRUE(is_one_memory(buffer));
}

TEST_F(AdoptionTest, MovedTooEarlyKeepsItsContents) {
  const OwnPages pages(8);
  const OwnPages elsewhere(4);
  std::byte* const buffer = pages.page(1);
  fill(buffer, 4 * kPage, 7);
  ASSERT_EQ(adopt(buffer, 4 * kPage), Status::ok) << message_;
  // What realloc does to a big block.
  ASSERT_NE(syscall(SYS_mremap, buffer, 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere.data()), -1);
  EXPECT_EQ(give_back(buffer, 4 * kPage), Status::invalid_argument);
  EXPECT_TRUE(says("moved")) << message_;
  const std::size_t anew = arena_.allocate(kArenaBytesMin / 2, Backing::on_touch);
  std::memset(arena_.base() + anew, 255, std::size_t{8} << 20);
  EXPECT_TRUE(holds(elsewhere.data(), 4 * kPage, 7)) << "private, and nothing of the arena any more";
}

}  // namespace
}  // namespace torii::shared_memory
