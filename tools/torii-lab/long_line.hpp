// SPDX-License-Identifier: Apache-2.0
// A line of fixed delay between two networks: two TAP devices, and a process that carries packets between them.
#pragma once

#include <string>

#include "runtime/base/descriptor.hpp"

namespace torii::tools {

/// Makes the TAP device `name` in the calling thread's network. It disappears when the descriptor is closed. Throws
/// Error{unsupported}.
Descriptor open_line_end(const std::string& name);

/// Forwards each packet from one end to the other, `delay_ms` after its arrival. Returns when an end fails.
void carry_packets(int first, int second, double delay_ms);

/// The work of the carrying process: carry_packets() until its parent or its namespace ends.
[[noreturn]] void carry_line(int first, int second, double delay_ms);

}  // namespace torii::tools
