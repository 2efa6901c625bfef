// SPDX-License-Identifier: Apache-2.0
// The module as a library opens it: libfabric comes only when asked, and leaves the process as it was.
#include <gtest/gtest.h>

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/module.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kArenaBytes = 1 << 20;

/// Everything that a guest must leave alone.
struct Traces {
  std::vector<void*> handlers;
  std::multiset<std::string> environment;
  std::size_t threads = 0;
};

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return names;
  while (const dirent* const entry = readdir(open)) names.emplace_back(entry->d_name);
  closedir(open);
  return names;
}

Traces look() {
  Traces traces;
  for (int signal = 1; signal <= 31; ++signal) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0) traces.handlers.push_back(reinterpret_cast<void*>(now.sa_handler));
  }
  for (char** each = environ; *each != nullptr; ++each) traces.environment.insert(*each);
  traces.threads = entries("/proc/self/task").size();
  return traces;
}

bool is_loaded(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find(library) != std::string::npos;
}

/// The addresses, as the kernel prints them, on which this process listens.
std::set<std::string> listening() {
  std::set<std::string> own;
  for (const std::string& name : entries("/proc/self/fd")) {
    char target[64] = {};
    const std::string path = "/proc/self/fd/" + name;
    if (readlink(path.c_str(), target, sizeof(target) - 1) > 0) own.insert(target);
  }
  std::set<std::string> found;
  for (const char* const table : {"/proc/self/net/tcp", "/proc/self/net/tcp6", "/proc/self/net/udp"}) {
    std::ifstream file(table);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, skipped, inode;
      fields >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      if (state == "0A" && own.contains("socket:[" + inode + "]")) found.insert(local.substr(0, local.find(':')));
    }
  }
  return found;
}

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
    // A thread that was joined stays in the kernel's list for a moment.
    Traces after = look();
    for (int time = 0; time < 100 && after.threads != before.threads; ++time) {
      usleep(10'000);
      after = look();
    }
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

TEST(Module, IsMissedOnAllRanks) {
  const std::string folder = std::getenv("TORII_TEST_MODULES");
  setenv("TORII_TEST_MODULES", "/proc", 1);
  run_ranks_as_threads(2, [&](Exchange& exchange) {
    try {
      const auto transport = libfabric::open(exchange, {});
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_NE(std::string(error.what()).find("rank 0: the libfabric transport is not there"), std::string::npos);
    }
  });
  setenv("TORII_TEST_MODULES", folder.c_str(), 1);
}

}  // namespace
}  // namespace torii::tests
