// SPDX-License-Identifier: Apache-2.0
// Measures with calls that any program could make: an alltoall of unequal blocks moves bytes between chosen ranks only.
#include "tools/torii-info/measure.hpp"

#include <unistd.h>
#include <torii/torii.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "collectives/selection/catalogue.hpp"
#include "runtime/base/output.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"
#include "tools/torii-info/measured_network.hpp"

namespace torii::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Pairs = std::vector<std::pair<int, int>>;  // sender, receiver; no rank in two of them

constexpr int kLanesMost = 8;
constexpr int kRepeats = 3;
constexpr std::size_t kHostNameBytes = 64;
constexpr std::size_t kFirstBytes = std::size_t{64} << 10;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
/// The duration of a transfer: latency and noise of a machine are small beside it.
constexpr double kTransferSeconds = 0.2;

/// The segments under way are as many and as long as those of multilane.
constexpr const char* kProbeTable = R"({"version": 1, "rows": [
  {"collective": "alltoall", "ranks": [1, 1048576], "bytes_max": null, "algorithm": "direct", "segment": 65536,
   "slots": 16, "window": 8}]})";

void check_call(torii_status status) {
  if (status != TORII_OK) throw Error(static_cast<Status>(status), torii_last_error());
}

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

class Probes {
 public:
  explicit Probes(Team& team) : team_(team), ranks_(static_cast<std::size_t>(team.ranks())), buffer_(1) {}

  /// The latency of one way between two ranks: half of the fastest exchange of 8 bytes.
  double latency_s(int from, int to) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 4 * kRepeats; ++i) least = std::min(least, exchange_s({{from, to}}, 8) / 2);
    return least;
  }

  /// The rate of each of these pairs, in bytes per second, when all send: that of the slowest pair, median of some.
  double rate(const Pairs& pairs, double latency_s) {
    const double round_trip_s = 2 * latency_s;
    // A first transfer of fixed length finds the length that fills the time, and takes TCP out of its slow start.
    std::size_t bytes = kFirstBytes;
    for (int i = 0; i < 2; ++i) {
      const double time_s = std::max(exchange_s(pairs, bytes) - round_trip_s, 1e-7);
      const double fitting = static_cast<double>(bytes) / time_s * kTransferSeconds;
      bytes = static_cast<std::size_t>(
          std::clamp(fitting, static_cast<double>(kFirstBytes), static_cast<double>(kMostBytes)));
    }
    std::array<double, kRepeats> times_s{};
    for (double& time_s : times_s) time_s = std::max(exchange_s(pairs, bytes) - round_trip_s, 1e-7);
    std::sort(times_s.begin(), times_s.end());
    return static_cast<double>(bytes) / times_s[kRepeats / 2];
  }

 private:
  /// Sends `bytes` one way and 8 bytes back for all pairs at once: the longest time until a sender had its answer.
  double exchange_s(const Pairs& pairs, std::size_t bytes) {
    check_call(team_.barrier());
    const Clock::time_point begun = Clock::now();
    move(pairs, bytes, false);
    move(pairs, 8, true);
    double time_s = std::any_of(pairs.begin(), pairs.end(), [&](auto pair) { return pair.first == team_.rank(); })
                        ? seconds_since(begun)
                        : 0;
    check_call(team_.allreduce<double>(std::span(&time_s, 1), TORII_MAX));
    return time_s;
  }

  void move(const Pairs& pairs, std::size_t bytes, bool backwards) {
    buffer_.resize(std::max(buffer_.size(), bytes));
    std::vector<std::size_t> sends(ranks_, 0);
    std::vector<std::size_t> takes(ranks_, 0);
    const std::vector<std::size_t> nowhere(ranks_, 0);
    for (auto [from, to] : pairs) {
      if (backwards) std::swap(from, to);
      if (from == team_.rank()) sends[static_cast<std::size_t>(to)] = bytes;
      if (to == team_.rank()) takes[static_cast<std::size_t>(from)] = bytes;
    }
    check_call(torii_alltoallv(team_.handle(), buffer_.data(), sends.data(), nowhere.data(), result_of(bytes),
                               takes.data(), nowhere.data(), TORII_U8));
  }

  std::byte* result_of(std::size_t bytes) {
    result_.resize(std::max(result_.size(), bytes));
    return result_.data();
  }

  Team& team_;
  std::size_t ranks_;
  std::vector<std::byte> buffer_;
  std::vector<std::byte> result_;
};

/// Hosts by name, in the order of their lowest ranks.
std::vector<MeasuredHost> find_hosts(Team& team) {
  std::array<char, kHostNameBytes> mine{};
  gethostname(mine.data(), mine.size() - 1);
  std::vector<char> all(kHostNameBytes * static_cast<std::size_t>(team.ranks()));
  check_call(torii_all_gather(team.handle(), mine.data(), all.data(), kHostNameBytes, TORII_U8));
  std::vector<MeasuredHost> hosts;
  for (int rank = 0; rank < team.ranks(); ++rank) {
    const std::string name = &all[kHostNameBytes * static_cast<std::size_t>(rank)];
    auto host = std::find_if(hosts.begin(), hosts.end(), [&](const MeasuredHost& known) { return known.name == name; });
    if (host == hosts.end()) {
      hosts.emplace_back().name = name;
      host = hosts.end() - 1;
    }
    host->ranks.push_back(rank);
  }
  return hosts;
}

MeasuredWay measure_way(Probes& probes, int from, int to) {
  MeasuredWay way;
  way.latency_s = probes.latency_s(from, to);
  way.there = probes.rate({{from, to}}, way.latency_s);
  way.back = probes.rate({{to, from}}, way.latency_s);
  return way;
}

/// Whether two ranks are near enough for one site. A busy machine makes ways longer but never shorter, so a result that
/// is only slightly too long is measured again.
bool is_near(Probes& probes, int from, int to) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const double latency_s = probes.latency_s(from, to);
    if (latency_s < site_latency_s()) return true;
    if (latency_s > 3 * site_latency_s()) return false;
  }
  return false;
}

/// Puts each host into the site of the first host that is near it, and measures the way from there.
void find_sites(Probes& probes, MeasuredNetwork& network) {
  std::vector<int> leaders;
  for (MeasuredHost& host : network.hosts) {
    const int rank = host.ranks.front();
    host.site = 0;
    while (host.site < static_cast<int>(leaders.size()) &&
           !is_near(probes, leaders[static_cast<std::size_t>(host.site)], rank)) {
      ++host.site;
    }
    if (host.site == static_cast<int>(leaders.size())) {
      leaders.push_back(rank);
    } else {
      host.to_site = measure_way(probes, leaders[static_cast<std::size_t>(host.site)], rank);
    }
    if (host.ranks.size() > 1) host.inside = measure_way(probes, host.ranks[0], host.ranks[1]);
  }
  network.sites = static_cast<int>(leaders.size());
}

/// Measures several streams between two sites at once, each between its own hosts while there are enough.
void measure_streams(Probes& probes, MeasuredNetwork& network) {
  const auto sites = static_cast<std::size_t>(network.sites);
  std::vector<std::vector<int>> heads(sites);
  for (std::size_t turn = 0, added = 1; added != 0; ++turn) {
    added = 0;
    for (const MeasuredHost& host : network.hosts) {
      if (turn >= host.ranks.size()) continue;
      heads[static_cast<std::size_t>(host.site)].push_back(host.ranks[turn]);
      ++added;
    }
  }
  network.latency_s.assign(sites, std::vector<double>(sites, 0));
  network.rates.assign(sites, std::vector<std::vector<double>>(sites));
  for (std::size_t from = 0; from < sites; ++from) {
    for (std::size_t to = 0; to < sites; ++to) {
      if (from == to) continue;
      const double latency_s = probes.latency_s(heads[from].front(), heads[to].front());
      network.latency_s[from][to] = latency_s;
      const std::size_t most = std::min({heads[from].size(), heads[to].size(), std::size_t{kLanesMost}});
      Pairs pairs;
      for (std::size_t lane = 0; lane < most; ++lane) {
        pairs.emplace_back(heads[from][lane], heads[to][lane]);
        network.rates[from][to].push_back(probes.rate(pairs, latency_s));
      }
      network.rates[from][to] = steady_rates(network.rates[from][to], latency_s, kTransferSeconds);
    }
  }
}

}  // namespace

Report measure(const std::string& tree_path, const std::string& tune_path) {
  try {
    // The rows for probes are those of a team of its own, so the job's settings do not apply to them.
    torii_context_options options = {};
    options.size = sizeof(options);
    options.settings = "ALGORITHM=auto\nRANK_MAP=\n";
    const Context context(&options);
    torii_team_options team_options = {};
    team_options.size = sizeof(team_options);
    team_options.topology = "node";
    team_options.tune_table = kProbeTable;
    Team team = context.team(&team_options);
    Probes probes(team);
    MeasuredNetwork network;
    network.hosts = find_hosts(team);
    find_sites(probes, network);
    measure_streams(probes, network);
    check_call(team.barrier());
    if (team.rank() != 0) return {};
    Output(tree_path).write(tree_text(network));
    const std::string table = Settings::load("", nullptr, algorithm_names()).tune_file;
    Output(tune_path).write(
        tune_text(table.empty() ? "" : read_text_file(table, "TORII_TUNE_FILE"), stream_rates(network)));
    return report_network(network);
  } catch (const Failure& failure) {
    throw Error(static_cast<Status>(failure.status()), failure.what());
  }
}

}  // namespace torii::tools
