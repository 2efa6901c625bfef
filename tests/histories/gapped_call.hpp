// SPDX-License-Identifier: Apache-2.0
// A call whose vectors have missing pages between their blocks.
#pragma once

#include <torii/torii.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/guarded_blocks.hpp"

namespace torii::tests {

/// Stands for a call with unequal blocks that follow each other: copies them to where they have gaps, and back. An
/// alltoall is in place by half of the seeds.
class GappedCall {
 public:
  static bool suits(const torii_call& call) {
    return call.unequal != 0 && call.collective != TORII_REDUCE_SCATTER && call.input_blocks == nullptr &&
           call.result_blocks == nullptr;
  }
  GappedCall(const torii_call& packed, int ranks, std::uint64_t seed)
      : packed_(packed), call_(packed), ranks_(static_cast<std::size_t>(ranks)) {
    const std::size_t element_bytes = torii_type_bytes(packed.type);
    const bool is_in_place = packed.collective == TORII_ALLTOALL && seed % 2 == 0;
    std::vector<std::size_t> sent = bytes_of(packed.input_counts);
    std::vector<std::size_t> taken = bytes_of(packed.result_counts);
    if (is_in_place) {
      for (std::size_t i = 0; i < ranks_; ++i) sent[i] = taken[i] = std::max(sent[i], taken[i]);
    }
    if (packed.input != nullptr && packed.input_counts != nullptr) {
      input_ = std::make_shared<GuardedBlocks>(sent, element_bytes, seed);
      call_.input = input_->data();
      call_.input_displacements = input_->displacements();
    }
    if (packed.result != nullptr && packed.result_counts != nullptr) {
      result_ =
          is_in_place && input_ != nullptr ? input_ : std::make_shared<GuardedBlocks>(taken, element_bytes, seed + 1);
      call_.result = result_->data();
      call_.result_displacements = result_->displacements();
    }
    sent_ = bytes_of(packed.input_counts);
    taken_ = bytes_of(packed.result_counts);
  }

  const torii_call& call() const { return call_; }
  /// Before the call.
  void fill() const {
    const auto* from = static_cast<const std::byte*>(packed_.input);
    for (std::size_t i = 0; input_ != nullptr && i < ranks_; from += sent_[i++]) {
      if (sent_[i] != 0) std::memcpy(input_->block(i), from, sent_[i]);
    }
  }
  /// After it.
  void collect() const {
    auto* to = static_cast<std::byte*>(packed_.result);
    for (std::size_t i = 0; result_ != nullptr && i < ranks_; to += taken_[i++]) {
      if (taken_[i] != 0) std::memcpy(to, result_->block(i), taken_[i]);
    }
  }

 private:
  std::vector<std::size_t> bytes_of(const std::size_t* counts) const {
    std::vector<std::size_t> bytes(ranks_);
    for (std::size_t i = 0; counts != nullptr && i < ranks_; ++i) bytes[i] = counts[i] * torii_type_bytes(packed_.type);
    return bytes;
  }

  torii_call packed_;
  torii_call call_;
  std::size_t ranks_;
  std::vector<std::size_t> sent_;
  std::vector<std::size_t> taken_;
  std::shared_ptr<GuardedBlocks> input_;
  std::shared_ptr<GuardedBlocks> result_;
};

}  // namespace torii::tests
