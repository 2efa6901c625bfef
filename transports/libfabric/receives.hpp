// SPDX-License-Identifier: Apache-2.0
// The receives that notices use up, over providers that want them (FI_RX_CQ_DATA).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/libfabric/endpoint.hpp"
#include "transports/libfabric/own_memory.hpp"

namespace torii::libfabric {

class Receives {
 public:
  /// As many as an endpoint takes, all of them owed; none if the provider does without.
  void prepare(const fi_info& info) {
    constexpr std::size_t kMost = 1024;
    if ((info.mode & FI_RX_CQ_DATA) == 0) return;
    all_.resize(std::clamp<std::size_t>(info.rx_attr->size, 16, kMost));
    owed_.reserve(all_.size());
    for (fi_context2& receive : all_) owed_.push_back(&receive);
  }
  /// Posts those that are owed, as far as the provider takes them now. Returns the code of a failure, or 0.
  ssize_t post(const Endpoint& endpoint, const OwnMemory& own) noexcept {
    while (!owed_.empty()) {
      const ssize_t code = fi_recv(endpoint.get(), own.bell(), 0, own.descriptor(), FI_ADDR_UNSPEC, owed_.back());
      if (code != 0) return code == -FI_EAGAIN ? 0 : code;
      owed_.pop_back();
    }
    return 0;
  }
  bool are_owed() const noexcept { return !owed_.empty(); }
  /// True for a receive, which is owed from now on. Ranks send no messages, but a stranger's message uses one up too.
  bool take_back(void* context) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(context);
    const auto first = reinterpret_cast<std::uintptr_t>(all_.data());
    if (at < first || at >= first + all_.size() * sizeof(fi_context2)) return false;
    owed_.push_back(static_cast<fi_context2*>(context));
    return true;
  }
  /// No more are posted.
  void end() noexcept { owed_.clear(); }

 private:
  std::vector<fi_context2> all_;
  std::vector<fi_context2*> owed_;
};

}  // namespace torii::libfabric
