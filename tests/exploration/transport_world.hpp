// SPDX-License-Identifier: Apache-2.0
// A world whose ranks have a transport.
#pragma once

#include <functional>
#include <utility>

#include "tests/exploration/explorer.hpp"
#include "tests/exploration/station.hpp"

namespace torii::exploration {

class TransportWorld : public World {
 public:
  /// Ranks use these transports instead of the shared memory of one node.
  void use(std::function<Transport&(int rank)> transports) { transports_ = std::move(transports); }

 protected:
  Transport& transport(int rank) const {
    return transports_ ? transports_(rank) : static_cast<Transport&>(Station::instance().transport(rank));
  }

 private:
  std::function<Transport&(int rank)> transports_;
};

}  // namespace torii::exploration
