// SPDX-License-Identifier: Apache-2.0
// Data that is overwritten while others read it (docs/memory_order.md, "Torn and versioned data"): each world has a
// writer and a reader, which may find nothing but never a mixture.
#pragma once

#include <memory>

#include "tests/exploration/explorer.hpp"

namespace torii::exploration {

/// The address comes to another place among as many, or among more than before, or these need a larger block.
enum class AddressChange { moves, more, larger_block };
/// A thread of a rank replaces the entries of its table of adopted addresses; another one looks an address up.
std::unique_ptr<World> adopted_addresses(AddressChange change);
/// A rank writes the records of two calls to one place; a peer reads them meanwhile.
std::unique_ptr<World> call_records();
/// A rank refuses two calls, with notices in one place.
std::unique_ptr<World> refusal_notices();
/// Two ranks refuse the same calls, and one of them compares notices.
std::unique_ptr<World> calls_that_both_refuse();

}  // namespace torii::exploration
