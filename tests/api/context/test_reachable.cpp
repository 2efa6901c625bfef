// SPDX-License-Identifier: Apache-2.0
// What a context tells its calls about buffers: which of them peers can reach in place, and where.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>

#include "api/context/context.hpp"
#include "api/context/regions.hpp"

namespace torii {
namespace {

TEST(Reachable, AllocatedAndAdoptedMemoryIs) {
  constexpr std::size_t kPage = 4096;
  Context context(Settings::load("ARENA=256M"), JoinExchange{});
  auto* const allocated = static_cast<std::byte*>(context.allocate(10 * kPage));
  void* const pages = mmap(nullptr, 10 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const own = static_cast<std::byte*>(pages);
  const auto base = allocated - *context.reachable(allocated, 10 * kPage);
  EXPECT_FALSE(context.reachable(own, 1));
  Region* const plain = context.regions().add(own, 10 * kPage, false);
  EXPECT_FALSE(context.reachable(own, 1)) << "registered, not adopted";
  Region* const adopted = context.regions().add(own + kPage + 8, 5 * kPage, true);
  const auto offset = context.reachable(own + kPage + 8, 5 * kPage);
  ASSERT_TRUE(offset);
  EXPECT_FALSE(context.reachable(own + kPage + 8, 6 * kPage)) << "only in part";
  EXPECT_FALSE(context.reachable(own, 2 * kPage));
  own[kPage + 9] = std::byte{77};
  EXPECT_EQ(base[*offset + 1], std::byte{77});
  EXPECT_EQ(context.reachable(allocated, 10 * kPage), allocated - base);
  context.regions().remove(adopted);
  EXPECT_FALSE(context.reachable(own + kPage + 8, 1));
  EXPECT_EQ(own[kPage + 9], std::byte{77});
  context.regions().remove(plain);
  EXPECT_THROW(context.regions().remove(plain), Error);
  munmap(pages, 10 * kPage);
}

}  // namespace
}  // namespace torii
