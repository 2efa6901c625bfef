// SPDX-License-Identifier: Apache-2.0
// Comparison of all options and settings that must be equal on the members of a new team.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/calls/team_options.hpp"
#include "api/context/context.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii {

/// Everything that must be equal on all members, one "NAME=value" a line.
std::string digest_text(Context& context, const TeamOptions& options);
std::uint64_t digest_of(const std::string& text);
/// Says in which line the texts of two members differ.
std::string difference_text(int rank, const std::string& text, int other, const std::string& other_text);
/// Throws Error{mismatch} with the first difference, on all ranks.
void compare_digests(Bootstrap& bootstrap, const std::string& mine);

/// A rank's part in a split, as it tells the others.
struct SplitCard {
  std::int32_t color;
  std::int32_t key;
  std::uint64_t memory_offset;
  std::uint64_t digest;  ///< of the options: equal for all ranks of a colour
};

/// An error on the ranks of a colour in which the options differ. All ranks see all tickets, so they agree on whether
/// the texts must be fetched.
std::optional<Error> compare_tickets(Bootstrap& bootstrap, const std::vector<SplitCard>& tickets,
                                     const std::string& mine);

}  // namespace torii
