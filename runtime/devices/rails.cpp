// SPDX-License-Identifier: Apache-2.0
// Selects devices near the rank, and networks that all ranks share.
#include "runtime/devices/rails.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

namespace torii {
namespace {

bool share_a_cpu(const CpuList& a, const CpuList& b) {
  return std::ranges::any_of(a, [&](int cpu) { return std::ranges::binary_search(b, cpu); });
}

bool is_slow(const Nic& nic, double fastest) { return nic.mbit_per_s != 0 && nic.mbit_per_s < fastest / 2; }

bool has_network(const RankRails& rank, const std::string& network) {
  return std::ranges::find(rank.rails, network, &Rail::network) != rank.rails.end();
}

/// Networks in which two hosts have the same address.
std::set<std::string> private_networks(const std::vector<RankRails>& ranks) {
  std::map<std::string, std::string> host_of;
  std::set<std::string> networks;
  for (const RankRails& rank : ranks) {
    for (const Rail& rail : rank.rails) {
      if (rail.network.empty()) continue;
      const auto [place, is_new] = host_of.emplace(rail.name, rank.host);
      if (!is_new && place->second != rank.host) networks.insert(rail.network);
    }
  }
  return networks;
}

std::vector<std::string> common_networks(const std::vector<RankRails>& ranks) {
  const std::set<std::string> left_out = private_networks(ranks);
  std::vector<std::string> common;
  for (const Rail& rail : ranks[0].rails) {
    if (left_out.contains(rail.network) || std::ranges::find(common, rail.network) != common.end()) continue;
    const auto has_it = [&](const RankRails& rank) { return has_network(rank, rail.network); };
    if (std::ranges::all_of(ranks, has_it)) common.push_back(rail.network);
  }
  return common;
}

/// The number of lower ranks with the same host and the same rails.
std::size_t seat_of(const std::vector<RankRails>& ranks, std::size_t rank) {
  const auto text = rails_text(ranks[rank]);
  const auto end = ranks.begin() + static_cast<std::ptrdiff_t>(rank);
  return static_cast<std::size_t>(
      std::count_if(ranks.begin(), end, [&](const RankRails& other) { return rails_text(other) == text; }));
}

}  // namespace

std::vector<std::size_t> preferred_nics(const std::vector<Nic>& nics, const CpuList& allowed) {
  double fastest = 0;
  for (const Nic& nic : nics) fastest = std::max(fastest, nic.mbit_per_s);
  std::vector<std::size_t> fast;
  std::vector<std::size_t> near_ones;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (is_slow(nics[i], fastest)) continue;
    fast.push_back(i);
    if (share_a_cpu(nics[i].near_cpus, allowed)) near_ones.push_back(i);
  }
  return near_ones.empty() ? fast : near_ones;
}

std::vector<std::size_t> preferred_sources(const std::vector<RailSource>& sources, const std::vector<Nic>& nics,
                                           const CpuList& allowed, bool named) {
  std::vector<std::size_t> kept(sources.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  const auto nic_of = [&](std::size_t source) {
    const auto found = std::ranges::find(nics, sources[source].interface, &Nic::name);
    return found == nics.end() ? Nic{} : *found;
  };
  if (!named && !sources.empty()) {
    if (nic_of(0).name.empty()) return {0};
    std::erase_if(kept, [&](std::size_t source) { return nic_of(source).name.empty(); });
    double fastest = 0;
    for (const std::size_t source : kept) fastest = std::max(fastest, nic_of(source).mbit_per_s);
    std::erase_if(kept, [&](std::size_t source) { return is_slow(nic_of(source), fastest); });
  }
  std::vector<std::size_t> chosen;
  for (const std::size_t source : kept) {
    std::vector<std::size_t> here;
    std::vector<Nic> here_nics;
    for (const std::size_t other : kept) {
      if (sources[other].network != sources[source].network) continue;
      here.push_back(other);
      here_nics.push_back(nic_of(other));
    }
    const std::vector<std::size_t> preferred = preferred_nics(here_nics, allowed);
    const auto is_this = [&](std::size_t index) { return here[index] == source; };
    if (std::ranges::any_of(preferred, is_this)) chosen.push_back(source);
  }
  return chosen;
}

std::vector<std::size_t> engine_rails(const std::vector<RankRails>& ranks, int rank, int engines) {
  const auto own = static_cast<std::size_t>(rank);
  const auto count = static_cast<std::size_t>(engines);
  const std::vector<std::string> networks = common_networks(ranks);
  std::vector<std::size_t> chosen;
  if (networks.empty()) return chosen;
  const std::size_t seat = seat_of(ranks, own);
  for (std::size_t engine = 0; engine < count; ++engine) {
    const std::size_t network = engine % networks.size();
    std::vector<std::size_t> here;
    for (std::size_t i = 0; i < ranks[own].rails.size(); ++i) {
      if (ranks[own].rails[i].network == networks[network]) here.push_back(i);
    }
    // The number of engines of a rank in this network.
    const std::size_t each = count / networks.size() + (network < count % networks.size() ? 1 : 0);
    chosen.push_back(here[(seat * each + engine / networks.size()) % here.size()]);
  }
  return chosen;
}

std::string rails_text(const RankRails& rails) {
  // The @ makes every word non-empty, so that blanks separate the words.
  std::string text = "@" + rails.host;
  for (const Rail& rail : rails.rails) text += " @" + rail.network + " @" + rail.name;
  return text;
}

RankRails parse_rails(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    if (word[0] != '@') return {};
    words.push_back(word.substr(1));
  }
  if (words.size() % 2 != 1) return {};
  RankRails rails{words[0], {}};
  for (std::size_t i = 1; i < words.size(); i += 2) rails.rails.push_back({words[i], words[i + 1]});
  return rails;
}

}  // namespace torii
