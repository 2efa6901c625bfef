// SPDX-License-Identifier: Apache-2.0
// Steps of all ranks while a transport is made: each succeeds on all ranks, or fails on all with the same error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii::transports {

/// Collective. Runs a step on all ranks. If it fails on a rank, all throw that rank's error. Unlike all_or_none(), it
/// also reports a timeout: all ranks are alive, and one waited in vain inside the step.
template <class Step>
void together(Bootstrap& bootstrap, const Step& step) {
  constexpr std::string_view kFine = "fine";
  std::string mine(kFine);
  try {
    step();
  } catch (const Error& error) {
    mine = std::to_string(static_cast<int>(error.status())) + " " + error.what();
  }
  const std::vector<std::string> all = gather_texts(bootstrap, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == kFine) continue;
    std::string_view text = all[rank];
    const int status = take_number<int>(text).value_or(static_cast<int>(Status::internal));
    if (text.starts_with(' ')) text.remove_prefix(1);
    throw Error(static_cast<Status>(status), "rank " + std::to_string(rank) + ": " + std::string(text),
                static_cast<int>(rank));
  }
}

}  // namespace torii::transports
