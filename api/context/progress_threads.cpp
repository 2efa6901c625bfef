// SPDX-License-Identifier: Apache-2.0
// Starts and runs progress threads.
#include "api/context/progress_threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

#include "api/context/background.hpp"
#include "runtime/base/blocked_signals.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/devices/cpus.hpp"
#include "runtime/fabric/transport.hpp"

namespace torii {
namespace {

/// A progress thread without work first yields its CPU this often, then naps: the caller's computation comes first.
constexpr auto kIdleYields = tuned<int>("waiting.background_yields");
constexpr std::chrono::microseconds kNap{tuned<int>("waiting.background_nap")};

/// Peers that poll for what this thread moves learn that they are on its CPU. Not while operations move quickly, and
/// not while it naps, which leaves its CPU to others.
void tell_cpu(int idle, Transport& transport) noexcept {
  if (idle == kIdleYields / 10 && !transport.oversubscribed()) {
    transport.note_wait(0, transport.clock_ns());
  }
}

void run(const std::stop_token& stop, Background& background, Transport& transport) {
  int idle = 0;
  while (!stop.stop_requested()) {
    if (!background.wait(stop)) continue;
    if (background.progress(nullptr)) {
      idle = 0;
      continue;
    }
    tell_cpu(++idle, transport);
    if (idle < kIdleYields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

cpu_set_t set_of(const std::string& text) {
  const CpuList cpus = parse_cpu_list(text);
  if (cpus.empty()) {
    throw Error(Status::invalid_argument, "TORII_HELPER_CPUS is '" + text +
                                              "'; it must be CPU numbers in ascending "
                                              "order like 0-3,8");
  }
  const CpuList allowed = allowed_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (!std::ranges::binary_search(allowed, cpu)) {
      throw Error(Status::invalid_argument,
                  "TORII_HELPER_CPUS is '" + text + "', but this process may not run on CPU " + std::to_string(cpu));
    }
    CPU_SET(static_cast<unsigned>(cpu), &set);
  }
  return set;
}

}  // namespace

ProgressThreads::ProgressThreads(Background& background, Transport& transport, int count, const std::string& cpus) {
  const BlockedSignals blocked;
  cpu_set_t set{};
  if (!cpus.empty()) set = set_of(cpus);
  try {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back(
          [&background, &transport](const std::stop_token& stop) { run(stop, background, transport); });
      pthread_setname_np(threads_.back().native_handle(), "torii-helper");
      if (!cpus.empty()) (void)pthread_setaffinity_np(threads_.back().native_handle(), sizeof(set), &set);
    }
  } catch (const std::system_error& error) {
    throw Error(Status::no_resource, "cannot start progress thread " + std::to_string(threads_.size() + 1) + " of " +
                                         std::to_string(count) + " (TORII_HELPERS): " + error.what());
  }
}

ProgressThreads::~ProgressThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

}  // namespace torii
