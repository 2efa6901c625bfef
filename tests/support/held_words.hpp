// SPDX-License-Identifier: Apache-2.0
// A transport around another one whose words without payload arrive, but never count as having left: for tests.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/fabric/transport.hpp"

namespace torii::tests {

/// Passes everything on to `inner`. The first words of a team that its calls wait for are those of its first plan.
class HeldWords final : public Transport {
 public:
  explicit HeldWords(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  Status put(const Put& put) noexcept override {
    if (put.bytes == 0) {
      const std::lock_guard lock(mutex_);
      held_.emplace_back(put.owner);
    }
    return inner_->put(put);
  }

  const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
  int rank() const noexcept override { return inner_->rank(); }
  int ranks() const noexcept override { return inner_->ranks(); }
  int node(int rank) const noexcept override { return inner_->node(rank); }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override { return inner_->mapped(peer, offset); }
  std::uint64_t arena_bytes() const noexcept override { return inner_->arena_bytes(); }
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override {
    return inner_->put_word(peer, offset, value);
  }
  Status progress() noexcept override { return inner_->progress(); }
  bool drained() noexcept override { return inner_->drained(); }
  void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept override {
    inner_->sleep(mark, most_us, still_idle, data);
  }
  bool alive(int peer) noexcept override { return inner_->alive(peer); }
  void close_engines(std::uint32_t engines) noexcept override { inner_->close_engines(engines); }
  std::uint32_t lost_engines() const noexcept override { return inner_->lost_engines(); }
  std::uint32_t closed_engines() const noexcept override { return inner_->closed_engines(); }
  void forget(std::uint64_t offset, std::size_t bytes) noexcept override { inner_->forget(offset, bytes); }
  bool is_arriving(std::uint64_t offset, std::size_t bytes) noexcept override {
    return inner_->is_arriving(offset, bytes);
  }
  std::uint64_t strangers() const noexcept override { return inner_->strangers(); }
  std::string failure_text() const override { return inner_->failure_text(); }
  bool oversubscribed() const noexcept override { return inner_->oversubscribed(); }

 private:
  std::unique_ptr<Transport> inner_;
  std::mutex mutex_;
  std::vector<PutHold> held_;
};

}  // namespace torii::tests
