// SPDX-License-Identifier: Apache-2.0
// The text behind torii_last_error(), of the calling thread.
#pragma once

#include <string_view>

namespace torii {

/// Empty where there is no memory for it.
void set_last_error(std::string_view text) noexcept;
const char* last_error() noexcept;

}  // namespace torii
