// SPDX-License-Identifier: Apache-2.0
// The text behind torii_last_error(), of the calling thread.
#pragma once

#include <string>

namespace torii {

void set_last_error(const std::string& text) noexcept;
const char* last_error() noexcept;

}  // namespace torii
