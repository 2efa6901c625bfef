// SPDX-License-Identifier: Apache-2.0
// Looks for the first match, of receives and of arrivals.
#include "runtime/point_to_point/matching.hpp"

#include <algorithm>
#include <utility>

namespace torii {

Receive* Matching::take_receive(const Envelope& envelope) noexcept {
  const auto found = std::ranges::find_if(posted_, [&](const Receive* one) { return one->accepts(envelope); });
  if (found == posted_.end()) return nullptr;
  Receive* const receive = *found;
  posted_.erase(found);
  return receive;
}

bool Matching::withdraw(const Receive& receive) noexcept { return std::erase(posted_, &receive) != 0; }

bool Matching::take_arrival(const Receive& receive, Arrival& to) noexcept {
  const auto found = std::ranges::find_if(arrivals_, [&](const Arrival& one) { return receive.accepts(one.envelope); });
  if (found == arrivals_.end()) return false;
  to = std::move(*found);
  arrivals_.erase(found);
  return true;
}

void Matching::clear() noexcept {
  posted_.clear();
  arrivals_.clear();
}

}  // namespace torii
