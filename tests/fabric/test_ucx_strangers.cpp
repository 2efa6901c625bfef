// SPDX-License-Identifier: Apache-2.0
// Strangers that speak UCX: whoever has an engine's address, and not its secret, changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/fabric/words.hpp"
#include "tests/fabric/strangers.hpp"
#include "tests/support/test_run.hpp"
#include "transports/ucx/api.hpp"
#include "transports/ucx/message.hpp"

namespace torii::tests {
namespace {

using ucx::Owner;

/// A worker of a process that is no rank, connected to an engine.
class UcxStranger {
 public:
  explicit UcxStranger(const std::string& address) {
    ucp_config_t* config = nullptr;
    must(ucp_config_read(nullptr, nullptr, &config));
    must(ucp_config_modify(config, "TLS", "tcp"));
    must(ucp_config_modify(config, "NET_DEVICES", "lo"));
    ucp_params_t wanted{};
    wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
    wanted.features = UCP_FEATURE_AM;
    ucp_context_h context = nullptr;
    must(ucp_init(&wanted, config, &context));
    context_.reset(context);
    ucp_config_release(config);
    const ucp_worker_params_t how{};
    ucp_worker_h worker = nullptr;
    must(ucp_worker_create(context, &how, &worker));
    worker_.reset(worker);
    ucp_ep_params_t to{};
    to.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    to.address = reinterpret_cast<const ucp_address_t*>(address.data());
    to.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    must(ucp_ep_create(worker, &to, &victim_));
  }
  /// UCX 1.13 ends the process when a worker goes while messages are under way.
  ~UcxStranger() {
    look(50);
    for (const ucs_status_ptr_t request : under_way_) {
      for (int time = 0; time < 500 && ucp_request_check_status(request) == UCS_INPROGRESS; ++time) look(1);
      if (ucp_request_check_status(request) != UCS_INPROGRESS) {
        ucp_request_free(request);
        continue;
      }
      (void)worker_.release();
      (void)context_.release();
      return;
    }
  }
  UcxStranger(const UcxStranger&) = delete;
  UcxStranger& operator=(const UcxStranger&) = delete;

  /// Sends an active message, and gives it time to arrive. Whether it completes does not matter.
  void send(unsigned id, const void* header, std::size_t header_bytes, std::size_t bytes, bool by_rendezvous) {
    static const std::vector<std::byte> payload(std::size_t{1} << 20, std::byte{0xee});
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.flags = by_rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    const ucs_status_ptr_t request = ucp_am_send_nbx(victim_, id, header, header_bytes, payload.data(), bytes, &how);
    EXPECT_FALSE(UCS_PTR_IS_ERR(request)) << ucs_status_string(UCS_PTR_STATUS(request));
    if (UCS_PTR_IS_PTR(request)) under_way_.push_back(request);
    look(2);
  }

 private:
  static void must(ucs_status_t status) { EXPECT_EQ(status, UCS_OK) << ucs_status_string(status); }
  void look(int ms) {
    for (int time = 0; time < ms; ++time) {
      while (ucp_worker_progress(worker_.get()) != 0) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Owner<ucp_context_h, ucp_cleanup> context_;
  Owner<ucp_worker_h, ucp_worker_destroy> worker_;
  ucp_ep_h victim_ = nullptr;
  std::vector<ucs_status_ptr_t> under_way_;
};

/// The engines' addresses, without what else their cards say.
std::set<std::string> addresses(const Exposed& exposed) {
  constexpr std::size_t kAddressBytesMin = 40;
  std::set<std::string> found;
  for (const std::string& text : exposed.texts) {
    const std::optional<ucx::Card> card = ucx::read_card(text);
    if (card && card->address.size() >= kAddressBytesMin) found.emplace(card->address);
  }
  return found;
}

/// What a message says: where its payload goes, its signal's place and value, and a secret.
using Words = std::array<std::uint64_t, 4>;
constexpr std::size_t kWithoutSecret = 3 * sizeof(std::uint64_t);

TEST(UcxStrangers, WithoutTheSecretWriteNothing) {
  for (const Seed& seed : seeds_of("fabric_ucx_strangers/writes", 1)) {
    const std::uint64_t dropped = attack_job("ucx_tcp", seed, [&](const Exposed& exposed) {
      std::mt19937_64 random(seed.value);
      const std::set<std::string> engines = addresses(exposed);
      EXPECT_EQ(engines.size(), 2u);
      for (const std::string& engine : engines) {
        UcxStranger one(engine);
        for (const std::uint64_t secret : {std::uint64_t{0}, std::uint64_t{1}, random()}) {
          const Words words = {kCanary + kLineBytes, kCanary, 42, secret};
          for (const std::size_t header_bytes : {kWithoutSecret, sizeof(words)}) {
            for (const unsigned id : {ucx::kPut, ucx::kPiece}) {
              one.send(id, words.data(), header_bytes, 0, false);
              one.send(id, words.data(), header_bytes, 1000, false);
              one.send(id, words.data(), header_bytes, 500'000, true);
            }
          }
        }
      }
    });
    EXPECT_GE(dropped, 30u);
  }
}

TEST(UcxStrangers, MessagesThatNoRankSendsEndNothing) {
  for (const Seed& seed : seeds_of("fabric_ucx_strangers/messages", 1)) {
    const std::uint64_t dropped = attack_job("ucx_tcp", seed, [&](const Exposed& exposed) {
      std::mt19937_64 random(seed.value);
      for (const std::string& engine : addresses(exposed)) {
        UcxStranger one(engine);
        for (int time = 0; time < 100; ++time) {
          // Ranks that ask, answer or leave; offsets outside the arena; headers cut off.
          Words words = {random() >> random() % 64, random() >> random() % 64, random() % 4, random() >> random() % 64};
          const std::size_t header_bytes = random() % 2 == 0 ? sizeof(words) : random() % sizeof(words);
          // UCX 1.13 reads past its table of handlers when a rendezvous names a number behind the last one.
          const auto id = static_cast<unsigned>(random() % 10);
          one.send(id, words.data(), header_bytes, random() % 3000, id < ucx::kHandlers && random() % 8 == 0);
        }
      }
    });
    EXPECT_GE(dropped, 50u);
  }
}

TEST(UcxStrangers, GarbageOnThePortChangesNothing) {
  for (const Seed& seed : seeds_of("fabric_ucx_strangers/garbage", 1)) {
    (void)attack_job("ucx_tcp", seed, [&](const Exposed& exposed) {
      std::uint64_t next = seed.value;
      for (const int port : exposed.ports) send_garbage(port, next++);
    });
  }
}

}  // namespace
}  // namespace torii::tests
