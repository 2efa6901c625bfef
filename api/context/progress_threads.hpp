// SPDX-License-Identifier: Apache-2.0
// Progress threads move operations in flight while the callers compute. There are none unless TORII_HELPERS asks for
// them.
#pragma once

#include <string>
#include <thread>
#include <vector>

namespace torii {

class Background;
class Transport;

/// The threads live as long as the context, and sleep while no operation is in flight. They block all signals, so the
/// program's handlers never run on them.
class ProgressThreads {
 public:
  /// The first two must outlive this. `cpus` is a list of CPU numbers on which the threads run; empty: on those of the
  /// calling thread. Throws Error: invalid_argument if the process may not run on one of them, no_resource if a thread
  /// cannot be made.
  ProgressThreads(Background& background, Transport& transport, int count, const std::string& cpus = {});
  /// Ends and joins the threads; operations in flight stay unfinished.
  ~ProgressThreads();
  ProgressThreads(const ProgressThreads&) = delete;
  ProgressThreads& operator=(const ProgressThreads&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace torii
