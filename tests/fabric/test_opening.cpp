// SPDX-License-Identifier: Apache-2.0
// How the libfabric transport is opened: which provider `auto` takes if one does not open, and what is refused with
// which words.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/fabric/words.hpp"
#include "tests/fabric/imposed_modes.hpp"
#include "tests/fabric/open_over.hpp"
#include "tests/fabric/refusal.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/providers.hpp"

namespace torii::libfabric {
namespace {

using tests::expect_holds;
using tests::run_ranks_as_threads;

std::string refusal(const std::function<void(int rank, Options& options)>& change, Status status, const Api& api = {}) {
  return tests::refusal<Fabric, Options>(change, status, api);
}

std::string told;  // by the rank that tells

void remember(LogLevel level, std::string_view text) noexcept {
  EXPECT_EQ(level, LogLevel::error);
  told += text;
}

void choose_any(int, Options& options) {
  options.provider = "auto";
  options.source_addresses = {"127.0.0.1"};
  options.log = remember;
}

constexpr const char* kRefused = ": Invalid argument (its queues may be too short for ";

TEST(Opening, ThatFailsGoesOnToTheNextProviderOnAllRanks) {
  tests::Modes modes = tests::named_verbs_modes();
  modes.enabling_code = -FI_EINVAL;
  const int before = tests::imposed_engines();
  // With room for one, either rank may be the one that fails.
  for (const int room : {0, 1}) {
    modes.engines_most = before + room;
    told.clear();
    std::vector<std::string> providers(2);
    const auto look = [&](int rank, Fabric& fabric, std::byte*) {
      providers[static_cast<std::size_t>(rank)] = fabric.provider();
      EXPECT_FALSE(fabric.devices().empty());
      EXPECT_EQ(fabric.devices().size(), static_cast<std::size_t>(fabric.capabilities().engines));
      EXPECT_EQ(fabric.capabilities().pinned_bytes, 0u);
    };
    open_over(choose_any, look, tests::impose(modes));
    EXPECT_EQ(providers[0], providers[1]);
    EXPECT_NE(providers[0], "verbs;ofi_rxm");
    expect_holds(told, "TORII_PROVIDER=auto passes over verbs;ofi_rxm: rank ");
    expect_holds(told, kRefused);
    EXPECT_EQ(tests::imposed_engines(), before);
  }
}

TEST(Opening, IsTriedByTheListOfProviders) {
  tests::Modes modes = tests::named_verbs_modes();
  const auto find = [](const Api& api, const std::string& name) {
    const std::vector<ProviderReport> all = list_providers(api, {"127.0.0.1"});
    EXPECT_EQ(std::ranges::count(all, true, &ProviderReport::chosen), 1);
    return *std::ranges::find(all, name, &ProviderReport::name);
  };
  const ProviderReport opened = find(tests::impose(modes), "verbs;ofi_rxm");
  EXPECT_TRUE(opened.chosen);
  EXPECT_EQ(opened.pinning, transports::kPinsOnce);
  EXPECT_EQ(find(tests::impose(modes), "net").pinning, "");
  modes.regions_of_engine = true;
  EXPECT_EQ(find(tests::impose(modes), "verbs;ofi_rxm").pinning, transports::kPinsEach);
  modes.regions_of_engine = false;
  modes.enabling_code = -FI_EINVAL;
  modes.engines_most = 0;
  const ProviderReport refused = find(tests::impose(modes), "verbs;ofi_rxm");
  EXPECT_FALSE(refused.usable || refused.chosen);
  expect_holds(refused.reason, "libfabric: enabling an endpoint of verbs;ofi_rxm on ");
  expect_holds(refused.reason, kRefused);
  // A job would end there.
  modes.enabling_code = -FI_ENOMEM;
  const ProviderReport failing = find(tests::impose(modes), "verbs;ofi_rxm");
  EXPECT_TRUE(failing.fails && failing.chosen);
  EXPECT_FALSE(failing.usable);
  expect_holds(failing.reason, "Cannot allocate memory (is the limit of locked memory low, ulimit -l?)");
}

TEST(Opening, EndsTheJobIfMemoryIsShortOrTheProviderIsNamed) {
  tests::Modes modes = tests::named_verbs_modes();
  modes.registering_code = -FI_ENOMEM;
  expect_holds(refusal(choose_any, Status::no_resource, tests::impose(modes)),
               "rank 0: libfabric: registering 1048576 bytes for the arena (raise the limit of locked memory, ulimit "
               "-l): Cannot "
               "allocate memory");
  modes.registering_code = 0;
  modes.engines_most = 0;
  modes.enabling_code = -FI_ENOMEM;
  expect_holds(refusal(choose_any, Status::no_resource, tests::impose(modes)),
               ": Cannot allocate memory (is the limit of locked memory low, ulimit -l?)");
  modes.enabling_code = -EMFILE;
  expect_holds(refusal(choose_any, Status::no_resource, tests::impose(modes)), "raise the limit of open files");
  modes.enabling_code = -FI_EINVAL;
  const auto by_name = [](int, Options& options) { options.provider = "verbs;ofi_rxm"; };
  const std::string text = refusal(by_name, Status::unsupported, tests::impose(modes));
  expect_holds(text, "rank 0: libfabric: enabling an endpoint of verbs;ofi_rxm on ");
  expect_holds(text, "2 ranks; FI_UNIVERSE_SIZE sets for how many)");
}

TEST(Opening, IsOverWhenEnginesGreet) {
  tests::Modes modes = tests::named_verbs_modes();
  modes.stuck = true;
  const auto briefly = [](int rank, Options& options) {
    choose_any(rank, options);
    options.timeout_s = 0.05;
  };
  expect_holds(refusal(briefly, Status::timeout, tests::impose(modes)), "within 50 ms");
}

TEST(Refusal, NamesTheRankAndTheCause) {
  expect_holds(refusal([](int, Options& options) { options.provider = "tpc"; }, Status::unsupported),
               "rank 0 cannot use TORII_PROVIDER 'tpc': this libfabric has no such provider");
  tests::expect_common_refusals<Fabric, Options>("net");
}

/// As iWARP's devices answer, such as siw: they have no write with data.
TEST(Refusal, AProviderWhoseCompletionsCarryNoData) {
  Api iwarp;
  iwarp.get_info = [](std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                      const fi_info* hints, fi_info** info) {
    const int code = fi_getinfo(version, node, service, flags, hints, info);
    for (fi_info* each = code == 0 ? *info : nullptr; each != nullptr; each = each->next) {
      each->domain_attr->cq_data_size = 0;
    }
    return code;
  };
  expect_holds(refusal([](int, Options& options) { options.provider = "net"; }, Status::unsupported, iwarp),
               "rank 0 cannot use TORII_PROVIDER 'net': its completions carry 0 bytes of data; 4 are needed");
}

TEST(Refusal, AnArenaWhoseLinesDoNotFitIntoTheData) {
  // Nothing of it is touched: the transport is refused before anybody writes.
  const auto large = [](int, Options& options) { options.arena_bytes = std::size_t{65} << 30; };
  expect_holds(refusal(large, Status::unsupported, tests::impose({})),
               "enough for an arena of 64 GiB; this one has 65 GiB registered");
}

/// As under Open MPI, whose component asks for an arena that holds every window, while a device pins a part of it.
TEST(Refusal, NoneOfALargeArenaOfWhichLittleIsRegistered) {
  tests::Modes modes;
  modes.pins = true;
  constexpr std::size_t kPinned = std::size_t{1} << 20;
  const auto large = [](int, Options& options) {
    options.arena_bytes = std::size_t{256} << 30;
    options.pinned_bytes = kPinned;
  };
  const auto look = [=](int, Fabric& fabric, std::byte*) { EXPECT_EQ(fabric.capabilities().pinned_bytes, kPinned); };
  open_over(large, look, tests::impose(modes));
}

TEST(Refusal, APutFromOutsideThatNoBounceBufferHolds) {
  tests::Modes modes;
  modes.local_regions = true;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    const auto opened = tests::open_transport("like_verbs", bootstrap, 1);
    if (bootstrap.rank() == 0) {
      const std::vector<std::byte> outside(5 << 20);
      Put put;
      put.peer = 1;
      put.source = outside.data();
      put.bytes = outside.size();
      put.target_offset = 1 << 20;
      PutOwner puts;
      put.owner = puts.count();
      Transport& transport = opened->transport();
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      Status status = Status::ok;
      // The layer is busy now and then, so the put may have to wait, and its owner is told later.
      for (status = transport.put(put); puts.status() == Status::ok && std::chrono::steady_clock::now() < deadline;) {
        EXPECT_EQ(transport.progress(), Status::ok);
      }
      EXPECT_TRUE(status == Status::ok || status == Status::invalid_argument);
      EXPECT_EQ(puts.status(), Status::invalid_argument);
      EXPECT_TRUE(puts.drained());
      EXPECT_EQ(transport.put_word(1, 64, 5), Status::ok) << "nothing else is refused";
      while (!transport.drained() && std::chrono::steady_clock::now() < deadline) {
        EXPECT_EQ(transport.progress(), Status::ok);
      }
      EXPECT_EQ(transport.failure_text(), "");
    }
    gather_values(bootstrap, 0);
  });
}

}  // namespace
}  // namespace torii::libfabric
