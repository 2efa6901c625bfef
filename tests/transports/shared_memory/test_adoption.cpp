// SPDX-License-Identifier: Apache-2.0
// Adopted memory: one memory for rank and peers, contents kept there and back, shared pages, overlaps, threads.
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/support/test_run.hpp"
#include "tests/transports/shared_memory/adoption_fixture.hpp"
#include "transports/shared_memory/page_exchange.hpp"

namespace {
std::atomic<int> hooked = 0;
}

/// What communication libraries put in the place of mremap: it wants to know what goes away, and forgets the fifth
/// argument.
extern "C" void* mremap(void* old, std::size_t old_bytes, std::size_t new_bytes, int flags, ...) noexcept {
  ++hooked;
  if ((flags & MREMAP_FIXED) == 0)
    return reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, new_bytes, flags));
  errno = EINVAL;
  return MAP_FAILED;
}

namespace torii::shared_memory {
namespace {

TEST_F(AdoptionTest, HooksOfOtherLibrariesAreToldAndNotTrusted) {
  const OwnPages pages(2);
  const int before = hooked;
  ASSERT_EQ(adopt(pages.data(), pages.bytes()), Status::ok) << message_;
  EXPECT_EQ(hooked, before + 1);
  ASSERT_EQ(give_back(pages.data(), pages.bytes()), Status::ok) << message_;
  EXPECT_EQ(hooked, before + 2);
}

TEST_F(AdoptionTest, ContentsStayAndPeersSeeThem) {
  const OwnPages pages(70);
  fill(pages.data(), pages.bytes(), 1);
  std::byte* const buffer = pages.data() + 5000;
  constexpr std::size_t kBytes = 60 * kPage;
  ASSERT_EQ(adopt(buffer, kBytes), Status::ok) << message_;
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 1)) << "neighbours on the edge pages included";
  std::byte* const there = as_peer(buffer, kBytes);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(std::memcmp(there, buffer, kBytes), 0);
  EXPECT_TRUE(is_one_memory(buffer));
  EXPECT_TRUE(is_one_memory(buffer + kBytes - 1));
  EXPECT_EQ(as_peer(pages.data(), kBytes), nullptr) << "the first page was not asked for";
  EXPECT_EQ(as_peer(buffer, SIZE_MAX), nullptr);
  there[77] = std::byte{42};
  ASSERT_EQ(give_back(buffer, kBytes), Status::ok) << message_;
  EXPECT_EQ(buffer[77], std::byte{42});
  EXPECT_EQ(as_peer(buffer, 1), nullptr);
  EXPECT_EQ(arena_.used_bytes(), 0u);
  there[78] = std::byte{43};
  buffer[77] = static_cast<std::byte>(((5000 + 77) * 31 + (5000 + 77) / 251 + 1) & 255);
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 1)) << "the pages are private again";
}

TEST_F(AdoptionTest, BuffersMayShareAPage) {
  const OwnPages pages(9);
  fill(pages.data(), pages.bytes(), 2);
  std::byte* const left = pages.data() + 100;
  std::byte* const right = pages.page(4) + 2000;  // left ends and right begins on page 4
  const std::size_t left_bytes = static_cast<std::size_t>(right - left);
  constexpr std::size_t kRightBytes = 3 * kPage;
  for (const bool left_first : {true, false}) {
    ASSERT_EQ(adopt(left_first ? left : right, left_first ? left_bytes : kRightBytes), Status::ok) << message_;
    ASSERT_EQ(adopt(left_first ? right : left, left_first ? kRightBytes : left_bytes), Status::ok) << message_;
    EXPECT_NE(as_peer(left, left_bytes), nullptr);
    EXPECT_NE(as_peer(right, kRightBytes), nullptr);
    EXPECT_NE(as_peer(left, left_bytes + kRightBytes), nullptr) << "side by side in the arena too";
    ASSERT_EQ(give_back(left, left_bytes), Status::ok) << message_;
    EXPECT_EQ(as_peer(left, left_bytes), nullptr);
    EXPECT_NE(as_peer(right, kRightBytes), nullptr);
    EXPECT_TRUE(is_one_memory(right));
    ASSERT_EQ(give_back(right, kRightBytes), Status::ok) << message_;
    EXPECT_TRUE(holds(pages.data(), pages.bytes(), 2));
    EXPECT_EQ(arena_.used_bytes(), 0u);
  }
}

/// Many ranges that overlap, against a model that counts pages.
TEST_F(AdoptionTest, RandomOverlapsAreCounted) {
  for (const tests::Seed& seed : tests::seeds_of("test_adoption", 1)) {
    SCOPED_TRACE(seed);
    constexpr std::size_t kPages = 48;
    const OwnPages pages(kPages);
    std::vector<std::byte> model(pages.bytes());
    fill(pages.data(), pages.bytes(), 3);
    std::memcpy(model.data(), pages.data(), model.size());
    std::array<int, kPages> counts{};
    std::vector<std::pair<std::size_t, std::size_t>> live;  // offset, bytes
    std::mt19937_64 random(seed.value);
    const auto count = [&](std::size_t offset, std::size_t bytes, int by) {
      for (std::size_t page = offset / kPage; page <= (offset + bytes - 1) / kPage; ++page) counts[page] += by;
    };
    for (int step = 0; step < 400; ++step) {
      if (live.size() > 6 || (!live.empty() && random() % 2 == 0)) {
        const auto victim = live.begin() + static_cast<std::ptrdiff_t>(random() % live.size());
        ASSERT_EQ(give_back(pages.data() + victim->first, victim->second), Status::ok) << message_ << ", step " << step;
        count(victim->first, victim->second, -1);
        live.erase(victim);
      } else {
        const std::size_t offset = random() % (pages.bytes() - 1);
        const std::size_t bytes = 1 + random() % std::min(pages.bytes() - offset, 10 * kPage);
        ASSERT_EQ(adopt(pages.data() + offset, bytes), Status::ok) << message_ << ", step " << step;
        count(offset, bytes, 1);
        live.emplace_back(offset, bytes);
      }
      for (std::size_t page = 0; page < kPages; ++page) {
        ASSERT_EQ(as_peer(pages.page(page), kPage) != nullptr, counts[page] > 0)
            << "page " << page << ", step " << step;
      }
      for (const auto& [offset, bytes] : live) ASSERT_NE(as_peer(pages.data() + offset, bytes), nullptr) << step;
      ASSERT_EQ(std::memcmp(pages.data(), model.data(), model.size()), 0) << "step " << step;
      const std::size_t written = random() % pages.bytes();
      std::byte* const through = as_peer(pages.data() + written, 1);
      model[written] ^= std::byte{0x5a};
      (through != nullptr ? *through : pages.data()[written]) = model[written];
    }
    for (const auto& [offset, bytes] : live) ASSERT_EQ(give_back(pages.data() + offset, bytes), Status::ok) << message_;
    EXPECT_EQ(std::memcmp(pages.data(), model.data(), model.size()), 0);
    EXPECT_EQ(arena_.used_bytes(), 0u);
  }
}

TEST_F(AdoptionTest, FarApartInMemoryIsFineToo) {
  std::vector<std::unique_ptr<OwnPages>> all;
  std::vector<std::unique_ptr<OwnPages>> between;
  for (int i = 0; i < 24; ++i) {
    all.push_back(std::make_unique<OwnPages>(3));
    between.push_back(std::make_unique<OwnPages>(2048));
    fill(all.back()->data(), all.back()->bytes(), static_cast<unsigned>(i));
  }
  for (const auto& pages : all) ASSERT_EQ(adopt(pages->data(), pages->bytes()), Status::ok) << message_;
  for (const auto& pages : all) EXPECT_TRUE(is_one_memory(pages->page(1)));
  const std::size_t left = arena_.allocate(kArenaBytesMin / 4);
  arena_.free(left);
  for (const auto& pages : all) ASSERT_EQ(give_back(pages->data(), pages->bytes()), Status::ok) << message_;
  for (unsigned i = 0; i < all.size(); ++i) EXPECT_TRUE(holds(all[i]->data(), all[i]->bytes(), i));
  EXPECT_EQ(arena_.used_bytes(), 0u);
}

TEST_F(AdoptionTest, MallocedMemoryGoesThroughReallocAndFree) {
  if (kUnderAddressSanitizer || kUnderThreadSanitizer) GTEST_SKIP() << "sanitizers refuse reads of a whole heap page";
  for (const std::size_t bytes : {std::size_t{3000}, std::size_t{100'000}, std::size_t{3} << 20}) {
    auto* data = static_cast<std::byte*>(std::malloc(bytes));
    auto* const neighbour = static_cast<std::byte*>(std::malloc(bytes));
    fill(data, bytes, 4);
    fill(neighbour, bytes, 5);
    ASSERT_EQ(adopt(data, bytes), Status::ok) << message_;
    ASSERT_EQ(adopt(neighbour, bytes), Status::ok) << message_;
    EXPECT_TRUE(is_one_memory(data) && is_one_memory(neighbour));
    ASSERT_EQ(give_back(data, bytes), Status::ok) << message_;
    data = static_cast<std::byte*>(std::realloc(data, 3 * bytes));
    EXPECT_TRUE(holds(data, bytes, 4));
    EXPECT_TRUE(holds(neighbour, bytes, 5));
    EXPECT_TRUE(is_one_memory(neighbour));
    std::free(data);
    ASSERT_EQ(give_back(neighbour, bytes), Status::ok) << message_;
    EXPECT_TRUE(holds(neighbour, bytes, 5));
    std::free(neighbour);
  }
  EXPECT_EQ(arena_.used_bytes(), 0u);
}

TEST(Adoption, ContentsOutliveTheContext) {
  const OwnPages pages(20);
  fill(pages.data(), pages.bytes(), 6);
  {
    Arena arena(kArenaBytesMin);
    Adoption adoption(arena);
    adoption.adopt(pages.data() + 1, 7 * kPage);
    adoption.adopt(pages.page(12), kPage);
  }
  EXPECT_TRUE(holds(pages.data(), pages.bytes(), 6));
  const auto at = reinterpret_cast<std::uintptr_t>(pages.data());
  EXPECT_EQ(why_not_adoptable(read_mappings(), {at, at + pages.bytes()}), "") << "all private again";
}

TEST_F(AdoptionTest, FindIsRightWhileOthersChange) {
  const OwnPages stable(4);
  const OwnPages changing(64);
  ASSERT_EQ(adopt(stable.data(), stable.bytes()), Status::ok) << message_;
  const auto offset = adoption_.find(stable.data(), stable.bytes());
  std::atomic<bool> stop = false;
  std::atomic<long> looks = 0;
  std::atomic<long> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        if (adoption_.find(stable.data(), stable.bytes()) != offset) ++wrong;
        ++looks;
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    for (std::size_t page = 0; page < 64; page += 2) ASSERT_EQ(adopt(changing.page(page), 1), Status::ok) << message_;
    for (std::size_t page = 0; page < 64; page += 2) ASSERT_EQ(give_back(changing.page(page), 1), Status::ok);
  }
  while (looks.load() < 1000) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

/// Where userfaultfd is granted, a thread that writes on the pages loses nothing.
TEST_F(AdoptionTest, WritersWait) {
  const OwnPages pages(32);
  auto& counter = *reinterpret_cast<std::uint64_t*>(pages.page(20) + 64);
  if (kUnderThreadSanitizer) GTEST_SKIP() << "copying what another thread writes is a race by its rules";
  if (!WriteHold({reinterpret_cast<std::uintptr_t>(pages.data()), reinterpret_cast<std::uintptr_t>(pages.page(32))})
           .granted()) {
    GTEST_SKIP() << "no userfaultfd for this process";
  }
  std::atomic<bool> stop = false;
  std::uint64_t written = 0;
  std::thread writer([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
      ++written;
    }
  });
  Status status = Status::ok;
  for (int round = 0; round < 200 && status == Status::ok; ++round) {
    status = adopt(pages.data(), pages.bytes());
    if (status == Status::ok) status = give_back(pages.data(), pages.bytes());
  }
  stop = true;
  writer.join();
  EXPECT_EQ(status, Status::ok) << message_;
  EXPECT_EQ(counter, written);
}

}  // namespace
}  // namespace torii::shared_memory
