// SPDX-License-Identifier: Apache-2.0
// The modules as a library opens them: libfabric and UCX come only when asked, and leave the process as it was, but for
// one thread of UCX's while engines over tcp are open.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/mman.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/fabric/traces.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/module.hpp"
#include "transports/ucx/module.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kArenaBytes = 1 << 20;

struct Module {
  std::string name;
  std::string library;                 ///< a file of this name is mapped once the module is open
  std::string on_sockets, without_ip;  ///< two of its providers; the second is nothing or listens on no address
  std::size_t threads_most;            ///< what the library starts of its own
  std::unique_ptr<Transport> (*open)(Bootstrap& bootstrap, const transports::EngineOptions& options);
  std::vector<transports::ProviderReport> (*list)(const std::vector<std::string>& source_addresses);
};
void PrintTo(const Module& module, std::ostream* stream) { *stream << module.name; }

template <class Options, auto kOpen>
std::unique_ptr<Transport> open_with(Bootstrap& bootstrap, const transports::EngineOptions& options) {
  Options own;
  static_cast<transports::EngineOptions&>(own) = options;
  return kOpen(bootstrap, own);
}

const Module kModules[] = {
#ifdef TORII_TEST_LIBFABRIC
    {"libfabric", "libfabric", "net", "", 0, open_with<libfabric::Options, libfabric::open>, libfabric::providers},
#endif
#ifdef TORII_TEST_UCX
    {"ucx", "libucp", "tcp", "posix", 1, open_with<ucx::Options, ucx::open>, ucx::providers},
#endif
};

/// The first bytes of the functions that a library would patch to learn of memory events.
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
    for (const char* const part : {"ucx", "posix", "fi_"}) {
      if (name.find(part) != std::string::npos) found.insert(name);
    }
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

class Modules : public testing::TestWithParam<Module> {};

TEST_P(Modules, ComeWhenAskedAndLeaveTheProcessAsItWas) {
  const Module& module = GetParam();
  ASSERT_FALSE(is_loaded(module.library)) << "nothing here may link it";
  run_ranks_as_threads(2, [](Bootstrap&) {});  // a race checker starts a thread of its own with the first one
  const Traces before = look();
  const std::set<std::string> threads_before = threads();
  const std::vector<unsigned char> code_before = hooked_functions();
  const std::set<std::string> files_before = shared_files();
  testing::internal::CaptureStdout();
  for (const std::string& provider : {std::string("auto"), module.on_sockets, module.without_ip}) {
    if (provider.empty()) continue;
    std::set<std::string> listens;
    if (provider != module.without_ip) listens.insert("0100007F");  // 127.0.0.1
    run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
      void* const arena = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      transports::EngineOptions options;
      options.arena = static_cast<std::byte*>(arena);
      options.arena_bytes = kArenaBytes;
      options.engines = 2;
      options.provider = provider;
      options.source_addresses = {"127.0.0.1"};
      {
        const auto transport = module.open(bootstrap, options);
        gather_values(bootstrap, 0);
        EXPECT_EQ(transport->capabilities().name, module.name);
        EXPECT_EQ(transport->mapped(1 - bootstrap.rank(), 0), nullptr);
        EXPECT_EQ(listening(), listens) << provider;
        EXPECT_EQ(shared_files(), files_before);
        if (bootstrap.rank() == 0) {
          // Two ranks, and what the library has started.
          std::size_t started = 0;
          for (const std::string& thread : threads()) started += !threads_before.contains(thread) && blocks_all(thread);
          EXPECT_EQ(threads().size(), threads_before.size() + 2 + started);
          EXPECT_LE(started, module.threads_most);
        }
        gather_values(bootstrap, 0);
      }
      munmap(arena, kArenaBytes);
    });
    EXPECT_TRUE(is_loaded(module.library));
    const Traces after = look_again(before);
    EXPECT_EQ(after.threads, before.threads) << provider;
    EXPECT_EQ(after.handlers, before.handlers) << provider;
    EXPECT_EQ(after.environment, before.environment) << provider;
    EXPECT_TRUE(listening().empty());
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(hooked_functions(), code_before);
}

TEST_P(Modules, ListProviders) {
  bool usable = false;
  for (const transports::ProviderReport& one : GetParam().list({"127.0.0.1"})) {
    EXPECT_TRUE(one.usable || !one.reason.empty()) << one.name;
    usable = usable || one.chosen;
  }
  EXPECT_TRUE(usable);
}

TEST_P(Modules, KeepTheStatusOfTheirErrors) {
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    transports::EngineOptions options;
    options.provider = "nothing";
    try {
      const auto transport = GetParam().open(bootstrap, options);
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_EQ(error.rank(), 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Modules, testing::ValuesIn(kModules), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace torii::tests
