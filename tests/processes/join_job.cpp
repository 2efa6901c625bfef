// SPDX-License-Identifier: Apache-2.0
// Starting ranks by hand, and looking at the kernel's list of listeners.
#include "tests/processes/join_job.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/devices/address.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {

std::unique_ptr<Process> start_rank(int rank, int ranks, const Words& arguments, const Words& environment) {
  const Words command = Words{helper("join_rank")} + arguments;
  const Words place{"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks)};
  return std::make_unique<Process>(command, place + environment);
}

std::vector<Outcome> run_job(int ranks, const Words& arguments, const Words& environment) {
  std::vector<std::unique_ptr<Process>> processes;
  // The last first: whoever comes early waits for rank 0.
  for (int rank = ranks - 1; rank >= 0; --rank) processes.push_back(start_rank(rank, ranks, arguments, environment));
  std::vector<Outcome> outcomes;
  for (int rank = 0; rank < ranks; ++rank) {
    outcomes.push_back(processes[static_cast<std::size_t>(ranks - 1 - rank)]->wait());
  }
  return outcomes;
}

int free_port() {
  const Descriptor socket = listen_on(Address::parse("127.0.0.1", 0), {}, 1);
  return Address::of_socket(socket.get()).port();
}

Words meeting_at(int port) { return {"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port)}; }

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

namespace {

struct Socket {
  Listener listener;
  std::string inode;
};

/// What listens in the network that a process sees, "self" or a number.
std::vector<Socket> listening_sockets(const std::string& process) {
  std::vector<Socket> found;
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream lines("/proc/" + process + "/net/" + table);
    std::string line;
    std::getline(lines, line);  // the names of the columns
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string word[10];
      for (std::string& one : word) words >> one;
      const std::string& local = word[1];
      const std::size_t colon = local.find(':');
      if (word[3] != "0A" || colon == std::string::npos) continue;
      found.push_back({{local.substr(0, colon), std::stoi(local.substr(colon + 1), nullptr, 16)}, word[9]});
    }
  }
  return found;
}

}  // namespace

Words listeners_at(int port) {
  Words found;
  for (const Socket& one : listening_sockets("self")) {
    if (one.listener.port == port) found.push_back(one.listener.address);
  }
  return found;
}

std::vector<Listener> listeners_of(pid_t pid) {
  std::set<std::string> own;
  std::error_code ignored;
  const std::string process = std::to_string(pid);
  // A process that ends meanwhile has none.
  std::filesystem::directory_iterator files("/proc/" + process + "/fd", ignored);
  for (; !ignored && files != std::filesystem::directory_iterator(); files.increment(ignored)) {
    std::error_code gone;
    own.insert(std::filesystem::read_symlink(files->path(), gone).string());
  }
  std::vector<Listener> found;
  for (const Socket& one : listening_sockets(process)) {
    if (own.contains("socket:[" + one.inode + "]")) found.push_back(one.listener);
  }
  return found;
}

bool wait_for_listener(int port) {
  for (const double end_s = now_s() + 10; now_s() < end_s; usleep(1000)) {
    if (!listeners_at(port).empty()) return true;
  }
  return false;
}

}  // namespace torii::tests
