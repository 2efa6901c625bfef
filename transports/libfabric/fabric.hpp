// SPDX-License-Identifier: Apache-2.0
// The transport over libfabric: its engines and what they share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/libfabric/engine.hpp"
#include "transports/libfabric/options.hpp"
#include "transports/network/engine_transport.hpp"

namespace torii::libfabric {

class Fabric final : public transports::EngineTransport<Engine> {
 public:
  /// Collective: chooses the provider, opens the engines, exchanges their addresses and keys. If `auto` cannot open
  /// engines over a provider on all ranks, it goes on to the next one; but not if memory cannot be registered or peers
  /// are not reached. Throws Error on all ranks: unsupported (no provider opens), mismatch (engines, arena),
  /// no_resource, transport, with the rank that failed.
  Fabric(Bootstrap& bootstrap, const Options& options, const Api& api = {});
  /// Waits up to a second for peers to confirm what was put to them.
  ~Fabric() override { finish(confirms_at_end_); }

  void pin(const Extent& extent) override;
  void forget(std::uint64_t offset, std::size_t bytes) noexcept override { arrivals_->forget(offset, bytes); }

  const std::string& provider() const noexcept { return provider_; }
  /// The device of each engine, and its address if the provider is over IP; empty: any.
  const std::vector<std::string>& devices() const noexcept { return device_names_; }
  const std::vector<std::string>& sources() const noexcept { return sources_; }

 private:
  void open_engines(Bootstrap& bootstrap, const Options& options, const Api& api);
  void open_over(const std::string& provider, std::vector<std::string> sources, Bootstrap& bootstrap,
                 const Options& options, const Api& api);
  void open_engine(const Options& options, const std::shared_ptr<Device>& device);
  int count_rails() const;
  /// Peers may write into this part of the arena, which starts at its beginning.
  std::size_t registered_bytes(const Options& options) const noexcept {
    return pinned_bytes_ != 0 ? pinned_bytes_ : options.arena_bytes;
  }

  std::string provider_;
  std::vector<std::string> sources_;
  std::vector<std::string> device_names_;
  std::size_t ordered_bytes_ = 0;
  std::size_t data_bytes_ = 0;
  std::size_t put_bytes_most_ = 0;
  std::size_t pinned_bytes_ = 0;
  bool gathers_ = true;
  bool confirms_at_end_ = true;
  std::unique_ptr<Arrivals> arrivals_;
};

}  // namespace torii::libfabric
