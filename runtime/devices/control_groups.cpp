// SPDX-License-Identifier: Apache-2.0
// Reads /proc/self/cgroup for the groups and /proc/self/mountinfo for their folders.
#include "runtime/devices/control_groups.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "runtime/base/split.hpp"
#include "runtime/base/text_file.hpp"

namespace torii {
namespace {

namespace fs = std::filesystem;

/// A mounted tree of control groups, or a part of a tree.
struct Mount {
  std::string top;  ///< the control group that `folder` shows
  fs::path folder;
  bool is_unified;    ///< version 2
  std::string names;  ///< version 1: the controllers, separated by commas
};

bool is_listed(std::string_view name, std::string_view list) { return std::ranges::count(split(list, ','), name) != 0; }

/// Reads lines such as "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu".
std::vector<Mount> mounts(const fs::path& root) {
  std::vector<Mount> found;
  std::ifstream lines(root / "proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped;
    std::string top;
    std::string folder;
    words >> skipped >> skipped >> skipped >> top >> folder;
    while (words >> skipped && skipped != "-") {
    }
    std::string type;
    std::string names;
    words >> type >> skipped >> names;
    if (type != "cgroup" && type != "cgroup2") continue;
    found.push_back({top, root / fs::path(folder).relative_path(), type == "cgroup2", names});
  }
  return found;
}

/// The path of `group` below a folder that shows `top`; empty if the group is not inside `top`.
fs::path below(const std::string& group, const std::string& top) {
  if (group.starts_with("/..")) return {};
  if (top == "/") return fs::path(group).relative_path();
  if (!group.starts_with(top) || (group.size() > top.size() && group[top.size()] != '/')) return {};
  return fs::path(group.substr(top.size())).relative_path();
}

/// Nothing for "max 100000", and for -1 in version 1.
std::optional<double> quota_of(const fs::path& folder) {
  double quota_us = 0;
  double period_us = 0;
  std::ifstream file(folder / "cpu.max");
  if (!(file >> quota_us >> period_us)) {
    quota_us = first_value<double>(folder / "cpu.cfs_quota_us").value_or(-1);
    period_us = first_value<double>(folder / "cpu.cfs_period_us").value_or(0);
  }
  if (quota_us <= 0 || period_us <= 0) return std::nullopt;
  return quota_us / period_us;
}

}  // namespace

std::vector<fs::path> control_groups(std::string_view controller, const fs::path& root) {
  const std::vector<Mount> all = mounts(root);
  std::vector<fs::path> folders;
  std::ifstream lines(root / "proc/self/cgroup");
  // Lines such as "4:cpu,cpuacct:/user.slice", or "0::/user.slice" in version 2.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const bool is_unified = names.empty();
    if (!is_unified && !is_listed(controller, names)) continue;
    const auto mount = std::ranges::find_if(all, [&](const Mount& one) {
      return one.is_unified == is_unified && (is_unified || is_listed(controller, one.names));
    });
    if (mount == all.end()) continue;
    std::error_code ignored;
    for (fs::path inside = below(group, mount->top);; inside = inside.parent_path()) {
      const fs::path folder = inside.empty() ? mount->folder : mount->folder / inside;
      if (fs::is_directory(folder, ignored)) folders.push_back(folder);
      if (inside.empty()) break;
    }
  }
  return folders;
}

std::vector<CpuQuota> cpu_quotas(const fs::path& root) {
  std::vector<CpuQuota> quotas;
  for (const fs::path& folder : control_groups("cpu", root)) {
    const std::optional<double> cpus = quota_of(folder);
    struct stat about {};
    if (!cpus || stat(folder.c_str(), &about) != 0) continue;
    // All groups of a kind are in one file system, whose inodes identify them.
    quotas.push_back({about.st_dev * 0x9e3779b97f4a7c15ULL ^ about.st_ino, *cpus});
  }
  return quotas;
}

}  // namespace torii
