// SPDX-License-Identifier: Apache-2.0
// Uses sched_getaffinity and the lists under /sys/devices/system. hwloc has the same data, but it would read the
// whole machine and load plugins in every process that makes a context.
#include "runtime/devices/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <string>

#include "runtime/base/numbers.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/text_file.hpp"

namespace torii {
namespace {

constexpr int kNumbersMost = 65536;
constexpr int kCachesMost = 16;       ///< of a CPU, of all levels and kinds
constexpr int kSharedLevelLeast = 3;  ///< caches of the first levels belong to one core

/// "7" or "0-3" appended; false for anything else.
bool append_range(std::string_view text, CpuList& list) {
  const int first = take_number<int>(text).value_or(-1);
  const int last = text.starts_with('-') ? parse_number<int>(text.substr(1)).value_or(-1) : text.empty() ? first : -1;
  const bool fits = first >= 0 && first <= last && last < kNumbersMost;
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
  for (const std::string_view range : split(text, ',')) {
    if (!append_range(range, list)) return {};
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

std::optional<int> shared_cache(const CpuList& cpus, const std::filesystem::path& system) {
  if (cpus.empty()) return std::nullopt;
  const std::filesystem::path caches = system / "devices/system/cpu" / ("cpu" + std::to_string(cpus.front())) / "cache";
  CpuList last;
  int last_level = 0;
  for (int index = 0; index < kCachesMost; ++index) {
    const std::filesystem::path cache = caches / ("index" + std::to_string(index));
    const auto level = parse_number<int>(first_line(cache / "level"));
    if (!level) break;
    if (*level <= last_level) continue;
    last_level = *level;
    last = parse_cpu_list(first_line(cache / "shared_cpu_list"));
  }
  if (last_level < kSharedLevelLeast || !std::ranges::includes(last, cpus)) return std::nullopt;
  return last.front();
}

}  // namespace torii
