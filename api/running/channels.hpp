// SPDX-License-Identifier: Apache-2.0
// The channels of a team: operations of one channel run one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "api/calls/request.hpp"
#include "runtime/execution/execution.hpp"
#include "runtime/fabric/put_owner.hpp"

namespace torii {

struct Channel {
  explicit Channel(Transport& transport) : execution(transport) {}
  Execution execution;
  Request* current = nullptr;
  bool awaits_rings = false;  ///< `current` begins when the members have told where the channel's own rings are
  std::uint64_t starts = 0;   ///< how often persistent operations were started here
  std::deque<Request*> queue;
};

/// The shared channels, which calls take in turn, then those of persistent operations.
class Channels {
 public:
  Channels(Transport& transport, std::size_t shared);

  Channel& operator[](std::size_t channel) const noexcept { return *channels_[channel]; }
  auto begin() const noexcept { return channels_.begin(); }
  auto end() const noexcept { return channels_.end(); }

  /// How many calls move at once; further ones are queued.
  std::size_t shared() const noexcept { return shared_; }
  /// The shared channel of the next call.
  std::size_t next() const noexcept { return next_; }
  void advance_next() noexcept {
    if (++next_ == shared_) next_ = 0;
  }

  /// The lowest free channel of persistent operations for which `fits`; made if there is none.
  template <class Fits>
  int lowest_free(Fits&& fits) {
    const auto found = std::ranges::find_if(free_, fits);
    return found != free_.end() ? *found : add();
  }
  void take(int channel) noexcept;
  void give_back(int channel);
  /// Bytes that the engine has put for operations, and the most transfers of any of them. From any thread.
  std::uint64_t engine_bytes(int engine) const noexcept;
  int transfers_in_flight_most() const noexcept;
  /// The owners that still count puts of operations, when the team ends.
  std::vector<PutOwner> take_puts();

 private:
  int add();

  Transport& transport_;
  std::size_t shared_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<Channel>> channels_;
  mutable std::mutex mutex_;  ///< held while channels_ grows, and by readers on other threads
  std::vector<int> free_;     ///< channels of persistent operations that are gone, ascending
};

}  // namespace torii
