// SPDX-License-Identifier: Apache-2.0
// Tries a transport in the way of an embedder, which is the only proof that it works here.
#pragma once

#include <string>

namespace torii::tools {

struct Probe {
  bool works = false;
  std::string text;  ///< the result, or the reason of the failure
};

/// Two processes, this one and a temporary child, make contexts over `transport` and sum one number. Call it while this
/// process has one thread.
Probe probe_transport(const std::string& transport);

}  // namespace torii::tools
