// SPDX-License-Identifier: Apache-2.0
// Version, transports, kernels, CPUs, waiting, and settings with their origin.
#include "tools/torii-info/overview.hpp"

#include <fmt/format.h>
#include <torii/torii.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "collectives/selection/tune_table.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/base/status.hpp"
#include "runtime/devices/control_groups.hpp"
#include "runtime/topology/rank_map.hpp"
#include "runtime/topology/tree_topology.hpp"
#include "tools/torii-info/findings_network.hpp"
#include "tools/torii-info/machine.hpp"
#include "tools/torii-info/probe.hpp"
#include "tools/torii-info/rails.hpp"
#include "tools/torii-info/report.hpp"
#include "transports/libfabric/module.hpp"
#include "transports/ucx/module.hpp"

namespace torii::tools {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __VERSION__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

void add_build(Report& report) {
  std::string algorithms;
  report.json["version"] = torii_version();
  report.json["compiler"] = kCompiler;
  report.json["algorithms"] = Json::array();
  for (const Algorithm& algorithm : catalogue()) {
    algorithms += (algorithms.empty() ? "" : " ") + std::string(algorithm.name);
    report.json["algorithms"].push_back(algorithm.name);
  }
  report.text += fmt::format("torii {}\n\n", torii_version());
  report.text += row<12>("compiler", kCompiler);
  report.text += row<12>("algorithms", algorithms);
  report.json["left_out"] = Json::array();
  std::istringstream left_out(TORII_LEFT_OUT);
  for (std::string item; std::getline(left_out, item, '|');) {
    report.text += row<12>(report.json["left_out"].empty() ? "left out" : "", item);
    report.json["left_out"].push_back(item);
  }
}

/// The names that the setting TRANSPORT accepts: a new transport is listed and tried without a line here.
std::vector<std::string> transport_names(const std::vector<SettingView>& settings) {
  std::vector<std::string> names;
  const auto setting =
      std::find_if(settings.begin(), settings.end(), [](const auto& one) { return one.name == "TORII_TRANSPORT"; });
  std::istringstream words(setting->accepts);
  for (std::string word; words >> word;) {
    if (word != "one" && word != "of" && word != "auto") names.push_back(word);
  }
  return names;
}

/// By the name of the transport.
using TransportProbes = std::map<std::string, Probe>;

TransportProbes add_transports(const std::vector<SettingView>& settings, Report& report) {
  TransportProbes probes;
  report.json["transports"] = Json::array();
  std::string heading = "transports";
  for (const std::string& name : transport_names(settings)) {
    const Probe& probe = probes[name] = probe_transport(name);
    report.json["transports"].push_back({{"name", name}, {"works", probe.works}, {"reason", probe.text}});
    report.text += row<12>(heading, fmt::format("{:<14} {}: {}", name, probe.works ? "works" : "no", probe.text));
    heading.clear();
  }
  return probes;
}

/// The providers of a transport that is a module, one line each. `probe` has tried the one that auto chooses, or is
/// nullptr.
void add_providers(const std::string& transport, const std::function<std::vector<transports::ProviderReport>()>& list,
                   const Probe* probe, Report& report) {
  std::string heading = transport;
  std::vector<transports::ProviderReport> providers;
  try {
    providers = list();
  } catch (const Error& error) {
    report.text += row<12>(heading, error.what());
    report.json["providers"][transport] = {{"reason", error.what()}};
    return;
  }
  Json rows = Json::array();
  for (transports::ProviderReport& one : providers) {
    std::string text = one.chosen ? "chosen by auto" : one.reason;
    if (one.chosen && one.fails) {
      text += ", but it does not work: " + one.reason;
    } else if (one.chosen && probe != nullptr && !probe->works) {
      one.usable = false;
      one.reason = probe->text;
      text += ", but it does not work: " + probe->text;
    }
    rows.push_back({{"name", one.name},
                    {"usable", one.usable},
                    {"chosen", one.chosen},
                    {"reason", one.reason},
                    {"devices", one.devices},
                    {"pinning", one.pinning}});
    report.text += row<12>(heading, fmt::format("{:<14} {}{}{}: {}", one.name, one.usable ? "usable" : "no",
                                                one.devices.empty() ? "" : " on ", fmt::join(one.devices, ", "),
                                                text.empty() ? "auto prefers another" : text) +
                                        (one.usable && !one.pinning.empty() ? fmt::format("; {}", one.pinning) : ""));
    heading.clear();
  }
  report.json["providers"][transport] = rows;
}

void add_kernels(Report& report) {
  std::string text;
  report.json["isas"] = Json::array();
  for (const kernels::Isa isa : kernels::available_isas()) {
    text +=
        fmt::format("{}{} ({}-byte vectors)", text.empty() ? "" : ", ", kernels::name(isa), kernels::vector_bytes(isa));
    report.json["isas"].push_back({{"name", kernels::name(isa)}, {"vector_bytes", kernels::vector_bytes(isa)}});
  }
  report.json["isa_best"] = kernels::name(kernels::best_isa());
  report.text += row<12>("kernels", text);
}

Json json_of(const std::vector<EngineRail>& rails) {
  Json list = Json::array();
  for (const EngineRail& rail : rails) {
    list.push_back({{"engine", rail.engine}, {"device", rail.device}, {"address", rail.address}});
  }
  return list;
}

/// Engines, the devices of this machine, and which engine would use which device.
void add_engines(const Settings& settings, const std::vector<MachineNic>& nics, const std::vector<EngineRail>& over_ip,
                 Report& report) {
  report.json["engines"] = settings.engines;
  report.text += row<12>("engines", fmt::format("{} per rank, advanced by whoever calls torii", settings.engines));
  report.json["devices"] = Json::array();
  std::string heading = "devices";
  for (const MachineNic& one : nics) {
    report.text += row<12>(std::exchange(heading, ""), device_text(one));
    report.json["devices"].push_back({{"name", one.nic.name},
                                      {"openfabrics", one.is_openfabrics},
                                      {"up", one.is_up},
                                      {"mbit_per_s", one.nic.mbit_per_s},
                                      {"addresses", one.addresses},
                                      {"numa_nodes", one.numa_nodes},
                                      {"cpus", cpus_text(one.nic.near_cpus)}});
  }
  const std::vector<EngineRail> over_fabrics = rails_over_openfabrics(nics, allowed_cpus(), settings.engines);
  report.json["rails"] = {{"ip", json_of(over_ip)}, {"openfabrics", json_of(over_fabrics)}};
  report.text += row<12>("rails", over_ip.empty() ? "none over IP: TORII_INTERFACE selects no address"
                                                  : "over IP, between machines: " + rails_text(over_ip));
  if (!over_fabrics.empty()) report.text += row<12>("", "over InfiniBand and its like: " + rails_text(over_fabrics));
}

/// Which way of waiting is used for how many ranks (docs/design.md, "Waiting").
std::string waiting_text(const Settings& settings, int cpus) {
  if (settings.wait != WaitMode::automatic) {
    return fmt::format("always as TORII_WAIT={} says, whatever the number of ranks", name(settings.wait));
  }
  return fmt::format(
      "up to {} ranks on these CPUs poll long before they yield and sleep; more ranks are oversubscribed:\n"
      "{:12}they poll briefly, yield early and sleep late",
      cpus, "");
}

void add_machine(const Settings& settings, Report& report) {
  const Machine machine = read_machine();
  double granted = machine.cpus_allowed;
  for (const CpuQuota& quota : cpu_quotas()) granted = std::min(granted, quota.cpus);
  const int ranks_most = static_cast<int>(granted);
  const std::string waiting = waiting_text(settings, ranks_most);
  report.text += row<12>(
      "CPUs", fmt::format("{} of {} may be used ({})", machine.cpus_allowed, machine.cpus, machine.allowed_list));
  std::istringstream picture(machine.picture);
  for (std::string line; std::getline(picture, line);) report.text += row<12>("", line);
  report.json["memories"] = Json::array();
  for (const MachineMemory& one : machine.memories) {
    report.text += row<12>(
        one.node == machine.memories[0].node ? "memory" : "",
        fmt::format("NUMA node {}: {:.1f} GiB, CPUs {}{}", one.node, static_cast<double>(one.bytes) / (1 << 30),
                    one.cpus, one.holds_allowed && machine.memories.size() > 1 ? "; arenas of this process" : ""));
    report.json["memories"].push_back({{"node", one.node}, {"bytes", one.bytes}, {"cpus", one.cpus}});
  }
  report.text += row<12>("waiting", waiting);
  report.json["cpus"] = {{"allowed", machine.cpus_allowed},
                         {"all", machine.cpus},
                         {"list", machine.allowed_list},
                         {"picture", machine.picture}};
  report.json["wait"] = name(settings.wait);
  report.json["oversubscribed_above_ranks"] = ranks_most;
}

/// Files that settings name are read when a job starts, which then fails.
void add_file_errors(const Settings& settings, std::vector<std::string>& errors) {
  const auto attempt = [&](const char* setting, const auto& read) {
    try {
      read();
    } catch (const Error& error) {
      errors.push_back(fmt::format("no job can start with {}: {}", setting, error.what()));
    }
  };
  attempt("TORII_TUNE_FILE", [&] { (void)TuneTable::load(settings.tune_file); });
  attempt("TORII_RANK_MAP", [&] { (void)read_rank_map(settings.rank_map); });
  attempt("TORII_TOPOLOGY", [&] {
    constexpr std::string_view kTree = "tree:";
    if (settings.topology.starts_with(kTree)) (void)TreeTopology::load(settings.topology.substr(kTree.size()));
  });
}

void add_settings(const Settings& settings, Report& report) {
  report.text += "\nsettings (an environment variable of that name, or a NAME=value line of the program)\n";
  report.json["settings"] = Json::array();
  for (const SettingView& setting : settings.list()) {
    report.text +=
        fmt::format("  {:<18} {:<14} {:<12} {}; {}\n", setting.name, setting.value.empty() ? "(none)" : setting.value,
                    name(setting.origin), setting.help, setting.accepts);
    report.json["settings"].push_back({{"name", setting.name},
                                       {"value", setting.value},
                                       {"default", setting.fallback},
                                       {"origin", name(setting.origin)},
                                       {"accepts", setting.accepts},
                                       {"help", setting.help}});
  }
  std::vector<std::string> warnings = settings.warnings;
  add_file_errors(settings, warnings);
  report.json["warnings"] = warnings;
  if (!warnings.empty()) report.text += "\nwarnings\n";
  for (const std::string& warning : warnings) report.text += "  " + warning + "\n";
}

}  // namespace

Report overview() {
  const Settings settings = Settings::load({}, nullptr, algorithm_names());
  Report report;
  add_build(report);
  const TransportProbes probes = add_transports(settings.list(), report);
  const bool tries_auto = settings.provider == "auto";
  const std::vector<MachineNic> nics = nics_of_machine();
  const std::vector<EngineRail> over_ip =
      rails_over_ip(rail_sources(settings), nics, allowed_cpus(), !settings.interfaces.empty(), settings.engines);
  // The choice of auto depends on the interfaces, so the list is made for the addresses of a job's engines.
  std::vector<std::string> sources;
  for (const EngineRail& rail : over_ip) {
    if (std::ranges::find(sources, rail.address) == sources.end()) sources.push_back(rail.address);
  }
  add_providers(
      "libfabric", [&] { return libfabric::providers(sources); }, tries_auto ? &probes.at("libfabric") : nullptr,
      report);
  add_providers(
      "ucx", [&] { return ucx::providers(sources); }, tries_auto ? &probes.at("ucx") : nullptr, report);
  add_engines(settings, nics, over_ip, report);
  add_kernels(report);
  add_machine(settings, report);
  add_settings(settings, report);
  return report;
}

}  // namespace torii::tools
