// SPDX-License-Identifier: Apache-2.0
// Makes namespaces by unshare, cables and routes by `ip -batch`, rates by `tc -batch`; reads counters from
// /proc/net/dev.
#include "tools/torii-lab/laboratory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "runtime/base/status.hpp"
#include "tools/torii-lab/long_line.hpp"
#include "tools/torii-lab/switched.hpp"

namespace torii::tools {
namespace {

constexpr const char* kOwnNetwork = "/proc/thread-self/ns/net";
constexpr const char* kOwnHost = "/proc/thread-self/ns/uts";

[[noreturn]] void fail(const std::string& what) {
  throw Error(Status::unsupported, what + ": " + std::strerror(errno));
}

std::string network_path(const std::string& host) { return "/run/netns/" + host; }
std::string host_path(const std::string& host) { return "/run/netns/." + host + ".uts"; }

/// An open file without a name that contains `text`.
Descriptor file_of(const std::string& text) {
  Descriptor file(memfd_create("torii-lab", MFD_CLOEXEC));
  if (!file.open() || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    fail("cannot hold a list of commands");
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// Starts a program with a text as input and collects its output; `before` runs in the child first.
class Command {
 public:
  Command(std::vector<const char*> words, const std::string& input, const std::function<bool()>& before)
      : name_(words[0]), input_(file_of(input)), output_(file_of("")) {
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ < 0) fail("cannot start " + name_);
    if (pid_ != 0) return;
    dup2(input_.get(), STDIN_FILENO);
    dup2(output_.get(), STDOUT_FILENO);
    dup2(output_.get(), STDERR_FILENO);
    // At a real-time priority, inherited from us, iproute2 can wait for ever for a kernel thread that it keeps from
    // running.
    const sched_param ordinary{};
    sched_setscheduler(0, SCHED_OTHER, &ordinary);
    if (before()) execvp(words[0], const_cast<char**>(words.data()));
    _exit(127);
  }
  /// Throws Error with the program's output.
  void end() {
    int status = 0;
    waitpid(pid_, &status, 0);
    if (status == 0) return;
    char said[1024] = "";
    const ssize_t got = pread(output_.get(), said, sizeof(said) - 1, 0);
    const std::string text(said, got > 0 ? static_cast<std::size_t>(got) : 0);
    throw Error(Status::unsupported, name_ + " refuses a link of the laboratory: " + text);
  }

 private:
  std::string name_;
  Descriptor input_;
  Descriptor output_;
  pid_t pid_ = -1;
};

/// Kernel settings for the network of the calling process.
bool prepare_network(const LabNetwork& network) {
  const std::string receive = fmt::format("4096 {0} {0}", network.window_bytes);
  std::vector<std::pair<const char*, const char*>> switches = {{"/proc/sys/net/ipv4/ip_forward", "1"},
                                                               // Replies may take another way than the packets.
                                                               {"/proc/sys/net/ipv4/conf/all/rp_filter", "0"},
                                                               {"/proc/sys/net/ipv4/conf/default/rp_filter", "0"},
                                                               // IPv6's own packets would appear in the counters.
                                                               {"/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"},
                                                               {"/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"},
                                                               {"/proc/sys/net/ipv4/tcp_congestion_control", "reno"},
                                                               // After a pause a stream continues at its old rate.
                                                               {"/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"}};
  if (network.window_bytes > 0) switches.emplace_back("/proc/sys/net/ipv4/tcp_rmem", receive.c_str());
  for (const auto& [path, value] : switches) {
    const Descriptor file(open(path, O_WRONLY | O_CLOEXEC));
    // A kernel without IPv6, or with other congestion controls, is good enough.
    if (file.open() && write(file.get(), value, std::strlen(value)) < 0 && path == switches[0].first) return false;
  }
  return true;
}

void bind_name(const std::string& source, const std::string& name) {
  const Descriptor file(open(name.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0444));
  if (!file.open() || mount(source.c_str(), name.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    fail("cannot give a namespace the name " + name);
  }
}

/// Programs that run at once.
constexpr std::size_t kCommandsAtOnce = 8;

void run_in_nodes(int nodes, const std::function<Command(int node)>& start) {
  std::vector<Command> running;
  for (int node = 0; node < nodes; ++node) {
    running.push_back(start(node));
    if (running.size() < kCommandsAtOnce) continue;
    running.front().end();
    running.erase(running.begin());
  }
  for (Command& one : running) one.end();
}

}  // namespace

Laboratory::Laboratory(const LabNetwork& network) : network_(network) {
  const Descriptor own_network(open(kOwnNetwork, O_RDONLY | O_CLOEXEC));
  const Descriptor own_host(open(kOwnHost, O_RDONLY | O_CLOEXEC));
  const int nodes = static_cast<int>(network_.nodes.size());
  for (int node = 0; node < nodes; ++node) make_node(node);
  if (setns(own_network.get(), CLONE_NEWNET) != 0 || setns(own_host.get(), CLONE_NEWUTS) != 0) {
    fail("cannot go back to the first namespace");
  }
  write_hosts();
  if (!network_.lines.empty()) std::ofstream(std::string(kTreeFile)) << sites_tree_text(network_);
  for (const LabLine& line : network_.lines) make_line(line);
  if (setns(own_network.get(), CLONE_NEWNET) != 0) fail("cannot go back to the first namespace");
  std::vector<std::string> paths;
  for (const LabNode& one : network_.nodes) paths.push_back(network_path(one.host));
  Command({"ip", "-batch", "-"}, cable_commands(network_, paths), [] { return true; }).end();
  run_in_nodes(nodes, [this](int node) {
    return Command({"ip", "-batch", "-"}, node_commands(network_, node),
                   [this, node] { return enter(node) && prepare_network(network_); });
  });
  run_in_nodes(nodes, [this](int node) {
    return Command({"tc", "-batch", "-"}, rate_commands(network_.nodes[static_cast<std::size_t>(node)]),
                   [this, node] { return enter(node); });
  });
}

/// A separate process carries the packets; it ends with the PID namespace.
void Laboratory::make_line(const LabLine& line) {
  Descriptor ends[2];
  for (int end = 0; end < 2; ++end) {
    if (setns(networks_[static_cast<std::size_t>(line.nodes[end])].get(), CLONE_NEWNET) != 0) {
      fail("cannot enter the node of a long line");
    }
    ends[end] = open_line_end(line.devices[end]);
  }
  const pid_t process = fork();
  if (process < 0) fail("cannot start the process of a long line");
  if (process == 0) carry_line(ends[0].get(), ends[1].get(), line.delay_ms);
}

void Laboratory::make_node(int node) {
  const std::string& host = network_.nodes[static_cast<std::size_t>(node)].host;
  if (unshare(CLONE_NEWNET | CLONE_NEWUTS) != 0 || sethostname(host.data(), host.size()) != 0) {
    fail("cannot make the namespaces of node " + std::to_string(node));
  }
  networks_.emplace_back(open(kOwnNetwork, O_RDONLY | O_CLOEXEC));
  hosts_.emplace_back(open(kOwnHost, O_RDONLY | O_CLOEXEC));
  if (!networks_.back().open() || !hosts_.back().open())
    fail("cannot hold the namespaces of node " + std::to_string(node));
  bind_name(kOwnNetwork, network_path(host));
  bind_name(kOwnHost, host_path(host));
}

/// The mount keeps the file when its name is removed.
void Laboratory::write_hosts() const {
  constexpr const char* kDraft = "/run/netns/.hosts";
  {
    std::ofstream file(kDraft);
    file << "127.0.0.1 localhost\n";
    for (const LabNode& one : network_.nodes) {
      if (!one.addresses.empty()) file << one.addresses[0] << ' ' << one.host << '\n';
    }
  }
  if (mount(kDraft, "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) fail("cannot put the nodes' names into /etc/hosts");
  unlink(kDraft);
}

bool Laboratory::enter(int node) const noexcept {
  const auto at = static_cast<std::size_t>(node);
  return setns(networks_[at].get(), CLONE_NEWNET) == 0 && setns(hosts_[at].get(), CLONE_NEWUTS) == 0;
}

std::vector<std::vector<LinkCount>> Laboratory::counts() const {
  const Descriptor own(open(kOwnNetwork, O_RDONLY | O_CLOEXEC));
  std::vector<std::vector<LinkCount>> all;
  for (std::size_t node = 0; node < network_.nodes.size(); ++node) {
    if (setns(networks_[node].get(), CLONE_NEWNET) != 0)
      fail("cannot read the counters of node " + std::to_string(node));
    std::ifstream table("/proc/thread-self/net/dev");
    std::vector<LinkCount> counts(network_.nodes[node].devices.size());
    for (std::string line; std::getline(table, line);) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) continue;
      const std::string name = line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '));
      const auto& devices = network_.nodes[node].devices;
      const auto device = std::ranges::find(devices, name, &LabDevice::name);
      if (device == devices.end()) continue;
      std::istringstream words(line.substr(colon + 1));
      // Eight columns for received data precede those for sent data.
      std::vector<std::uint64_t> numbers(10);
      for (std::uint64_t& number : numbers) words >> number;
      counts[static_cast<std::size_t>(device - devices.begin())] = {numbers[8], numbers[9]};
    }
    all.push_back(std::move(counts));
  }
  if (setns(own.get(), CLONE_NEWNET) != 0) fail("cannot go back to the first namespace");
  return all;
}

bool enter_by_name(const std::string& host) noexcept {
  const Descriptor network(open(network_path(host).c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor uts(open(host_path(host).c_str(), O_RDONLY | O_CLOEXEC));
  return network.open() && uts.open() && setns(network.get(), CLONE_NEWNET) == 0 && setns(uts.get(), CLONE_NEWUTS) == 0;
}

}  // namespace torii::tools
