// SPDX-License-Identifier: Apache-2.0
// Opens and connects the engines.
#include "transports/fibers/network.hpp"

namespace torii::fibers {

Network::Network(Wires& wires, Bootstrap& bootstrap, const transports::EngineOptions& options)
    : EngineTransport(bootstrap, options), wires_(wires) {
  for (int number = 0; number < options.engines; ++number) {
    engines_.push_back(std::make_unique<Engine>(wires, number, rank_, arena_, peers_, sleepers_));
  }
  const auto all_open = gather_values(bootstrap, 1);  // nobody greets an engine that is not there yet
  capabilities_ = {.name = "fibers",
                   .wakes_on_put = wires.manner().wakes,
                   .notices_deaths = true,
                   .engines = options.engines,
                   .gathers = wires.fibers().one_in(2)};
  connect_all(bootstrap, options);
}

}  // namespace torii::fibers
