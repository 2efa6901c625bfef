// SPDX-License-Identifier: Apache-2.0
// A short memory for what is costly to make and asked for several times in a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace torii {

/// The values of the last few keys that were asked for. Any thread; while one makes a value the others wait.
template <typename Value, typename... Key>
class Recent {
 public:
  explicit Recent(std::size_t kept_most) : kept_most_(kept_most) {}

  /// The value of this key: the kept one, or else what `make()` returns. The parts of a key are compared in their
  /// order.
  template <typename Make>
  std::shared_ptr<const Value> get(const Make& make, const Key&... key) {
    const std::scoped_lock lock(mutex_);
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.first == std::tie(key...); });
    if (found != kept_.end()) {
      std::rotate(kept_.begin(), found, found + 1);
    } else {
      auto value = std::make_shared<const Value>(make());
      if (kept_.size() == kept_most_) kept_.pop_back();
      kept_.insert(kept_.begin(), {std::tuple(key...), std::move(value)});
    }
    return kept_.front().second;
  }

 private:
  using Kept = std::pair<std::tuple<Key...>, std::shared_ptr<const Value>>;

  const std::size_t kept_most_;
  std::mutex mutex_;
  std::vector<Kept> kept_;  ///< the last one used first
};

}  // namespace torii
