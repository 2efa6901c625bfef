// SPDX-License-Identifier: Apache-2.0
// Why the operating system refused, for the end of a message.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace torii {

/// An error number in words and parentheses, as in " (No such file or directory)". Names a limit that can be raised.
inline std::string reason(int error = errno) {
  return std::string(" (") + std::strerror(error) + (error == EMFILE ? "; raise the limit, ulimit -n)" : ")");
}

}  // namespace torii
