// SPDX-License-Identifier: Apache-2.0
// Makes a tree topology file, a tune file and a report from measurements.
#include "tools/torii-info/measured_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/building/lanes_model.hpp"
#include "collectives/building/sites.hpp"
#include "runtime/base/index.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {
namespace {

std::string site_name(int site) { return fmt::format("site{}", site); }

/// A name that is one word, for any name of the host.
std::string host_name(std::size_t host) { return fmt::format("host{}", host); }

std::string link_line(const std::string& a, const std::string& b, double there, double back, double latency_s) {
  // A link that nobody measured must not be the narrowest.
  constexpr double kUnmeasured = 1e12;
  const auto rate = [](double measured) { return std::llround(measured >= 1 ? measured : kUnmeasured); };
  const auto latency_ns = std::llround(1e9 * std::max(0.0, latency_s));
  return fmt::format("link {} {} {}B/s {}B/s {}ns {}ns full\n", a, b, rate(there), rate(back), latency_ns, latency_ns);
}

/// The most that all streams between two sites have carried together.
double capacity_of(const MeasuredNetwork& network, int from, int to) {
  double most = 0;
  const std::vector<double>& rates = network.rates[index(from)][index(to)];
  for (std::size_t lanes = 1; lanes <= rates.size(); ++lanes) {
    most = std::max(most, static_cast<double>(lanes) * rates[lanes - 1]);
  }
  return most;
}

/// The branches of a star whose distances between sites fit the measured ones best, by least squares. They are never so
/// short that a site would not be separate.
std::vector<double> branch_latencies_s(const MeasuredNetwork& network) {
  std::vector<double> sums(index(network.sites), 0);
  double all = 0;
  for (int a = 0; a < network.sites; ++a) {
    for (int b = 0; b < network.sites; ++b) {
      if (a != b) sums[index(a)] += network.latency_s[index(a)][index(b)];
    }
    all += sums[index(a)];
  }
  const double branches = all / 2 / (network.sites - 1);
  for (double& sum : sums) sum = std::max((sum - branches) / (network.sites - 2), site_latency_s());
  return sums;
}

std::string site_links(const MeasuredNetwork& network) {
  if (network.sites == 1) return "";
  if (network.sites == 2) {
    return link_line(site_name(0), site_name(1), capacity_of(network, 0, 1), capacity_of(network, 1, 0),
                     std::max(network.latency_s[0][1], site_latency_s()));
  }
  std::string text;
  const std::vector<double> latencies_s = branch_latencies_s(network);
  for (int site = 0; site < network.sites; ++site) {
    double out = 0;
    double in = 0;
    for (int other = 0; other < network.sites; ++other) {
      if (other == site) continue;
      out = std::max(out, capacity_of(network, site, other));
      in = std::max(in, capacity_of(network, other, site));
    }
    text += link_line(site_name(site), "backbone", out, in, latencies_s[index(site)]);
  }
  return text;
}

/// The links of a site's hosts. The first host's link was not measured; it gets the best rates of the other hosts.
std::string host_links(const MeasuredNetwork& network) {
  std::string text;
  for (std::size_t i = 0; i < network.hosts.size(); ++i) {
    const MeasuredHost& host = network.hosts[i];
    MeasuredWay way = host.to_site;
    const bool is_first = std::none_of(network.hosts.begin(), network.hosts.begin() + static_cast<std::ptrdiff_t>(i),
                                       [&](const MeasuredHost& other) { return other.site == host.site; });
    if (is_first) {
      for (const MeasuredHost& other : network.hosts) {
        if (&other == &host || other.site != host.site) continue;
        way.there = std::max(way.there, other.to_site.back);
        way.back = std::max(way.back, other.to_site.there);
      }
    }
    // The pair was measured from the first host to this one: half of the latency belongs to each of the two links.
    text += link_line(host_name(i), site_name(host.site), way.back, way.there, is_first ? 0 : way.latency_s / 2);
    for (const int rank : host.ranks) {
      text += link_line(fmt::format("rank{}", rank), host_name(i), host.inside.there, host.inside.back,
                        host.inside.latency_s / 2);
    }
  }
  return text;
}

}  // namespace

double site_latency_s() { return 1e-9 * static_cast<double>(kLongLatencyNs); }

std::string tree_text(const MeasuredNetwork& network) {
  std::string text = "# as torii-info measure found it\n";
  std::string places;
  for (int site = 0; site < network.sites; ++site) text += fmt::format("node {} relay\n", site_name(site));
  if (network.sites > 2) text += "node backbone relay\n";
  for (std::size_t i = 0; i < network.hosts.size(); ++i) {
    text += fmt::format("node {} relay  # {}\n", host_name(i), network.hosts[i].name);
    for (const int rank : network.hosts[i].ranks) {
      text += fmt::format("node rank{} comm\n", rank);
      places += fmt::format("rank {0} rank{0}\n", rank);
    }
  }
  return text + host_links(network) + site_links(network) + places;
}

std::vector<double> steady_rates(std::vector<double> rates, double latency_s, double transfer_s) {
  LongLink link;
  link.rates = rates;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    link.capacity = std::max(link.capacity, static_cast<double>(i + 1) * rates[i]);
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double filled = static_cast<double>(i + 1) * rates[i] / full_rate(link);
    rates[i] *= transfer_s / (transfer_s + latency_s * (1 - filled));
  }
  return rates;
}

std::vector<StreamRates> stream_rates(const MeasuredNetwork& network) {
  std::vector<StreamRates> streams;
  for (int from = 0; from < network.sites; ++from) {
    for (int to = 0; to < network.sites; ++to) {
      if (from != to) streams.push_back({site_name(from), site_name(to), network.rates[index(from)][index(to)]});
    }
  }
  return streams;
}

std::string tune_text(const std::string& before, const std::vector<StreamRates>& streams) {
  Json document = {{"version", TuneTable::kVersion}, {"rows", "built-in"}};
  if (!before.empty()) {
    // Refuses what TORII_TUNE_FILE would not load, with the reason.
    (void)TuneTable::parse(before, "the tune file to which streams are added");
    document = Json::parse(before);
  }
  document["streams"] = Json::array();
  for (const StreamRates& one : streams) {
    document["streams"].push_back({{"from", one.from}, {"to", one.to}, {"rates", one.rates}});
  }
  return document.dump(1) + "\n";
}

Report report_network(const MeasuredNetwork& network) {
  Report report;
  report.json = {{"hosts", Json::array()}, {"sites", network.sites}, {"streams", Json::array()}};
  for (const MeasuredHost& host : network.hosts) {
    report.text += fmt::format("{}: site {}, {} rank{}", host.name, host.site, host.ranks.size(),
                               host.ranks.size() == 1 ? "" : "s");
    if (host.to_site.there > 0) {
      report.text += fmt::format(", {:.4g} and {:.4g} MB/s, {:.4g} us from its site's first rank",
                                 1e-6 * host.to_site.there, 1e-6 * host.to_site.back, 1e6 * host.to_site.latency_s);
    }
    if (host.ranks.size() > 1) {
      report.text +=
          fmt::format(", {:.4g} MB/s, {:.4g} us inside", 1e-6 * host.inside.there, 1e6 * host.inside.latency_s);
    }
    report.text += '\n';
    report.json["hosts"].push_back({{"name", host.name},
                                    {"site", host.site},
                                    {"ranks", host.ranks},
                                    {"bandwidth_there", host.to_site.there},
                                    {"bandwidth_back", host.to_site.back},
                                    {"latency_us", 1e6 * host.to_site.latency_s},
                                    {"bandwidth_inside", host.inside.there},
                                    {"latency_inside_us", 1e6 * host.inside.latency_s}});
  }
  for (int from = 0; from < network.sites; ++from) {
    for (int to = 0; to < network.sites; ++to) {
      if (from == to) continue;
      const std::vector<double>& rates = network.rates[index(from)][index(to)];
      std::string each;
      for (const double rate : rates) each += fmt::format(" {:.4g}", 1e-6 * rate);
      const double latency_ms = 1e3 * network.latency_s[index(from)][index(to)];
      report.text += fmt::format("site {} to site {}: {:.4g} ms; MB/s of each of 1 to {} streams:{}\n", from, to,
                                 latency_ms, rates.size(), each);
      report.json["streams"].push_back({{"from", from}, {"to", to}, {"latency_ms", latency_ms}, {"rates", rates}});
    }
  }
  return report;
}

}  // namespace torii::tools
