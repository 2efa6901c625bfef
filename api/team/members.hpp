// SPDX-License-Identifier: Apache-2.0
// Teams of members that the embedder names.
#pragma once

#include <torii/torii.h>

#include <memory>

#include "api/team/team.hpp"

namespace torii {

/// The team of all ranks of the context, or of the members that `given` names; `options` is the rest of `given`.
/// Collective over the members. Throws Error{invalid_argument} on a rank whose `given` names no team.
std::unique_ptr<Team> make_team(Context& context, const torii_team_options& given, const TeamOptions& options);

}  // namespace torii
