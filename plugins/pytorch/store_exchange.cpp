// SPDX-License-Identifier: Apache-2.0
// Rounds of an all-gather over the store: each rank sets its key, then reads those of all.
#include "plugins/pytorch/store_exchange.hpp"

#include <cstring>
#include <stdexcept>
#include <vector>

namespace torii_torch {

int StoreExchange::gather(const void* mine, void* all, std::size_t bytes, void* data) noexcept {
  auto* const self = static_cast<StoreExchange*>(data);
  try {
    self->run(mine, all, bytes);
    return 0;
  } catch (const std::exception& error) {
    self->failure_ = error.what();
  } catch (...) {
    self->failure_ = "an exception of no known kind";
  }
  return 1;
}

std::string StoreExchange::key(std::uint64_t round, int rank) const {
  return "torii/" + std::to_string(round) + "/" + std::to_string(rank);
}

void StoreExchange::run(const void* mine, void* all, std::size_t bytes) {
  const auto* const begin = static_cast<const std::uint8_t*>(mine);
  store_->set(key(round_, rank_), std::vector<std::uint8_t>(begin, begin + bytes));
  std::vector<std::string> keys;
  for (int rank = 0; rank < ranks_; ++rank) keys.push_back(key(round_, rank));
  store_->wait(keys, timeout_);
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::vector<std::uint8_t> value = store_->get(keys[static_cast<std::size_t>(rank)]);
    if (value.size() != bytes) {
      throw std::runtime_error("the store has " + std::to_string(value.size()) + " bytes of rank " +
                               std::to_string(rank) + " where " + std::to_string(bytes) + " were expected");
    }
    std::memcpy(static_cast<std::uint8_t*>(all) + static_cast<std::size_t>(rank) * bytes, value.data(), bytes);
  }
  // All ranks have set this round's keys, so they have read those of the round before.
  if (round_ > 0) store_->deleteKey(key(round_ - 1, rank_));
  ++round_;
}

}  // namespace torii_torch
