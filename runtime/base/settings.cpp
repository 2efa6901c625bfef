// SPDX-License-Identifier: Apache-2.0
// The table of settings and the three places values come from.
#include "runtime/base/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <functional>
#include <span>
#include <utility>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr std::string_view kPrefix = "TORII_";
// Variables with our prefix that are not settings: what torii-run hands to its ranks, switches of the tests, and what
// belongs to the backend of PyTorch.
constexpr std::string_view kNotSettings[] = {"JOB_FD", "RANK", "RANKS"};
constexpr std::string_view kOtherPrefixes[] = {"TEST_", "TORCH_"};

using Names = std::span<const std::string_view>;
constexpr std::string_view kWaitNames[] = {"auto", "spin", "yield", "sleep", "shared"};
constexpr std::string_view kSwitchNames[] = {"auto", "on", "off"};
constexpr std::string_view kOriginNames[] = {"default", "environment", "option"};
constexpr std::string_view kWireNames[] = {"type", "f32"};
constexpr std::string_view kLogNames[] = {"error", "warn", "info", "debug"};
constexpr std::string_view kFlagNames[] = {"0", "1"};
constexpr std::string_view kIsaNames[] = {"auto", "reference", "sse4", "avx2", "avx512", "neon", "sve"};
constexpr std::string_view kTransportNames[] = {"auto", "shared_memory", "libfabric", "ucx", "simulated"};

/// Whether a setting must have the same value on all ranks, because plans, memory or connections depend on it.
enum class Scope : std::uint8_t { own, job };

struct Row {
  std::string name;
  Scope scope;
  std::string accepts;
  std::string help;
  std::function<bool(std::string_view text, Settings& settings)> parse;  ///< false: not accepted, settings untouched
  std::function<std::string(const Settings& settings)> print;
  bool secret = false;
};

std::string join_names(Names names) {
  std::string text = "one of";
  for (const std::string_view one : names) text.append(" ").append(one);
  return text;
}

Row integer(std::string name, int Settings::*member, int low, int high, Scope scope, std::string help) {
  auto parse = [=](std::string_view text, Settings& settings) {
    const auto value = parse_number<int>(text);
    if (!value || *value < low || *value > high) return false;
    settings.*member = *value;
    return true;
  };
  auto print = [=](const Settings& settings) { return std::to_string(settings.*member); };
  return {std::move(name), scope, "a whole number from " + std::to_string(low) + " to " + std::to_string(high),
          std::move(help), parse, print};
}

Row size(std::string name, std::size_t Settings::*member, std::size_t low, std::size_t high, bool has_auto, Scope scope,
         std::string help) {
  constexpr std::size_t kGrain = 64;  // a cache line: slots and arenas are laid out in lines
  auto parse = [=](std::string_view text, Settings& settings) {
    if (has_auto && (text == "auto" || text == "0")) {
      settings.*member = 0;
      return true;
    }
    const auto bytes = parse_bytes(text);
    if (!bytes || *bytes < low || *bytes > high || *bytes % kGrain != 0) return false;
    settings.*member = *bytes;
    return true;
  };
  auto print = [=](const Settings& settings) {
    return has_auto && settings.*member == 0 ? std::string("auto") : bytes_text(settings.*member);
  };
  const std::string accepts = std::string(has_auto ? "auto, or " : "") + "bytes from " + bytes_text(low) + " to " +
                              bytes_text(high) + ", a multiple of 64, with K, M or G";
  return {std::move(name), scope, accepts, std::move(help), parse, print};
}

/// An enum or bool whose values are 0, 1, ... in the order of `names`.
template <class Value>
Row choice(std::string name, Value Settings::*member, Names names, Scope scope, std::string help) {
  auto parse = [=](std::string_view text, Settings& settings) {
    const auto at = std::find(names.begin(), names.end(), text);
    if (at == names.end()) return false;
    settings.*member = static_cast<Value>(at - names.begin());
    return true;
  };
  auto print = [=](const Settings& settings) { return std::string(names[static_cast<std::size_t>(settings.*member)]); };
  return {std::move(name), scope, join_names(names), std::move(help), parse, print};
}

/// A text that other folders resolve; here only its form is checked.
Row text(std::string name, std::string Settings::*member, std::function<bool(std::string_view)> is_right, Scope scope,
         std::string accepts, std::string help) {
  auto parse = [=](std::string_view text, Settings& settings) {
    if (!is_right(text)) return false;
    settings.*member = text;
    return true;
  };
  auto print = [=](const Settings& settings) { return settings.*member; };
  return {std::move(name), scope, std::move(accepts), std::move(help), parse, print};
}

/// The same with "auto", which is the empty text in Settings.
Row text_or_auto(const std::string& name, std::string Settings::*member, std::function<bool(std::string_view)> is_right,
                 const std::string& accepts, const std::string& help) {
  Row row = text(
      name, member, [=](std::string_view text) { return text == "auto" || is_right(text); }, Scope::own, accepts, help);
  row.parse = [=, parse = row.parse](std::string_view text, Settings& settings) {
    if (!parse(text, settings)) return false;
    if (text == "auto") (settings.*member).clear();
    return true;
  };
  row.print = [=](const Settings& settings) { return (settings.*member).empty() ? "auto" : settings.*member; };
  return row;
}

Row word(std::string name, std::string Settings::*member, Names names, Scope scope, std::string help) {
  const auto is_right = [=](std::string_view text) { return std::ranges::find(names, text) != names.end(); };
  return text(std::move(name), member, is_right, scope, join_names(names), std::move(help));
}

bool is_any(std::string_view) { return true; }

/// The catalogue names the algorithms, and this folder does not know it: the names are in the settings.
Row algorithm_row() {
  auto parse = [](std::string_view text, Settings& settings) {
    const Names names = settings.algorithms;
    if (text != "auto" && !names.empty() && std::ranges::find(names, text) == names.end()) return false;
    settings.algorithm = text;
    return true;
  };
  return {"ALGORITHM",
          Scope::job,
          "auto or the name of an algorithm",
          "algorithm of every collective",
          parse,
          [](const Settings& settings) { return settings.algorithm; }};
}

/// The text of accepted values, with the names of algorithms that `settings` knows.
std::string accepts(const Row& row, const Settings& settings) {
  if (row.name != "ALGORITHM" || settings.algorithms.empty()) return row.accepts;
  std::string text = "one of auto";
  for (const std::string_view one : settings.algorithms) text.append(" ").append(one);
  return text;
}

/// Extents are checked by Topology::parse(), which knows the number of ranks.
bool is_topology(std::string_view text) {
  const auto has_rest = [&](std::string_view kind) { return text.size() > kind.size() && text.starts_with(kind); };
  return text == "auto" || text == "node" || has_rest("torus:") || has_rest("mesh:") || has_rest("tree:") ||
         has_rest("node:");
}

/// Which names exist is known to libfabric and UCX only; here the characters of such names are checked.
bool is_provider(std::string_view text) {
  const auto is_part_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ';';
  };
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, is_part_of_name);
}

bool is_node(std::string_view text) {
  return text.size() <= kNodeBytesMax && text.find('\n') == std::string_view::npos;
}

/// Which CPUs there are is looked at when progress threads start.
bool is_cpu_list(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789,-") == std::string_view::npos;
}

bool is_rendezvous(std::string_view text) { return text.size() > 5 && text.starts_with("file:"); }

/// Which interfaces there are is looked at when one is needed; here only the form is checked.
bool is_interface_list(std::string_view names) {
  if (names.starts_with('^')) names.remove_prefix(1);
  if (names.starts_with('=')) names.remove_prefix(1);
  return !names.empty() && names.front() != ',' && names.back() != ',' && names.find(",,") == std::string_view::npos;
}

Row timeout_row() {
  auto parse = [](std::string_view text, Settings& settings) {
    const auto value = parse_number<double>(text);
    // A million seconds keeps deadlines far from the end of the clock's range.
    if (!value || !(*value > 0 && *value <= 1e6)) return false;
    settings.timeout_s = *value;
    return true;
  };
  auto print = [](const Settings& settings) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), settings.timeout_s).ptr;
    return std::string(text.data(), end);
  };
  return {"TIMEOUT", Scope::own, "seconds above 0, at most 1000000", "a call without progress for this long ends",
          parse,     print};
}

Row ports_row() {
  auto parse = [](std::string_view text, Settings& settings) {
    int low = 0;
    int high = 0;
    if (text != "auto") {
      const std::size_t dash = std::min(text.find('-'), text.size());
      low = parse_number<int>(text.substr(0, dash)).value_or(0);
      high = parse_number<int>(text.substr(std::min(dash + 1, text.size()))).value_or(0);
      if (low < 1 || high > 65535 || low > high) return false;
    }
    settings.port_low = low;
    settings.port_high = high;
    return true;
  };
  auto print = [](const Settings& settings) {
    if (settings.port_low == 0) return std::string("auto");
    return std::to_string(settings.port_low) + "-" + std::to_string(settings.port_high);
  };
  return {"PORTS", Scope::own, "auto, or LOW-HIGH with ports from 1 to 65535", "ports of rank 0; engines ignore it",
          parse,   print};
}

std::vector<Row> make_table() {
  using S = Settings;
  constexpr std::size_t kKiB = 1024;
  constexpr std::size_t kGiB = kKiB * kKiB * kKiB;
  std::vector<Row> rows;
  rows.push_back(
      integer("ENGINES", &S::engines, 1, 16, Scope::job, "puts that one rank has in progress at the same time"));
  rows.push_back(size("SEGMENT", &S::segment_bytes, 64, kGiB, true, Scope::job, "largest payload of one put"));
  rows.push_back(algorithm_row());
  rows.push_back(text("TOPOLOGY", &S::topology, is_topology, Scope::job,
                      "auto, node, node:GROUPS*RANKS, torus:XxYxZ, mesh:XxYxZ or tree:FILE",
                      "network under the ranks"));
  rows.push_back(text("RANK_MAP", &S::rank_map, is_any, Scope::own,
                      "a file with a line \"rank x y z\" per rank, list:0,1,2,..., or nothing for rank order",
                      "places of ranks on the torus"));
  rows.push_back(word("TRANSPORT", &S::transport, kTransportNames, Scope::job, "what carries the puts"));
  rows.push_back(
      text("PROVIDER", &S::provider, is_provider, Scope::job,
           "auto, or a libfabric provider as fi_info names it (verbs;ofi_rxm, tcp;ofi_rxm, net); for UCX names of "
           "UCX_TLS with ; between (tcp, ib)",
           "what libfabric or UCX runs over"));
  rows.push_back(text("NODE", &S::node, is_node, Scope::own,
                      "one line of at most 63 bytes; nothing: the machine alone decides",
                      "ranks of one machine that name different nodes share no memory"));
  rows.push_back(
      choice("DETERMINISM", &S::determinism, kDeterminismNames, Scope::job, "how much of the bits is promised"));
  rows.push_back(choice("WIRE", &S::wide_wire, kWireNames, Scope::job, "f32: small floats travel as float"));
  rows.push_back(word("ISA", &S::isa, kIsaNames, Scope::own, "instruction set of the reduction kernels"));
  rows.push_back(timeout_row());
  rows.push_back(choice("LOG", &S::log, kLogNames, Scope::own, "what is said on stderr"));
  rows.push_back(integer("CHANNELS", &S::channels, 1, 8, Scope::job, "operations of one team in flight"));
  rows.push_back(integer("SLOTS", &S::slots, 0, 256, Scope::job, "slots of every stream; 0: auto"));
  rows.push_back(integer("WINDOW", &S::window, 0, 32, Scope::job, "segments of one lane in flight; 0: auto"));
  rows.push_back(text("TUNE_FILE", &S::tune_file, is_any, Scope::own, "a path, or nothing for the built-in table",
                      "table that auto reads"));
  rows.push_back(size("ARENA", &S::arena_bytes, kGiB / 4, 4096 * kGiB, false, Scope::own,
                      "address space of shared memory per rank"));
  rows.push_back(choice("WAIT", &S::wait, kWaitNames, Scope::own, "how a rank waits for its peers"));
  rows.push_back(choice("HOP", &S::hop, kFlagNames, Scope::own, "1: waiting threads may leave a CPU of another rank"));
  rows.push_back(choice("CROSS_MEMORY", &S::cross_memory, kSwitchNames, Scope::job, "read peers by process_vm_readv"));
  rows.push_back(
      integer("HELPERS", &S::helpers, 0, 16, Scope::own, "threads that move operations in flight beside the caller"));
  rows.push_back(text_or_auto("HELPER_CPUS", &S::helper_cpus, is_cpu_list, "auto, or CPU numbers like 0-3,8",
                              "where those threads run; auto: where the thread that makes the context may run"));
  rows.push_back(choice("INSECURE", &S::insecure, kFlagNames, Scope::own, "1: several hosts without a job token"));
  rows.push_back(text("JOB_TOKEN", &S::job_token, is_any, Scope::own, "any text, equal on all ranks",
                      "secret that strangers on the bootstrap port do not know"));
  rows.back().secret = true;
  rows.push_back(text_or_auto("RENDEZVOUS", &S::rendezvous, is_rendezvous, "auto or file:PATH",
                              "where ranks meet; auto: what the launcher offers"));
  rows.push_back(
      text_or_auto("INTERFACE", &S::interfaces, is_interface_list,
                   "auto, beginnings of names (eth,ib), whole names (=eth0), or either to leave out (^docker, ^=eth0)",
                   "interfaces that torii listens on and offers"));
  rows.push_back(ports_row());
  return rows;
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = make_table();
  return rows;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string unknown_text(std::string_view name) {
  const auto nearest = std::min_element(table().begin(), table().end(), [name](const Row& a, const Row& b) {
    return edit_distance(name, a.name) < edit_distance(name, b.name);
  });
  return std::string(kPrefix).append(name) + " is not a setting; the nearest one is " + std::string(kPrefix) +
         nearest->name;
}

/// Returns false when no row has that name.
bool apply(Settings& settings, std::string_view key, std::string_view value, Origin origin) {
  const std::vector<Row>& rows = table();
  const auto row = std::find_if(rows.begin(), rows.end(), [key](const Row& one) { return one.name == key; });
  if (row == rows.end()) return false;
  if (!row->parse(value, settings)) {
    throw Error(Status::invalid_argument, std::string(kPrefix) + row->name + " is '" + std::string(value) + "' (" +
                                              std::string(name(origin)) + "); it must be " + accepts(*row, settings));
  }
  settings.origins[static_cast<std::size_t>(row - rows.begin())] = origin;
  return true;
}

void apply_environment(Settings& settings, const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view key = entry.substr(kPrefix.size(), equals - kPrefix.size());
    if (std::ranges::any_of(kOtherPrefixes, [&](std::string_view prefix) { return key.starts_with(prefix); })) continue;
    if (std::ranges::find(kNotSettings, key) != std::end(kNotSettings)) continue;
    if (!apply(settings, key, entry.substr(equals + 1), Origin::environment)) {
      settings.warnings.push_back(unknown_text(key));
    }
  }
}

void apply_overrides(Settings& settings, std::string_view overrides) {
  while (!overrides.empty()) {
    const std::size_t end = std::min(overrides.find('\n'), overrides.size());
    std::string_view line = overrides.substr(0, end);
    overrides.remove_prefix(std::min(end + 1, overrides.size()));
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      throw Error(Status::invalid_argument, "the settings line '" + std::string(line) + "' must be NAME=value");
    }
    std::string_view key = line.substr(0, equals);
    if (key.starts_with(kPrefix)) key.remove_prefix(kPrefix.size());
    // The program asked for it by name, so unlike a stray variable it is an error.
    if (!apply(settings, key, line.substr(equals + 1), Origin::option)) {
      throw Error(Status::invalid_argument, unknown_text(key));
    }
  }
}

}  // namespace

std::string_view name(WaitMode mode) noexcept { return kWaitNames[static_cast<std::size_t>(mode)]; }
std::string_view name(Switch value) noexcept { return kSwitchNames[static_cast<std::size_t>(value)]; }
std::string_view name(Origin origin) noexcept { return kOriginNames[static_cast<std::size_t>(origin)]; }

Settings Settings::load(std::string_view overrides, const char* const* environment,
                        std::span<const std::string_view> algorithms) {
  Settings settings;
  settings.algorithms = algorithms;
  settings.origins.assign(table().size(), Origin::fallback);
  apply_environment(settings, environment != nullptr ? environment : environ);
  apply_overrides(settings, overrides);
  return settings;
}

std::vector<SettingView> Settings::list() const {
  const Settings fallback;
  std::vector<SettingView> views;
  for (std::size_t i = 0; i < table().size(); ++i) {
    const Row& row = table()[i];
    std::string value = row.print(*this);
    if (row.secret && !value.empty()) value = "(set)";
    views.push_back({std::string(kPrefix) + row.name, std::move(value), row.print(fallback), accepts(row, *this),
                     row.help, i < origins.size() ? origins[i] : Origin::fallback});
  }
  return views;
}

std::string Settings::digest_text() const {
  std::string text;
  for (const Row& row : table()) {
    if (row.scope == Scope::job) text += row.name + "=" + row.print(*this) + "\n";
  }
  return text;
}

}  // namespace torii
