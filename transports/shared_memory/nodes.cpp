// SPDX-License-Identifier: Apache-2.0
// Every rank tells where it runs; all then group the ranks in the same way.
#include "transports/shared_memory/nodes.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>

#include "runtime/base/status.hpp"
#include "runtime/devices/control_groups.hpp"
#include "runtime/devices/cpus.hpp"

namespace torii::shared_memory {

/// A CpuQuota as it is sent; it names no group if `group` is 0.
struct QuotaCard {
  std::uint64_t group = 0;
  double cpus = 0;
};
/// Groups with quotas are hardly nested deeper; groups further out are ignored.
constexpr std::size_t kQuotasMost = 4;

struct HostCard {
  std::array<char, 40> boot_id{};  ///< differs between two machines of one name
  std::array<char, 72> host{};     ///< differs between two copies of one running machine
  std::array<char, Nodes::kNameBytesMax + 1> name{};
  std::uint64_t ipc_namespace = 0;
  std::uint64_t net_namespace = 0;   ///< abstract sockets do not reach beyond it
  std::uint64_t user_namespace = 0;  ///< user numbers have another meaning beyond it
  std::uint64_t pid_namespace = 0;
  std::uint32_t user = 0;
  std::int32_t pid = 0;
  std::int32_t cache = -1;                ///< shared_cache() of its CPUs; -1: none
  std::array<std::uint64_t, 128> cpus{};  ///< bit set of the CPUs it may run on
  std::array<QuotaCard, kQuotasMost> quotas{};

  bool same_machine(const HostCard& other) const { return boot_id == other.boot_id; }
  bool same_network(const HostCard& other) const {
    return same_machine(other) && host == other.host && net_namespace == other.net_namespace;
  }
  bool same_node(const HostCard& other) const {
    return same_network(other) && ipc_namespace == other.ipc_namespace && user_namespace == other.user_namespace &&
           user == other.user && name == other.name;
  }
};

namespace {

/// 0 if /proc is missing; two such ranks compare equal, and the sockets then show whether they share a node.
std::uint64_t inode(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? info.st_ino : 0;
}

std::string read_boot_id() {
  char line[64] = {};
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(line, sizeof(line), file) != nullptr) line[std::strcspn(line, "\n")] = '\0';
    std::fclose(file);
  }
  return line;
}

HostCard make_card(std::string_view name, const std::filesystem::path& root) {
  HostCard card;
  utsname system{};
  uname(&system);
  copy_text(read_boot_id(), card.boot_id);
  copy_text(system.nodename, card.host);
  copy_text(name, card.name);
  card.ipc_namespace = inode("/proc/self/ns/ipc");
  card.net_namespace = inode("/proc/self/ns/net");
  card.user_namespace = inode("/proc/self/ns/user");
  card.pid_namespace = inode("/proc/self/ns/pid");
  card.user = geteuid();
  card.pid = getpid();
  sched_getaffinity(0, sizeof(card.cpus), reinterpret_cast<cpu_set_t*>(card.cpus.data()));
  card.cache = shared_cache(allowed_cpus(), root / "sys").value_or(-1);
  const std::vector<CpuQuota> quotas = cpu_quotas(root);
  for (std::size_t i = 0; i < std::min(quotas.size(), kQuotasMost); ++i)
    card.quotas[i] = {quotas[i].group, quotas[i].cpus};
  return card;
}

/// Whether one control group contains more of these ranks than its quota grants CPUs. A polling rank uses a whole CPU,
/// so fractions are ignored.
bool exceeds_a_quota(const std::vector<HostCard>& cards, const HostCard& mine) {
  std::map<std::uint64_t, int> ranks;  // by group
  for (const HostCard& card : cards) {
    for (const QuotaCard& quota : card.quotas) {
      if (quota.group != 0 && card.same_machine(mine) && ++ranks[quota.group] > quota.cpus) return true;
    }
  }
  return false;
}

/// Ranks that share the CPUs of `mine` against the size of the union of the sets that they may run on.
bool is_oversubscribed(const std::vector<HostCard>& cards, const HostCard& mine) {
  std::array<std::uint64_t, 128> together{};
  int ranks = 0;
  for (const HostCard& card : cards) {
    if (!card.same_machine(mine)) continue;
    ++ranks;
    std::transform(together.begin(), together.end(), card.cpus.begin(), together.begin(), std::bit_or<>());
  }
  int cpus = 0;
  for (const std::uint64_t word : together) cpus += std::popcount(word);
  return ranks > cpus || exceeds_a_quota(cards, mine);
}

}  // namespace

Nodes::Nodes(Bootstrap& bootstrap, std::string_view name, Rule rule, const std::filesystem::path& root)
    : rank_(bootstrap.rank()), cards_(gather_values(bootstrap, make_card(name, root))) {
  const HostCard& mine = cards_[static_cast<std::size_t>(rank_)];
  oversubscribed_ = is_oversubscribed(cards_, mine);
  for (std::size_t rank = 0; rank < cards_.size(); ++rank) {
    hosts_.emplace_back(cards_[rank].host.data());
    if (!cards_[rank].same_network(mine)) loopback_reaches_all_ = false;
    const auto first =
        std::find_if(cards_.begin(), cards_.end(), [&](const HostCard& card) { return card.same_node(cards_[rank]); });
    const auto at = static_cast<std::size_t>(first - cards_.begin());
    node_of_.push_back(rule == Rule::shared && at < rank ? node_of_[at] : count_++);
  }
}

Nodes::~Nodes() = default;

int Nodes::own_ranks() const noexcept {
  return static_cast<int>(std::count(node_of_.begin(), node_of_.end(), node(rank_)));
}

int Nodes::most_ranks() const noexcept {
  std::ptrdiff_t most = 0;
  for (int node = 0; node < count_; ++node) most = std::max(most, std::ranges::count(node_of_, node));
  return static_cast<int>(most);
}

/// "host a", or "host a (TORII_NODE b)".
std::string Nodes::place_text(int rank) const {
  const std::string name = cards_[static_cast<std::size_t>(rank)].name.data();
  return "host " + host(rank) + (name.empty() ? "" : " (TORII_NODE " + name + ")");
}

int Nodes::cache(int rank) const noexcept { return cards_[static_cast<std::size_t>(rank)].cache; }

void Nodes::check_single() const {
  for (int rank = 1; rank < ranks(); ++rank) {
    if (node(rank) == node(0)) continue;
    throw Error(Status::unsupported,
                "shared_memory cannot reach beyond one machine, its namespaces and one user: rank 0 is on " +
                    place_text(0) + ", rank " + std::to_string(rank) + " on " + place_text(rank));
  }
}

pid_t Nodes::visible_pid(int rank) const noexcept {
  const HostCard& mine = cards_[static_cast<std::size_t>(rank_)];
  const HostCard& card = cards_[static_cast<std::size_t>(rank)];
  return card.same_machine(mine) && card.host == mine.host && card.pid_namespace == mine.pid_namespace ? card.pid : 0;
}

bool Nodes::alone_in_process() const noexcept {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank != rank_ && visible_pid(rank) == visible_pid(rank_)) return false;
  }
  return true;
}

}  // namespace torii::shared_memory
