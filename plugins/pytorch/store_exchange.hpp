// SPDX-License-Identifier: Apache-2.0
// The way to join: an all-gather of small blobs over PyTorch's key-value store.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "plugins/pytorch/torch_version.hpp"

namespace torii_torch {

/// Gathers among the ranks of one group. The store must be the group's own, so a prefix keeps groups apart.
class StoreExchange {
 public:
  StoreExchange(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout)
      : store_(std::move(store)), rank_(rank), ranks_(ranks), timeout_(timeout) {}

  /// A torii_exchange, whose data is a StoreExchange.
  static int gather(const void* mine, void* all, std::size_t bytes, void* data) noexcept;
  /// Why the store has failed; empty if it has not.
  const std::string& failure() const noexcept { return failure_; }

 private:
  void run(const void* mine, void* all, std::size_t bytes);
  std::string key(std::uint64_t round, int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int ranks_;
  std::chrono::milliseconds timeout_;
  std::uint64_t round_ = 0;
  std::string failure_;
};

}  // namespace torii_torch
