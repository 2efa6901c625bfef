// SPDX-License-Identifier: Apache-2.0
// Reads /proc/meminfo, the files of memory control groups, and the commit limit.
#include "runtime/devices/memory_limits.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/base/numbers.hpp"
#include "runtime/base/platform.hpp"
#include "runtime/devices/control_groups.hpp"

namespace torii {
namespace {

namespace fs = std::filesystem;

/// A larger value means that there is no limit: version 1 writes the largest multiple of a page.
constexpr std::size_t kNoLimit = std::size_t{1} << 60;

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::size_t> number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return take_number<std::size_t>(text);
}

/// The number that follows `name` at the beginning of a line.
std::optional<std::size_t> number_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.starts_with(name) ? 0 : text.find("\n" + name);
  if (at == std::string::npos) return {};
  return number(std::string_view(text).substr(text.find(name, at) + name.size()));
}

std::size_t rest(std::size_t limit, std::size_t used) { return limit > used ? limit - used : 0; }

std::size_t sum(std::size_t a, std::size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

}  // namespace

MemoryLimits::MemoryLimits(fs::path root) : root_(std::move(root)), groups_(control_groups("memory", root_)) {}

std::optional<MemoryLeft> MemoryLimits::machine() const {
  const std::string text = read_file(root_ / "proc/meminfo");
  const auto available = number_of(text, "MemAvailable:");
  if (!available) return {};
  const std::size_t total = number_of(text, "MemTotal:").value_or(0) + number_of(text, "SwapTotal:").value_or(0);
  return MemoryLeft{(*available + number_of(text, "SwapFree:").value_or(0)) * 1024, total * 1024,
                    "the machine's memory"};
}

std::optional<MemoryLeft> MemoryLimits::left_in(const fs::path& group, std::size_t free_swap_bytes) {
  const auto value = [&](const char* file) { return number(read_file(group / file)); };
  std::error_code ignored;
  const bool is_unified = fs::exists(group / "memory.max", ignored);  // version 2
  const char* const name = is_unified ? "memory.max" : "memory.limit_in_bytes";
  const std::size_t limit = value(name).value_or(SIZE_MAX);  // version 2 writes "max" for none
  if (limit >= kNoLimit) return {};
  const std::size_t used = value(is_unified ? "memory.current" : "memory.usage_in_bytes").value_or(0);
  const std::string stat = read_file(group / "memory.stat");
  const std::string prefix = is_unified ? "" : "total_";
  const std::size_t files =
      number_of(stat, prefix + "inactive_file ").value_or(0) + number_of(stat, prefix + "active_file ").value_or(0);
  std::size_t left = rest(limit, rest(used, files));
  if (is_unified) {
    const std::size_t swap_limit = value("memory.swap.max").value_or(SIZE_MAX);
    const std::size_t swap_left = rest(swap_limit, value("memory.swap.current").value_or(0));
    left = sum(left, std::min(free_swap_bytes, swap_left));
  } else {
    left = sum(left, free_swap_bytes);
    if (const auto together = value("memory.memsw.limit_in_bytes")) {
      left = std::min(left, rest(*together, rest(value("memory.memsw.usage_in_bytes").value_or(0), files)));
    }
  }
  return MemoryLeft{
      left, limit,
      "the control group's limit of " + std::to_string(limit) + " bytes (" + (group / name).string() + ")"};
}

std::optional<MemoryLeft> MemoryLimits::group() const {
  if (groups_.empty()) return {};
  const std::size_t free_swap = number_of(read_file(root_ / "proc/meminfo"), "SwapFree:").value_or(0) * 1024;
  std::optional<MemoryLeft> least;
  for (const fs::path& group : groups_) {
    auto left = left_in(group, free_swap);
    if (left && (!least || left->bytes < least->bytes)) least = std::move(left);
  }
  return least;
}

std::optional<MemoryLeft> MemoryLimits::commit() const {
  if (number(read_file(root_ / "proc/sys/vm/overcommit_memory")).value_or(0) != 2) return {};
  const std::string text = read_file(root_ / "proc/meminfo");
  const auto limit = number_of(text, "CommitLimit:");
  const auto used = number_of(text, "Committed_AS:");
  if (!limit || !used) return {};
  return MemoryLeft{rest(*limit, *used) * 1024, *limit * 1024,
                    "the commit limit of " + std::to_string(*limit * 1024) + " bytes (vm.overcommit_memory is 2)"};
}

MemoryLeft MemoryLimits::left() const {
  MemoryLeft least;
  for (auto each : {machine(), group(), commit()}) {
    if (each && each->bytes < least.bytes) least = std::move(*each);
  }
  return least;
}

MemoryLeft memory_left() {
  const std::optional<std::size_t> simulated = platform().memory_left_bytes();
  return simulated ? MemoryLeft{*simulated, SIZE_MAX, "the simulation"} : memory_limits().left();
}

std::size_t memory_left_lately() {
  constexpr std::int64_t kAgeMostNs = 20'000'000;
  // All ranks of a machine together touch memory no faster. So what was left when it was read is not all gone.
  constexpr std::size_t kBytesPerNs = 64;
  constexpr std::int64_t kNever = INT64_MIN;
  static std::atomic<std::int64_t> read_ns{kNever};
  static std::atomic<std::size_t> bytes{0};
  if (const std::optional<std::size_t> simulated = platform().memory_left_bytes()) return *simulated;
  const std::int64_t now = now_ns();
  const std::int64_t before = read_ns.load(std::memory_order_acquire);
  const std::size_t known = bytes.load(std::memory_order_relaxed);
  const auto lasts_ns = static_cast<std::int64_t>(known / kBytesPerNs);
  if (before != kNever && now - before < std::min(kAgeMostNs, lasts_ns)) return known;
  const std::size_t left = memory_limits().left().bytes;
  bytes.store(left, std::memory_order_relaxed);
  read_ns.store(now, std::memory_order_release);
  return left;
}

const MemoryLimits& memory_limits() {
  static const MemoryLimits limits;
  return limits;
}

}  // namespace torii
