// SPDX-License-Identifier: Apache-2.0
// One pass over /proc, then the closure of "is a child of".
#include "tools/torii-run/process_tree.hpp"

#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace torii::tools {
namespace {

/// False if the process has ended meanwhile.
bool read_entry(const std::string& folder, ProcessEntry& entry) {
  char text[512] = {};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((folder + "/stat").c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr || std::fread(text, 1, sizeof(text) - 1, file.get()) == 0) return false;
  // The name in parentheses may have any character.
  const char* const behind_name = std::strrchr(text, ')');
  return behind_name != nullptr && std::sscanf(behind_name, ") %*c %d %*d %d", &entry.parent, &entry.session) == 2;
}

std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), &closedir);
  if (folder == nullptr) return all;
  while (const dirent* const name = readdir(folder.get())) {
    ProcessEntry entry;
    entry.pid = std::atoi(name->d_name);
    if (entry.pid > 0 && read_entry(std::string("/proc/") + name->d_name, entry)) all.push_back(entry);
  }
  return all;
}

}  // namespace

std::vector<ProcessEntry> processes_below(pid_t ancestor, const std::function<bool(const ProcessEntry&)>& is_left_out) {
  const std::vector<ProcessEntry> all = all_processes();
  std::vector<ProcessEntry> below;
  std::vector<pid_t> parents{ancestor};
  for (std::size_t at = 0; at < parents.size(); ++at) {
    for (const ProcessEntry& one : all) {
      if (one.parent != parents[at] || is_left_out(one)) continue;
      below.push_back(one);
      parents.push_back(one.pid);
    }
  }
  return below;
}

}  // namespace torii::tools
