// SPDX-License-Identifier: Apache-2.0
// sched_getaffinity, and the lists under /sys/devices/system/node. hwloc knows the same, but reading the whole machine
// and loading plugins in every process that makes a context would be a bad guest's way.
#include "runtime/devices/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace torii {
namespace {

constexpr int kNumbersMost = 65536;

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "7" or "0-3" appended; false for anything else.
bool append_range(std::string_view text, CpuList& list) {
  int first = 0;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, first);
  int last = first;
  if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
  const bool fits = read.ec == std::errc{} && read.ptr == end && first >= 0 && first <= last && last < kNumbersMost;
  if (!fits || (!list.empty() && list.back() >= first)) return false;
  for (int number = first; number <= last; ++number) list.push_back(number);
  return true;
}

}  // namespace

CpuList allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CpuList cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

CpuList parse_cpu_list(std::string_view text) {
  CpuList list;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!append_range(text.substr(0, comma), list)) return {};
    text.remove_prefix(comma);
    if (text.empty()) break;
    text.remove_prefix(1);
    if (text.empty()) return {};  // a comma at the end
  }
  return list;
}

std::optional<int> home_node(const CpuList& cpus, const std::filesystem::path& system) {
  const std::filesystem::path nodes = system / "devices/system/node";
  const CpuList online = parse_cpu_list(first_line(nodes / "online"));
  if (cpus.empty() || online.size() < 2) return std::nullopt;
  for (const int node : online) {
    const CpuList here = parse_cpu_list(first_line(nodes / ("node" + std::to_string(node)) / "cpulist"));
    if (!std::ranges::binary_search(here, cpus[0])) continue;
    if (std::ranges::includes(here, cpus)) return node;
    break;
  }
  return std::nullopt;
}

}  // namespace torii
