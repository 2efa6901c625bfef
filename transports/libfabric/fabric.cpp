// SPDX-License-Identifier: Apache-2.0
// Makes the engines of a job.
#include "transports/libfabric/fabric.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "transports/libfabric/notice.hpp"
#include "transports/libfabric/providers.hpp"
#include "transports/libfabric/rails.hpp"
#include "transports/network/rails.hpp"
#include "transports/network/setup.hpp"
#include "transports/network/together.hpp"

namespace torii::libfabric {

using transports::check_options;
using transports::together;

namespace {

/// Abilities of a provider that tests/fabric has seen; other providers are assumed to have none.
struct Proven {
  std::string_view provider;
  bool wakes;           ///< its descriptor wakes a sleeper on every kind of put
  bool notices_deaths;  ///< a confirmed write fails if the peer's process has ended
};
/// Over verbs a death shows when the device gives up, which takes longer than tests wait.
constexpr Proven kProven[] = {{"verbs;ofi_rxm", true, false}, {"tcp;ofi_rxm", true, true}, {"net", true, true}};

Proven proven(std::string_view provider) {
  for (const Proven& each : kProven) {
    if (each.provider == provider) return each;
  }
  return {provider, false, false};
}

/// Values of which the least over all ranks counts.
struct RankCard {
  std::uint64_t ordered_bytes;
  std::uint64_t data_bytes;
  std::uint64_t put_bytes_most;
};

/// A descriptor for sleeping makes tcp watch its sockets through two levels of epoll: 0.9 us of a short put.
bool wants_descriptor(const Options& options, std::string_view provider) {
  if (options.wait == WaitMode::sleep || options.wait == WaitMode::shared) return true;
  if (options.wait != WaitMode::automatic) return false;
  return options.oversubscribed || !options.alone_in_process || provider != "tcp;ofi_rxm";
}

}  // namespace

Fabric::Fabric(Bootstrap& bootstrap, const Options& options, const Api& api) : EngineTransport(bootstrap, options) {
  check_options(bootstrap, options);
  start_quietly(api, ranks_);
  open_engines(bootstrap, options, api);

  for (const RankCard& card : gather_values(bootstrap, RankCard{ordered_bytes_, data_bytes_, put_bytes_most_})) {
    ordered_bytes_ = std::min<std::size_t>(ordered_bytes_, card.ordered_bytes);
    data_bytes_ = std::min<std::size_t>(data_bytes_, card.data_bytes);
    put_bytes_most_ = std::min<std::size_t>(put_bytes_most_, card.put_bytes_most);
  }
  together(bootstrap, [&] {
    if (registered_bytes(options) > arena_bytes_max(data_bytes_)) {
      throw Error(Status::unsupported, "completions of " + provider_ + " carry " + std::to_string(data_bytes_) +
                                           " bytes, enough for an arena of " +
                                           std::to_string(arena_bytes_max(data_bytes_) >> 30) + " GiB; this one has " +
                                           std::to_string(registered_bytes(options) >> 30) +
                                           " GiB registered; set TORII_ARENA lower");
    }
  });
  for (const auto& engine : engines_) {
    EngineCard card{};
    together(bootstrap, [&] { card = engine->card(data_bytes_); });
    const std::vector<EngineCard> peers = gather_values(bootstrap, card);
    together(bootstrap, [&] { engine->connect(peers, ordered_bytes_); });
  }
  // shm of libfabric 1.17 still writes into the memory of a peer of the same process that has closed its endpoint. The
  // put is already in the peer's memory.
  confirms_at_end_ = provider_ != "shm";
  const bool waits =
      std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->wait_descriptor() >= 0; });
  const Proven known = proven(provider_);
  capabilities_ = {.name = "libfabric",
                   .mapped = false,
                   .wakes_on_put = waits && known.wakes,
                   .notices_deaths = known.notices_deaths,
                   .engines = options.engines,
                   .rails = count_rails(),
                   .pinned_bytes = pinned_bytes_,
                   .put_bytes_most = put_bytes_most_,
                   .put_bytes = transports::put_bytes(listens_on_tcp(provider_, FI_SOCKADDR_IN)),
                   .gathers = gathers_};
  connect_all(bootstrap, options);
}

/// Agrees on addresses and provider, then opens. Collective.
void Fabric::open_engines(Bootstrap& bootstrap, const Options& options, const Api& api) {
  const std::vector<std::string> sources = transports::agree_on_sources(bootstrap, options);
  std::vector<std::string> each = sources;
  std::ranges::sort(each);
  each.erase(std::unique(each.begin(), each.end()), each.end());
  std::string reasons;
  for (const std::string& provider : usable_providers(bootstrap, api, options.provider, each)) {
    try {
      return open_over(provider, sources, bootstrap, options, api);
    } catch (const Error& error) {
      // All ranks throw the same error, so all try the next provider.
      if (options.provider != "auto" || error.status() != Status::unsupported) throw;
      reasons += (reasons.empty() ? "" : "; ") + provider + ": " + error.what();
      if (rank_ == 0) options.log(LogLevel::error, "TORII_PROVIDER=auto passes over " + provider + ": " + error.what());
    }
  }
  throw Error(Status::unsupported, "no provider can be opened on all ranks: " + reasons);
}

/// Agrees on devices, then opens. Collective. `sources`: by engine, or empty.
void Fabric::open_over(const std::string& provider, std::vector<std::string> sources, Bootstrap& bootstrap,
                       const Options& options, const Api& api) {
  engines_.clear();
  device_names_.clear();
  provider_ = provider;
  gathers_ = true;
  if (sources.empty() || !is_over_ip(provider)) sources.assign(static_cast<std::size_t>(options.engines), "");
  std::map<std::string, std::vector<Info>> found;
  together(bootstrap, [&] {
    for (const std::string& source : sources) {
      if (!found.contains(source)) found[source] = find_devices(api, provider, source);
    }
  });
  std::vector<const fi_info*> devices;  // by engine
  if (is_over_ip(provider)) {
    std::map<std::string, std::size_t> taken;
    for (const std::string& source : sources) {
      const std::vector<Info>& here = found[source];
      devices.push_back(here[taken[source]++ % here.size()].get());
    }
  } else {
    for (const std::size_t device : agree_on_devices(bootstrap, found[""], options.engines)) {
      devices.push_back(found[""][device].get());
    }
  }
  sources_ = std::move(sources);
  const auto pins = [](const fi_info* device) { return Device::pins(*device); };
  pinned_bytes_ = std::ranges::any_of(devices, pins) ? options.bytes_to_pin() : 0;
  ordered_bytes_ = SIZE_MAX;
  data_bytes_ = sizeof(std::uint64_t);
  put_bytes_most_ = SIZE_MAX;
  together(bootstrap, [&] {
    arrivals_ = std::make_unique<Arrivals>(options.arena, options.arena_bytes);
    std::map<const fi_info*, std::shared_ptr<Device>> shared;
    for (const fi_info* const info : devices) {
      std::shared_ptr<Device>& device = shared[info];
      if (device == nullptr || !device->is_shareable()) device = std::make_shared<Device>(api, *info);
      open_engine(options, device);
    }
  });
  // Pinning takes pages for good, so it waits until all ranks have opened the provider.
  together(bootstrap, [&] {
    const std::vector<Extent> extents = options.extents_to_register(pinned_bytes_);
    for (const auto& engine : engines_) engine->make_ready(options, extents);
  });
}

void Fabric::open_engine(const Options& options, const std::shared_ptr<Device>& device) {
  const fi_info& info = device->info();
  const bool ordered = (info.tx_attr->msg_order & info.rx_attr->msg_order & FI_ORDER_WAW) != 0;
  gathers_ = gathers_ && info.tx_attr->iov_limit >= 2;
  ordered_bytes_ = std::min(ordered_bytes_, ordered ? info.ep_attr->max_order_waw_size : 0);
  data_bytes_ = std::min(data_bytes_, info.domain_attr->cq_data_size);
  put_bytes_most_ = std::min(put_bytes_most_, info.ep_attr->max_msg_size - kLineBytes);
  // shm completes writes that wait for the peer in the order of their start. The first write to a peer that is in no
  // call would hold up all others, and none of them would find out about a death.
  const bool probes = provider_ != "shm";
  const Shared shared = {.arena = options.arena,
                         .registered_bytes = registered_bytes(options),
                         .rank = rank_,
                         .ranks = ranks_,
                         .arrivals = *arrivals_,
                         .peers = peers_,
                         .sleepers = sleepers_,
                         .sleeps = wants_descriptor(options, provider_),
                         .alone_in_process = options.alone_in_process,
                         .probes = probes};
  const int number = static_cast<int>(engines_.size());
  engines_.push_back(std::make_unique<Engine>(device, number, shared, options));
  device_names_.emplace_back(info.domain_attr->name);
}

void Fabric::pin(const Extent& extent) {
  if (pinned_bytes_ == 0) return;
  for (const auto& engine : engines_) engine->pin(extent);
}

int Fabric::count_rails() const {
  std::set<std::pair<std::string, std::string>> rails;
  for (std::size_t i = 0; i < engines_.size(); ++i) rails.emplace(sources_[i], device_names_[i]);
  return static_cast<int>(rails.size());
}

}  // namespace torii::libfabric
