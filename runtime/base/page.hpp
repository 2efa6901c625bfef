// SPDX-License-Identifier: Apache-2.0
// The least size of a page, and a page that a forked child finds empty.
#pragma once

#include <cstddef>

namespace torii {

/// Larger pages only make holes and protections coarser.
inline constexpr std::size_t kPageBytes = 4096;

/// kPageBytes of private memory, zero here at first and in every forked child (MADV_WIPEONFORK). It needs no fork
/// handler. Throws Error{no_resource | unsupported}.
void* map_page_wiped_on_fork();

}  // namespace torii
