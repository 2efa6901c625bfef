// SPDX-License-Identifier: Apache-2.0
// Facts about this machine from /proc.
#include "perf/common/host.hpp"

#include <unistd.h>

#include <fstream>
#include <limits>

#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

/// The rest of the first line of `file` that starts with `key`, from the first character that is neither blank nor
/// colon.
std::string value_of(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

}  // namespace

std::string host() {
  const std::string model = value_of("/proc/cpuinfo", "model name");
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  return (model.empty() ? "unknown CPU" : model) + ", " + std::to_string(cpus) + " CPUs";
}

size_t available_memory_bytes() {
  const std::string text = value_of("/proc/meminfo", "MemAvailable");
  std::string_view rest = text;
  const auto kilobytes = take_number<size_t>(rest);
  return kilobytes ? *kilobytes * 1024 : std::numeric_limits<size_t>::max();
}

}  // namespace torii::perf
