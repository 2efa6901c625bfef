// SPDX-License-Identifier: Apache-2.0
// The UCX module as a library opens it: UCX comes only when asked, and leaves the process as it was but for one thread
// while engines over tcp are open.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/fabric/traces.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/ucx/module.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kArenaBytes = 1 << 20;

/// The first bytes of the functions that UCX would patch to learn of memory events.
std::vector<unsigned char> hooked_functions() {
  std::vector<unsigned char> bytes;
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  for (const char* const name : {"mmap", "munmap", "mremap", "brk", "madvise"}) {
    const auto* const code = static_cast<const unsigned char*>(dlsym(libc, name));
    if (code != nullptr) bytes.insert(bytes.end(), code, code + 16);
  }
  dlclose(libc);
  return bytes;
}

std::set<std::string> shared_files() {
  std::set<std::string> found;
  for (const auto& each : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = each.path().filename();
    if (name.find("ucx") != std::string::npos || name.find("posix") != std::string::npos) found.insert(name);
  }
  return found;
}

/// The set of signals that a thread of this process blocks, as the kernel prints it.
std::string blocked_signals(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("SigBlk:")) return line.substr(line.find_last_of(" \t") + 1);
  }
  return {};
}

/// All signals but those that nobody can block, and the two of glibc's own.
bool blocks_all(const std::string& thread) {
  constexpr unsigned long long kCannot = 1ULL << 8 | 1ULL << 18 | 1ULL << 31 | 1ULL << 32;
  return (std::stoull("0" + blocked_signals(thread), nullptr, 16) | kCannot) == ~0ULL;
}

TEST(UcxModule, ComesWhenAskedAndLeavesTheProcessAsItWas) {
  ASSERT_FALSE(is_loaded("libucp")) << "nothing here may link UCX";
  run_ranks_as_threads(2, [](Exchange&) {});  // a race checker starts a thread of its own with the first one
  const Traces before = look();
  const std::set<std::string> threads_before = threads();
  const std::vector<unsigned char> code_before = hooked_functions();
  const std::set<std::string> files_before = shared_files();
  testing::internal::CaptureStdout();
  for (const std::string provider : {"auto", "posix"}) {
    run_ranks_as_threads(2, [&](Exchange& exchange) {
      void* const arena = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      ucx::Options options;
      options.arena = static_cast<std::byte*>(arena);
      options.arena_bytes = kArenaBytes;
      options.engines = 2;
      options.provider = provider;
      options.source_addresses = {"127.0.0.1"};
      {
        const auto transport = ucx::open(exchange, options);
        gather_values(exchange, 0);
        EXPECT_EQ(transport->capabilities().name, "ucx");
        EXPECT_EQ(transport->mapped(1 - exchange.rank(), 0), nullptr);
        const std::set<std::string> expected =
            provider == "auto" ? std::set<std::string>{"0100007F"} : std::set<std::string>{};
        EXPECT_EQ(listening(), expected) << provider;
        EXPECT_EQ(shared_files(), files_before);
        if (exchange.rank() == 0) {
          // Two ranks, and what UCX has started.
          std::size_t of_ucx = 0;
          for (const std::string& thread : threads()) of_ucx += !threads_before.contains(thread) && blocks_all(thread);
          EXPECT_EQ(threads().size(), threads_before.size() + 2 + of_ucx);
          EXPECT_LE(of_ucx, 1u);
        }
        gather_values(exchange, 0);
      }
      munmap(arena, kArenaBytes);
    });
    EXPECT_TRUE(is_loaded("libucp"));
    const Traces after = look_again(before);
    EXPECT_EQ(after.threads, before.threads) << provider;
    EXPECT_EQ(after.handlers, before.handlers) << provider;
    EXPECT_EQ(after.environment, before.environment) << provider;
    EXPECT_TRUE(listening().empty());
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(hooked_functions(), code_before);
}

TEST(UcxModule, ListsProviders) {
  bool usable = false;
  for (const ucx::ProviderReport& one : ucx::providers({"127.0.0.1"})) {
    EXPECT_TRUE(one.usable || !one.reason.empty()) << one.name;
    usable = usable || one.chosen;
  }
  EXPECT_TRUE(usable);
}

TEST(UcxModule, ErrorsOfTheModuleKeepTheirStatus) {
  run_ranks_as_threads(2, [&](Exchange& exchange) {
    ucx::Options options;
    options.provider = "nothing";
    try {
      const auto transport = ucx::open(exchange, options);
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_EQ(error.rank(), 0);
    }
  });
}

}  // namespace
}  // namespace torii::tests
