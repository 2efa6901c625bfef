// SPDX-License-Identifier: Apache-2.0
// The least size of a page.
#pragma once

#include <cstddef>

namespace torii {

/// Larger pages only make holes and protections coarser.
inline constexpr std::size_t kPageBytes = 4096;

}  // namespace torii
