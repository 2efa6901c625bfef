// SPDX-License-Identifier: Apache-2.0
// The same movement in bare UCX: ucp_put_nbx and a flag behind it, with nothing of torii's engines between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/transports/put_loop.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/ucx/api.hpp"
#include "transports/ucx/providers.hpp"

namespace torii::perf {

/// As many ways out as the transport has engines, opened over the same devices. A message is its payload, a fence, and
/// eight bytes with its number, at which the receiver looks.
class BareUcxLoop final : public PutLoop {
 public:
  /// Collective over two ranks. One way out per selection. `memory` has `bytes`, registered as a whole. Throws Error.
  BareUcxLoop(Bootstrap& bootstrap, const std::vector<ucx::Selection>& selections, std::byte* memory,
              std::size_t bytes);
  ~BareUcxLoop() override;
  void poll() override;
  std::byte* incoming(std::size_t slot, std::size_t bytes) noexcept override;

 protected:
  void put_message(std::uint64_t number, std::size_t bytes) override;
  bool has_come(std::uint64_t number, std::size_t bytes) override;
  bool is_drained() override;

 private:
  struct Way {
    ucx::Owner<ucp_context_h, ucp_cleanup> context;
    ucx::Owner<ucp_worker_h, ucp_worker_destroy> worker;
    ucp_mem_h region = nullptr;
    ucp_ep_h end = nullptr;
    ucx::Owner<ucp_rkey_h, ucp_rkey_destroy> key;
    std::uint64_t peer_base = 0;
    std::size_t in_flight = 0;
    ucs_status_t failed = UCS_OK;
  };
  void open(Way& way, const ucx::Selection& selection, std::size_t bytes);
  void connect(Bootstrap& bootstrap, Way& way);
  void put_bytes(Way& way, std::size_t source_offset, std::size_t target_offset, std::size_t bytes);
  void leave() noexcept;
  static void on_put(void* request, ucs_status_t status, void* way);

  std::vector<Way> ways_;
};

}  // namespace torii::perf
