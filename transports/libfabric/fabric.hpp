// SPDX-License-Identifier: Apache-2.0
// The transport over libfabric: engines, what they share, and how a rank sleeps on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/exchange.hpp"
#include "runtime/transport.hpp"
#include "transports/libfabric/engine.hpp"
#include "transports/libfabric/options.hpp"

namespace torii::libfabric {

class Fabric final : public Transport {
 public:
  /// Collective: chooses the provider, opens the engines, exchanges their addresses and keys. Throws Error on all
  /// ranks: unsupported (no provider), mismatch (engines, arena), no_resource, transport, with the rank that failed.
  Fabric(Exchange& exchange, const Options& options, const Api& api = {});
  /// Waits up to a second for peers to confirm what was put to them.
  ~Fabric() override;

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return ranks_; }
  int node(int rank) const noexcept override { return rank; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override {
    return peer == rank_ ? options_.arena + offset : nullptr;
  }
  Status put(const Put& put) noexcept override;
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override;
  Status progress() noexcept override;
  bool drained() noexcept override;
  void sleep(int most_us, bool (*still_idle)(void* data), void* data) noexcept override;
  bool alive(int peer) noexcept override;
  std::string failure_text() const override { return peers_.text(); }
  bool oversubscribed() const noexcept override { return options_.oversubscribed; }

  const std::string& provider() const noexcept { return provider_; }
  /// The device of each engine, and where the provider is over IP the address that it stands on; empty: any.
  const std::vector<std::string>& devices() const noexcept { return device_names_; }
  const std::vector<std::string>& sources() const noexcept { return sources_; }

 private:
  void open_engines(Exchange& exchange, const Api& api);
  void open_engine(const Api& api, const fi_info& info);

  Options options_;
  int rank_;
  int ranks_;
  std::string provider_;
  std::vector<std::string> sources_;
  std::vector<std::string> device_names_;
  Capabilities capabilities_;
  std::size_t ordered_bytes_ = 0;
  std::size_t data_bytes_ = 0;
  bool confirms_at_end_ = true;
  PeerStates peers_;
  std::unique_ptr<Arrivals> arrivals_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace torii::libfabric
