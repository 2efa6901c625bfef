// SPDX-License-Identifier: Apache-2.0
// The transports that the suite runs on, each opened by its name: one row per transport in transports.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"

namespace torii::tests {

inline constexpr std::size_t kArenaBytes = std::size_t{32} << 20;

/// The address of an RDMA device, if `./dev verbs` names one; nullptr elsewhere.
const char* rdma_address();

/// A rank's transport and the memory that it puts into.
class OpenTransport {
 public:
  virtual ~OpenTransport() = default;
  virtual Transport& transport() noexcept = 0;
  virtual std::byte* arena() noexcept = 0;  ///< kArenaBytes of zeros
};

/// Collective. Throws Error.
std::unique_ptr<OpenTransport> open_transport(const std::string& name, Bootstrap& bootstrap, int engines);

/// Why this machine cannot run it: nothing, or what a test that skips says.
std::string obstacle(const std::string& name);
/// What this build can open; those that also run with ranks as processes.
std::vector<std::string> transport_names();
/// A way of a device imposed on another provider, and no transport of its own.
bool is_imposed(const std::string& name);
std::vector<std::string> process_transport_names();

}  // namespace torii::tests
