// SPDX-License-Identifier: Apache-2.0
// The log of the library beside its status codes: nothing on success; levels by TORII_LOG; to stderr or a callback.
#pragma once

#include <cstdint>
#include <string_view>

namespace torii {

enum class LogLevel : std::uint8_t { error, warn, info, debug };
std::string_view name(LogLevel level) noexcept;

/// Receives one message without a line end. May be called from any thread that uses the library, one call at a time.
using LogFunction = void (*)(LogLevel level, std::string_view message, void* data);

/// Messages above `level` are dropped. Starts at `error`; the context sets it from Settings::log.
void set_log_level(LogLevel level) noexcept;
/// nullptr: back to stderr. `data` must outlive the callback's use.
void set_log_function(LogFunction function, void* data) noexcept;

/// True when a message of this level would be seen; guards messages that are costly to make.
bool logs(LogLevel level) noexcept;
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace torii
