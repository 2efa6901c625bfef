// SPDX-License-Identifier: Apache-2.0
// The same movement in bare libfabric: fi_writedata and the completion queue, with nothing of torii's engines between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/transports/put_loop.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/libfabric/api.hpp"

namespace torii::perf {

/// As many ways out as the transport has engines, opened with the same description of the device. A message is payload
/// only; its number travels in the completion data, which is all that the receiver looks at.
class BareLibfabricLoop final : public PutLoop {
 public:
  /// Collective over two ranks. One way out per source address, which may be empty. `memory` has `bytes`, registered as
  /// a whole. Throws Error.
  BareLibfabricLoop(Bootstrap& bootstrap, const std::string& provider, const std::vector<std::string>& sources,
                    std::byte* memory, std::size_t bytes);
  ~BareLibfabricLoop() override;
  void begin(const SlotLayout& layout) override;
  void poll() override;
  std::byte* incoming(std::size_t slot, std::size_t bytes) noexcept override;

 protected:
  void put_message(std::uint64_t number, std::size_t bytes) override;
  bool has_come(std::uint64_t number, std::size_t bytes) override;
  bool is_drained() override;

 private:
  struct Way {
    libfabric::Info info;
    libfabric::Fid<fid_fabric> fabric;
    libfabric::Fid<fid_domain> domain;
    libfabric::Fid<fid_cq> queue;
    libfabric::Fid<fid_av> addresses;
    libfabric::Fid<fid_ep> end;
    libfabric::Fid<fid_mr> region;
    void* descriptor = nullptr;
    std::size_t inject_bytes = 0;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    std::uint64_t peer_base = 0;
    std::uint64_t peer_key = 0;
    std::vector<fi_context2> receives;
    std::size_t in_flight = 0;
  };
  void open(Way& way, const fi_info& info, std::size_t bytes);
  void connect(Bootstrap& bootstrap, Way& way);
  void post_receive(Way& way, fi_context2& receive);
  void poll(Way& way);

  std::vector<Way> ways_;
  std::vector<fi_context2> contexts_;   ///< of the last messages, in turn
  std::vector<std::uint32_t> arrived_;  ///< per slot: the number of the last message, its low half
};

}  // namespace torii::perf
