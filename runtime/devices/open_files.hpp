// SPDX-License-Identifier: Apache-2.0
// How many files this process may have open.
#pragma once

#include <cstddef>

namespace torii {

/// The soft limit (ulimit -n): the descriptors of this process have smaller numbers.
std::size_t open_files_limit() noexcept;

/// Whether this process may open so many more now. Tries it.
bool may_open_files(std::size_t count);

/// Raises the soft limit to `wanted`, or to the hard limit if that is lower. A higher one stays. Processes that this
/// one starts have the same limits.
void raise_open_files_limit(std::size_t wanted) noexcept;

}  // namespace torii
