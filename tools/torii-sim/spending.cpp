// SPDX-License-Identifier: Apache-2.0
// Asks the kernel.
#include "tools/torii-sim/spending.hpp"

#include <sys/resource.h>

namespace torii::tools {

Spending spending() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);  // cannot fail with these arguments
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_maxrss) / 1024};
}

}  // namespace torii::tools
