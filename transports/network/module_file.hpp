// SPDX-License-Identifier: Apache-2.0
// Opening a transport that is a module of its own, so that its library is in a process only when it was chosen.
#pragma once

#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/execution/transport.hpp"

namespace torii::transports {

/// Puts signal handlers back as they were: libraries that transports link install handlers for crashes as soon as they
/// are loaded. Ranks that are threads of one process may load at once: the first one sees how handlers were, the last
/// one puts them back.
class KeptHandlers {
 public:
  KeptHandlers() noexcept;
  ~KeptHandlers();
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;

 private:
  static constexpr int kLast = 31;  // real-time signals belong to programs
  static std::mutex mutex_;
  static int holders_;
  static bool known_[kLast + 1];
  static struct sigaction before_[kLast + 1];
};

/// What every entry (entry.hpp) begins with: changes when anything does that library and module share.
struct EntryVersion {
  std::uint64_t value;
};

/// Opens torii/libtorii_<name>.so beside the library that this code is in, once and for ever, and returns its entry,
/// which begins with an EntryVersion. Throws Error: unsupported when it is not there, mismatch for another version.
const void* open_module(const std::string& name, std::uint64_t version);

/// Collective. open_module() on all ranks: a rank without the module must not leave the others waiting. Throws
/// Error{unsupported} on all, naming the rank.
const void* open_module_together(Bootstrap& bootstrap, const std::string& name, std::uint64_t version);

}  // namespace torii::transports
