// SPDX-License-Identifier: Apache-2.0
// Facts about this machine from /proc and /sys.
#include "perf/common/host.hpp"

#include <unistd.h>

#include <fstream>
#include <limits>
#include <set>
#include <system_error>

#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

/// The rest of the first line of `file` that starts with `key`, from the first character that is neither blank nor
/// colon.
std::string value_of(const std::filesystem::path& file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

/// RDMA devices that stand on no bus, such as those of Soft-RoCE.
std::set<std::string> rdma_by_software(const std::filesystem::path& root) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator(root / "sys/class/infiniband", none)) {
    if (!std::filesystem::exists(device.path() / "device")) names.insert(device.path().filename());
  }
  return names;
}

}  // namespace

std::string host(const std::filesystem::path& root) {
  const std::string model = value_of(root / "proc/cpuinfo", "model name");
  std::string emulated = model.rfind("QEMU TCG", 0) == 0 ? ", of its CPUs" : "";
  for (const std::string& device : rdma_by_software(root)) emulated += ", of " + device;
  if (!emulated.empty()) emulated.replace(0, 1, ", emulation");
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  return (model.empty() ? "unknown CPU" : model) + ", " + std::to_string(cpus) + " CPUs" + emulated;
}

size_t available_memory_bytes() {
  const std::string text = value_of("/proc/meminfo", "MemAvailable");
  std::string_view rest = text;
  const auto kilobytes = take_number<size_t>(rest);
  return kilobytes ? *kilobytes * 1024 : std::numeric_limits<size_t>::max();
}

}  // namespace torii::perf
