// SPDX-License-Identifier: Apache-2.0
// Reads the traces of this process from /proc.
#include "tests/fabric/traces.hpp"

#include <dirent.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>

namespace torii::tests {
namespace {

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return names;
  while (const dirent* const entry = readdir(open)) names.emplace_back(entry->d_name);
  closedir(open);
  return names;
}

}  // namespace

Traces look() {
  Traces traces;
  for (int signal = 1; signal <= 31; ++signal) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0) traces.handlers.push_back(reinterpret_cast<void*>(now.sa_handler));
  }
  for (char** each = environ; *each != nullptr; ++each) traces.environment.insert(*each);
  traces.threads = entries("/proc/self/task").size();
  return traces;
}

bool is_loaded(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find(library) != std::string::npos;
}

std::set<std::string> listening() {
  std::set<std::string> own;
  for (const std::string& name : entries("/proc/self/fd")) {
    char target[64] = {};
    const std::string path = "/proc/self/fd/" + name;
    if (readlink(path.c_str(), target, sizeof(target) - 1) > 0) own.insert(target);
  }
  std::set<std::string> found;
  for (const char* const table : {"/proc/self/net/tcp", "/proc/self/net/tcp6", "/proc/self/net/udp"}) {
    std::ifstream file(table);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, skipped, inode;
      fields >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      if (state == "0A" && own.contains("socket:[" + inode + "]")) found.insert(local.substr(0, local.find(':')));
    }
  }
  return found;
}

Traces look_again(const Traces& before) {
  Traces after = look();
  for (int time = 0; time < 100 && after.threads != before.threads; ++time) {
    usleep(10'000);
    after = look();
  }
  return after;
}

std::set<std::string> threads() {
  std::set<std::string> found;
  for (const std::string& name : entries("/proc/self/task")) {
    if (name[0] != '.') found.insert(name);
  }
  return found;
}

}  // namespace torii::tests
