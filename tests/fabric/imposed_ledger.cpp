// SPDX-License-Identifier: Apache-2.0
// The notices that endpoints of this process have sent each other and taken.
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/fabric/imposed_objects.hpp"

namespace torii::tests {
namespace {

struct Account {
  std::int64_t sent = 0;
  std::int64_t taken = 0;
  const Endpoint* open = nullptr;
};

std::mutex ledger_mutex;
int open_count = 0;
std::vector<std::pair<std::uintptr_t, std::size_t>> registered;  // addresses and bytes
/// Never destroyed: endpoints that are never closed hang on it.
std::map<std::string, Account>& ledger() {
  static auto* const all = new std::map<std::string, Account>;
  return *all;
}

}  // namespace

int imposed_engines() noexcept {
  const std::lock_guard lock(ledger_mutex);
  return open_count;
}

Registered imposed_registrations(const void* base, std::size_t bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(base);
  Registered all;
  const std::lock_guard lock(ledger_mutex);
  for (const auto& [address, length] : registered) {
    if (address < first || address >= first + bytes) continue;
    ++all.count;
    all.bytes += length;
  }
  return all;
}

void forget_registrations() noexcept {
  const std::lock_guard lock(ledger_mutex);
  registered.clear();
}

void count_registered(const void* base, std::size_t bytes) {
  const std::lock_guard lock(ledger_mutex);
  registered.emplace_back(reinterpret_cast<std::uintptr_t>(base), bytes);
}

void count_enabled(Endpoint& endpoint) {
  std::array<char, 256> name{};
  std::size_t bytes = name.size();
  demand(fi_getname(&endpoint.real->fid, name.data(), &bytes) == 0, "an endpoint has a name");
  endpoint.name.assign(name.data(), bytes);
  const std::lock_guard lock(ledger_mutex);
  ledger()[endpoint.name] = {0, 0, &endpoint};
  ++open_count;
}

void count_sent(Endpoint& endpoint, fi_addr_t to, int more) {
  if (!endpoint.modes.as_verbs) return;
  std::array<char, 256> name{};
  std::size_t bytes = name.size();
  demand(fi_av_lookup(endpoint.addresses, to, name.data(), &bytes) == 0, "an address is known");
  const std::lock_guard lock(ledger_mutex);
  const auto account = ledger().find(std::string(name.data(), bytes));
  if (account == ledger().end()) return;  // of another process
  demand(account->second.open != nullptr, "an engine was closed before its peers sent their last notices");
  account->second.sent += more;
}

void count_taken(Endpoint& endpoint) {
  const std::lock_guard lock(ledger_mutex);
  ++ledger()[endpoint.name].taken;
}

void count_closed(Endpoint& endpoint) {
  const std::lock_guard lock(ledger_mutex);
  --open_count;
  Account& account = ledger()[endpoint.name];
  demand(!endpoint.modes.as_verbs || account.sent == account.taken, "an engine was closed with an unread notice");
  account.open = nullptr;
}

}  // namespace torii::tests
