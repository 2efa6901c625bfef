// SPDX-License-Identifier: Apache-2.0
// The module as a library opens it: libfabric comes only when asked, and leaves the process as it was.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <set>
#include <string>

#include "tests/fabric/traces.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/module.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kArenaBytes = 1 << 20;

TEST(Module, ComesWhenAskedAndLeavesTheProcessAsItWas) {
  ASSERT_FALSE(is_loaded("libfabric")) << "nothing here may link libfabric";
  run_ranks_as_threads(2, [](Exchange&) {});  // a race checker starts a thread of its own with the first one
  const Traces before = look();
  for (const std::string provider : {"auto", "net"}) {
    run_ranks_as_threads(2, [&](Exchange& exchange) {
      void* const arena = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      libfabric::Options options;
      options.arena = static_cast<std::byte*>(arena);
      options.arena_bytes = kArenaBytes;
      options.engines = 2;
      options.provider = provider;
      options.source_addresses = {"127.0.0.1"};
      {
        const auto transport = libfabric::open(exchange, options);
        gather_values(exchange, 0);
        EXPECT_EQ(transport->capabilities().name, "libfabric");
        EXPECT_EQ(transport->mapped(1 - exchange.rank(), 0), nullptr);
        EXPECT_EQ(listening(), std::set<std::string>{"0100007F"}) << provider;  // 127.0.0.1
        gather_values(exchange, 0);
      }
      munmap(arena, kArenaBytes);
    });
    EXPECT_TRUE(is_loaded("libfabric"));
    const Traces after = look_again(before);
    EXPECT_EQ(after.threads, before.threads) << provider;
    EXPECT_EQ(after.handlers, before.handlers) << provider;
    EXPECT_EQ(after.environment, before.environment) << provider;
    EXPECT_TRUE(listening().empty());
  }
}

TEST(Module, ListsProviders) {
  bool usable = false;
  for (const libfabric::ProviderReport& one : libfabric::providers({"127.0.0.1"})) {
    EXPECT_TRUE(one.usable || !one.reason.empty()) << one.name;
    usable = usable || one.chosen;
  }
  EXPECT_TRUE(usable);
}

TEST(Module, ErrorsOfTheModuleKeepTheirStatus) {
  run_ranks_as_threads(2, [&](Exchange& exchange) {
    libfabric::Options options;
    options.provider = "nothing";
    try {
      const auto transport = libfabric::open(exchange, options);
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_EQ(error.rank(), 0);
    }
  });
}

}  // namespace
}  // namespace torii::tests
