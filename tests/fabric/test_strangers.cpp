// SPDX-License-Identifier: Apache-2.0
// Strangers that speak libfabric: whoever reaches an engine's port, and has not been told its keys, changes nothing.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/fabric/strangers.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/test_run.hpp"
#include "transports/libfabric/api.hpp"
#include "transports/libfabric/notice.hpp"
#include "transports/libfabric/providers.hpp"

namespace torii::tests {
namespace {

using libfabric::Fid;
using libfabric::make_notice;
using libfabric::NoticeAction;

/// An endpoint of a process that is no rank.
class Stranger {
 public:
  Stranger(const std::string& provider, int port) : info_(libfabric::find_devices({}, provider, "127.0.0.1")) {
    fi_info& info = *info_.front();
    fid_fabric* fabric = nullptr;
    must(fi_fabric(info.fabric_attr, &fabric, nullptr));
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    must(fi_domain(fabric, &info, &domain, nullptr));
    domain_.reset(domain);
    fi_cq_attr queue_attributes{};
    queue_attributes.format = FI_CQ_FORMAT_DATA;
    fid_cq* queue = nullptr;
    must(fi_cq_open(domain, &queue_attributes, &queue, nullptr));
    queue_.reset(queue);
    fi_av_attr table{};
    table.type = info.domain_attr->av_type;
    fid_av* addresses = nullptr;
    must(fi_av_open(domain, &table, &addresses, nullptr));
    addresses_.reset(addresses);
    fid_ep* endpoint = nullptr;
    must(fi_endpoint(domain, &info, &endpoint, nullptr));
    endpoint_.reset(endpoint);
    must(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
    must(fi_ep_bind(endpoint, &addresses->fid, 0));
    must(fi_enable(endpoint));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(fi_av_insert(addresses, &to, 1, &victim_, 0, nullptr), 1);
  }

  /// Starts an operation when the provider takes it, and gives it time to arrive. Whether it completes does not matter.
  void attempt(const std::function<ssize_t(fid_ep* endpoint, fi_addr_t victim, void* context)>& operation) {
    ssize_t code = -FI_EAGAIN;
    const auto patience = std::chrono::seconds(2);
    for (const auto begun = now(); code == -FI_EAGAIN && now() - begun < patience; look()) {
      code = operation(endpoint_.get(), victim_, &context_);
    }
    for (const auto begun = now(); now() - begun < std::chrono::milliseconds(30);) look();
  }

 private:
  static std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
  static void must(int code) { EXPECT_EQ(code, 0) << fi_strerror(-code); }
  void look() {
    fi_cq_data_entry entry{};
    fi_cq_err_entry error{};
    if (fi_cq_read(queue_.get(), &entry, 1) == -FI_EAVAIL) (void)fi_cq_readerr(queue_.get(), &error, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<libfabric::Info> info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_cq> queue_;
  Fid<fid_av> addresses_;
  Fid<fid_ep> endpoint_;
  fi_addr_t victim_ = FI_ADDR_UNSPEC;
  fi_context2 context_{};
};

class Strangers : public testing::TestWithParam<std::string> {};

TEST_P(Strangers, WithoutAKeyWriteNothing) {
  const std::string provider = GetParam();
  for (const Seed& seed : seeds_of("fabric_strangers/writes", 1)) {
    const std::uint64_t dropped = attack_job(provider, seed, [&](const Exposed& exposed) {
      EXPECT_EQ(exposed.ports.size(), 2u);
      std::mt19937_64 random(seed.value);
      std::vector<std::byte> bytes(4096, std::byte{0xee});
      for (const int port : exposed.ports) {
        // A refused write ends its connection, so each stranger tries once.
        const std::uint64_t keys[] = {0, 1, 2, random(), random() >> 32};
        for (const std::uint64_t key : keys) {
          Stranger(provider, port).attempt([&](fid_ep* endpoint, fi_addr_t victim, void* context) {
            return fi_write(endpoint, bytes.data(), bytes.size(), nullptr, victim, kCanary, key, context);
          });
          Stranger(provider, port).attempt([&](fid_ep* endpoint, fi_addr_t victim, void* context) {
            return fi_writedata(endpoint, bytes.data(), 0, nullptr, make_notice(NoticeAction::publish, kHalfLine),
                                victim, kCanary, key, context);
          });
          Stranger(provider, port).attempt([&](fid_ep* endpoint, fi_addr_t victim, void* context) {
            return fi_read(endpoint, bytes.data(), bytes.size(), nullptr, victim, kHalfLine, key, context);
          });
        }
        EXPECT_EQ(bytes, std::vector<std::byte>(4096, std::byte{0xee})) << "a stranger has read";
      }
    });
    (void)dropped;  // a provider drops writes without a key itself
  }
}

/// Completion data needs no key: a write of nothing to nowhere carries it.
TEST_P(Strangers, NoticesChangeNothing) {
  const std::string provider = GetParam();
  for (const Seed& seed : seeds_of("fabric_strangers/notices", 1)) {
    const std::uint64_t dropped = attack_job(provider, seed, [&](const Exposed& exposed) {
      std::mt19937_64 random(seed.value);
      for (const int port : exposed.ports) {
        Stranger one(provider, port);
        const std::uint64_t notice = make_notice(NoticeAction::publish, kHalfLine);
        const std::uint64_t all_data[] = {notice,   make_notice(NoticeAction::join, kHalfLine),
                                          3,        ~std::uint64_t{0},
                                          random(), random() << 32 | notice};
        for (const std::uint64_t data : all_data) {
          one.attempt([&](fid_ep* endpoint, fi_addr_t victim, void* context) {
            iovec from{};
            void* descriptor = nullptr;
            fi_rma_iov to{};
            const fi_msg_rma message = {&from, &descriptor, 0, victim, &to, 0, context, data};
            return fi_writemsg(endpoint, &message, FI_COMPLETION | FI_REMOTE_CQ_DATA);
          });
        }
        one.attempt([&](fid_ep* endpoint, fi_addr_t victim, void* context) {
          return fi_senddata(endpoint, &random, 0, nullptr, notice, victim, context);
        });
        one.attempt([&](fid_ep* endpoint, fi_addr_t victim, void* context) {
          return fi_send(endpoint, &random, sizeof(random), nullptr, victim, context);
        });
      }
    });
    EXPECT_GE(dropped, 10u);
  }
}

TEST_P(Strangers, GarbageOnThePortChangesNothing) {
  for (const Seed& seed : seeds_of("fabric_strangers/garbage", 1)) {
    (void)attack_job(GetParam(), seed, [&](const Exposed& exposed) {
      std::uint64_t next = seed.value;
      for (const int port : exposed.ports) send_garbage(port, next++);
    });
  }
}

std::string provider_name(const testing::TestParamInfo<std::string>& info) {
  return info.param == "net" ? "net" : "tcp_ofi_rxm";
}

INSTANTIATE_TEST_SUITE_P(All, Strangers, testing::Values("tcp;ofi_rxm", "net"), provider_name);

}  // namespace
}  // namespace torii::tests
