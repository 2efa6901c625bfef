// SPDX-License-Identifier: Apache-2.0
// Command line, ranks and report of put_latency and put_bandwidth.
#include "perf/transports/put_perf.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <torii/torii.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/transports/put_measure.hpp"
#include "perf/transports/put_pair.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/devices/address.hpp"
#include "runtime/fabric/words.hpp"

namespace torii::perf {
namespace {

constexpr std::size_t kWindowMost = 64;
constexpr std::size_t kWindowBytesMost = std::size_t{64} << 20;
constexpr std::size_t kBytesMost = std::size_t{64} << 20;

/// The libraries that this build has a bare loop over; the first is the one that is taken when none is named.
struct Library {
  std::string_view name;
  PutPair (*open)(Bootstrap& bootstrap, const transports::EngineOptions& options, std::byte* bare_memory);
};
constexpr Library kLibraries[] = {
#ifdef TORII_PERF_LIBFABRIC
    {"libfabric", open_libfabric_pair},
#endif
#ifdef TORII_PERF_UCX
    {"ucx", open_ucx_pair},
#endif
};

struct PutOptions {
  PutKind kind;
  SizeRange sizes{"8", "4M"};
  int iterations = 0, warm_up = 100, rounds = 9;
  std::string json;
  Settings settings;
  const Library* library = kLibraries;
};

const char* name(PutKind kind) { return kind == PutKind::latency ? "put_latency" : "put_bandwidth"; }

/// Settings of the library: flags over the environment, and one engine unless somebody asks for more, because that is
/// what a bare loop has.
Settings load_settings(const std::string& engines, const std::string& provider, const std::string& transport) {
  std::string lines;
  if (!engines.empty()) lines += "ENGINES=" + engines + "\n";
  if (engines.empty() && std::getenv("TORII_ENGINES") == nullptr) lines += "ENGINES=1\n";
  if (!provider.empty()) lines += "PROVIDER=" + provider + "\n";
  lines += "TRANSPORT=" + transport + "\n";
  try {
    return Settings::load(lines, nullptr, all_algorithms());
  } catch (const Error& error) {
    throw Failure(kBadCommandLine, error.what());
  }
}

bool parse(int argc, char** argv, PutOptions& options) {
  const bool is_latency = options.kind == PutKind::latency;
  std::string engines, provider, transport(kLibraries[0].name);
  const CommandLine app(
      std::string(is_latency ? "Times a put with its signal there and back between two ranks, half of it, in "
                               "turn with the bare interface below."
                             : "Times windows of puts with signals between two ranks, in turn with the bare "
                               "interface below.") +
      " TORII_WAIT=sleep opens torii's engines with a descriptor to sleep on also where every rank has a CPU; "
      "the bare loop has none. Starts its two ranks itself unless a launcher has.");
  options.sizes.add_flags(app);
  app.add_option("-n", options.iterations,
                 is_latency ? "round trips in a block (default: as many as fit 20 ms)"
                            : "windows in a block (default: as many as fit 20 ms)")
      .range(1, 1000000);
  app.add_option("-w", options.warm_up, "round trips or windows before the first block (at least 3)")
      .range(0, 1000000)
      .show_default();
  app.add_option("--rounds", options.rounds, "blocks of torii and of the bare loop, in turn")
      .range(1, 1000)
      .show_default();
  app.add_option("--engines", engines, "engines of the transport, and ends of the bare loop, 1..16 (default: 1)");
  app.add_option("--transport", transport, "libfabric or ucx, where this build has them").show_default();
  app.add_option("--provider", provider,
                 "what libfabric runs over, as fi_info names it, or UCX, as UCX_TLS with ';' between (default: auto)");
  app.add_option("--json", options.json, "write one JSON object per line to this file, - for stdout");
  const std::string example = fmt::format("{} -b 8 -e 64K --provider 'tcp;ofi_rxm'", name(options.kind));
  if (!parse_command_line(app, argc, argv, example)) return false;
  options.library = std::ranges::find(kLibraries, transport, &Library::name);
  if (options.library == std::end(kLibraries)) {
    std::string known;
    for (const Library& each : kLibraries) known += (known.empty() ? "" : " or ") + std::string(each.name);
    throw Failure(kBadCommandLine, "--transport '" + transport + "' has no bare loop to stand beside: use " + known);
  }
  options.sizes.read(kBytesMost);
  options.settings = load_settings(engines, provider, transport);
  return true;
}

std::size_t window_of(PutKind kind, std::size_t bytes) {
  if (kind == PutKind::latency) return 1;
  std::size_t window = kWindowMost;
  while (window > 2 && window * bytes > kWindowBytesMost) window /= 2;
  return window;
}

/// Zeroed pages.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(round_up(bytes, 4096)),
        base_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (base_ == MAP_FAILED) throw Failure(kNotPossible, fmt::format("cannot map {} bytes for slots", bytes_));
  }
  ~Pages() { munmap(base_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* base() const { return static_cast<std::byte*>(base_); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* base_;
};

class PutReport {
 public:
  explicit PutReport(const PutOptions& options)
      : options_(options), lines_(options.json, Output::Mode::replace), table_(lines_.table()) {}

  void header(const std::string& provider) const {
    fmt::print(table_, "# {}: torii {} commit {}, {}\n", name(options_.kind), torii_version(), commit(), host());
    fmt::print(table_, "# {} over {}, {} engine{}, {} blocks of each in turn\n", options_.library->name, provider,
               options_.settings.engines, options_.settings.engines == 1 ? "" : "s", options_.rounds);
    fmt::print(table_, "# {:>10} {:>7} {:>12} {:>10} {:>12} {:>10} {:>8} {:>8} {:>7}{}\n", "size(B)", "window",
               "torii(us)", "mad", "bare(us)", "mad", "ratio", "n", "#wrong",
               options_.kind == PutKind::bandwidth ? "  torii(GB/s)   bare(GB/s)" : "");
    std::fflush(table_);
  }

  /// `times_us`: torii's, then the bare loop's.
  void add(const PutPlan& plan, const std::string& provider, const PutResult& result) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < result.times_us[0].size(); ++round) {
      ratios.push_back(result.times_us[0][round] / result.times_us[1][round]);
    }
    const double own_us = median(result.times_us[0]);
    const double bare_us = median(result.times_us[1]);
    const double ratio = median(ratios);
    const auto gbps = [&](double us) { return static_cast<double>(plan.bytes * plan.window) / us / 1e3; };
    const bool has_rate = options_.kind == PutKind::bandwidth;
    fmt::print(table_, "  {:>10} {:>7} {:>12.3f} {:>10.3f} {:>12.3f} {:>10.3f} {:>8.3f} {:>8} {:>7}{}\n", plan.bytes,
               plan.window, own_us, deviation(result.times_us[0]), bare_us, deviation(result.times_us[1]), ratio,
               result.iterations, result.wrong_bytes,
               has_rate ? fmt::format(" {:>12.4f} {:>12.4f}", gbps(own_us), gbps(bare_us)) : "");
    std::fflush(table_);
    if (!lines_.wanted()) return;
    nlohmann::ordered_json json = {{"benchmark", name(options_.kind)},
                                   {"transport", options_.library->name},
                                   {"provider", provider},
                                   {"engines", options_.settings.engines},
                                   {"bytes", plan.bytes},
                                   {"window", plan.window},
                                   {"iterations", result.iterations},
                                   {"rounds", options_.rounds},
                                   {"time_us_median", own_us},
                                   {"time_us_mad", deviation(result.times_us[0])},
                                   {"bare_time_us_median", bare_us},
                                   {"bare_time_us_mad", deviation(result.times_us[1])},
                                   {"ratio", ratio}};
    if (has_rate) json["GBps"] = gbps(own_us);
    if (has_rate) json["bare_GBps"] = gbps(bare_us);
    json["wrong"] = result.wrong_bytes;
    lines_.add(std::move(json));
  }

 private:
  static double deviation(std::vector<double> values) {
    const double middle = median(values);
    for (double& value : values) value = std::abs(value - middle);
    return median(values);
  }

  const PutOptions& options_;
  JsonLines lines_;
  std::FILE* table_;
};

/// Addresses of this host that the ranks reach each other by: of the selected interfaces, or of the loopback where the
/// ranks were started here.
std::vector<std::string> source_addresses(const Settings& settings, const Bootstrap& bootstrap) {
  std::string offered = bootstrap.address();
  if (offered.empty() && settings.interfaces.empty() && inside_job()) offered = "127.0.0.1";
  std::vector<std::string> addresses;
  for (const Interface& one : rail_interfaces(settings.interfaces, interfaces_of_host(), offered)) {
    addresses.push_back(one.address.host());
  }
  return addresses;
}

int measure(const PutOptions& options, Bootstrap& bootstrap) {
  std::size_t most = 0;
  for (const std::size_t bytes : options.sizes.sizes()) {
    most = std::max(most, SlotLayout{window_of(options.kind, bytes), round_up(bytes, kLineBytes)}.bytes());
  }
  const Pages arena(most);
  const Pages bare_memory(most);
  transports::EngineOptions wanted;
  wanted.arena = arena.base();
  wanted.arena_bytes = arena.bytes();
  wanted.engines = options.settings.engines;
  wanted.provider = options.settings.provider;
  wanted.source_addresses = source_addresses(options.settings, bootstrap);
  wanted.named_interfaces = !options.settings.interfaces.empty();
  wanted.wait = options.settings.wait;
  wanted.alone_in_process = true;
  const PutPair pair = options.library->open(bootstrap, wanted, bare_memory.base());
  pair.own->on_quiet = [&] { pair.bare->poll(); };
  pair.bare->on_quiet = [&] { pair.own->poll(); };

  std::unique_ptr<PutReport> report;
  if (bootstrap.rank() == 0) report = std::make_unique<PutReport>(options);
  if (report) report->header(pair.provider);
  std::size_t wrong = 0;
  for (const std::size_t bytes : options.sizes.sizes()) {
    const PutPlan plan = {options.kind,       bytes,           window_of(options.kind, bytes),
                          options.iterations, options.warm_up, options.rounds};
    const PutResult result = measure_puts(bootstrap, {pair.own.get(), pair.bare.get()}, plan);
    if (report) report->add(plan, pair.provider, result);
    wrong += result.wrong_bytes;
  }
  return wrong == 0 ? kOk : kWrongData;
}

}  // namespace

int run_puts(PutKind kind, int argc, char** argv) noexcept {
  return run_program(argv, [&] {
    PutOptions options;
    options.kind = kind;
    if (kind == PutKind::latency) options.sizes = {"8", "1M"};
    if (!parse(argc, argv, options)) return static_cast<int>(kOk);
    try {
      const std::unique_ptr<Bootstrap> bootstrap = join(options.settings);
      if (bootstrap->ranks() == 1) start_ranks(2, {argv + 1, argv + argc});
      if (bootstrap->ranks() != 2) {
        throw Failure(kBadCommandLine, fmt::format("{} ranks; puts are timed between 2", bootstrap->ranks()));
      }
      return measure(options, *bootstrap);
    } catch (const Error& error) {
      throw Failure(error.status() == Status::invalid_argument ? kBadCommandLine : kNotPossible, error.what());
    }
  });
}

}  // namespace torii::perf
