// SPDX-License-Identifier: Apache-2.0
// Checks what the command line's own types cannot.
#include "tools/torii-sim/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/transport.hpp"
#include "runtime/rings/ring_area.hpp"

namespace torii::tools {
namespace {

constexpr double kTimeMost_us = 1e9;

void check_engine_rates(const SimOptions& options) {
  const auto rates = static_cast<int>(options.engine_rates.size());
  if (rates == 0) return;
  if (rates != options.engines) {
    invalid(fmt::format("--engine-rates has {} numbers for {} engines (--engines)", rates, options.engines));
  }
  for (const double rate : options.engine_rates) {
    if (!(rate >= 1e-6 && rate <= 1e6)) {
      invalid(fmt::format("--engine-rates has {}; a rate must be from 0.000001 to 1000000", rate));
    }
  }
  if (options.sharing != "auto" && options.sharing != "packet") {
    invalid(fmt::format("--engine-rates needs --sharing packet, not {}", options.sharing));
  }
}

}  // namespace

std::size_t read_size(const std::string& flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes > kBytesMost) {
    invalid(fmt::format("{} is '{}'; it must be a number of bytes up to 2^48, with K, M or G", flag, text));
  }
  return *bytes;
}

void check(const SimOptions& options) {
  if (options.engines < 1 || options.engines > kEnginesMax) {
    invalid(fmt::format("--engines is {}; it must be from 1 to {}", options.engines, kEnginesMax));
  }
  for (const auto& [flag, value, most] :
       {std::tuple{"--slots", options.slots, kRingEntriesMax}, std::tuple{"--window", options.window, 4096}}) {
    if (value < 0 || value > most) invalid(fmt::format("{} is {}; it must be from 1 to {}, or 0", flag, value, most));
  }
  if (options.segment != "auto" && options.segment != "table" && read_size("--segment", options.segment) == 0) {
    invalid("--segment is 0; it must be a number of bytes, auto or table");
  }
  if (options.budget_s && !(*options.budget_s >= 0 && *options.budget_s <= 1e6)) {
    invalid(fmt::format("--budget is {}; it must be from 0 to 1000000 seconds", *options.budget_s));
  }
  constexpr std::array kSharing = {"auto", "min", "maxmin", "packet", "reserved"};
  if (std::ranges::find(kSharing, options.sharing) == kSharing.end()) {
    invalid(fmt::format("--sharing is '{}'; it must be min, maxmin or packet", options.sharing));
  }
  if (options.sharing == "reserved" && !(options.collective == "broadcast" && options.topology.starts_with("tree:"))) {
    invalid("--sharing is 'reserved', the model of schedules; it is for broadcasts on a tree");
  }
  for (const auto& [flag, us] : {std::pair{"--alpha", options.alpha_us}, std::pair{"--overhead", options.overhead_us},
                                 std::pair{"--skew", options.skew_us}, std::pair{"--jitter", options.jitter_us}}) {
    if (!(us >= 0 && us <= kTimeMost_us)) {
      invalid(fmt::format("{} is {}; it must be from 0 to {} us", flag, us, kTimeMost_us));
    }
  }
  check_engine_rates(options);
  for (const double rate : options.split) {
    if (!(rate >= 1e-6 && rate <= 1e6))
      invalid(fmt::format("--split is {}; it must be from 0.000001 to 1000000", rate));
  }
  for (const auto& [flag, rate] :
       {std::pair{"--bandwidth", options.bandwidth_GBps}, std::pair{"--reduce", options.reduce_GBps.value_or(1)}}) {
    if (!(rate >= 1e-6 && rate <= 1e6)) {
      invalid(fmt::format("{} is {}; it must be from 0.000001 to 1000000 GB/s", flag, rate));
    }
  }
}

}  // namespace torii::tools
