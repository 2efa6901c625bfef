// SPDX-License-Identifier: Apache-2.0
// Tries a transport as an embedder would use it: only that shows whether it works here.
#pragma once

#include <string>

namespace torii::tools {

struct Probe {
  bool works = false;
  std::string text;  ///< what was done, or why it cannot be done
};

/// Two processes, this one and a temporary child, make contexts over `transport` and sum one number. Call it while this
/// process has one thread.
Probe probe_transport(const std::string& transport);

}  // namespace torii::tools
