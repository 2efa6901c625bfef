// SPDX-License-Identifier: Apache-2.0
// The log: one level, one receiver, one message at a time.
#include "runtime/base/log.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace torii {
namespace {

struct Receiver {
  std::mutex mutex;
  LogFunction function = nullptr;
  void* data = nullptr;
};

std::atomic<LogLevel> level_now{LogLevel::error};

// Never destroyed: threads may still log while static objects go.
Receiver& receiver() noexcept {
  static auto* const instance = new Receiver;
  return *instance;
}

}  // namespace

std::string_view name(LogLevel level) noexcept {
  constexpr std::string_view kNames[] = {"error", "warn", "info", "debug"};
  return kNames[static_cast<std::size_t>(level)];
}

void set_log_level(LogLevel level) noexcept { level_now.store(level, std::memory_order_relaxed); }

void set_log_function(LogFunction function, void* data) noexcept {
  const std::lock_guard lock(receiver().mutex);
  receiver().function = function;
  receiver().data = data;
}

bool logs(LogLevel level) noexcept { return level <= level_now.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view message) noexcept {
  if (!logs(level)) return;
  const std::lock_guard lock(receiver().mutex);
  if (receiver().function != nullptr) {
    receiver().function(level, message, receiver().data);
    return;
  }
  const std::string_view label = name(level);
  // One call, so that the lines of several ranks on one terminal do not mix.
  std::fprintf(stderr, "torii %.*s: %.*s\n", static_cast<int>(label.size()), label.data(),
               static_cast<int>(message.size()), message.data());
}

}  // namespace torii
