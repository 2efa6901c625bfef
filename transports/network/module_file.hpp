// SPDX-License-Identifier: Apache-2.0
// Opens a transport that is a separate module, so that a process loads the transport's library only if it was chosen.
#pragma once

#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>

namespace torii::transports {

/// Restores signal handlers: libraries of transports install handlers for crashes as soon as they are loaded. Several
/// ranks of one process may load at once; the first saves the handlers, the last restores them.
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

/// The first member of every Entry (entry.hpp). It changes with the types that library and module share.
struct EntryVersion {
  std::uint64_t value;
};

/// Opens torii/libtorii_<name>.so beside this code's library and returns its Entry. The module stays loaded. Throws
/// Error{unsupported} if it is missing or of another version.
const void* open_module(const std::string& name, std::uint64_t version);

}  // namespace torii::transports
