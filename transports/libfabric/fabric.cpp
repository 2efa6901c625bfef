// SPDX-License-Identifier: Apache-2.0
// Makes the engines of a job, spreads puts over them, and sleeps until one of them has something to do.
#include "transports/libfabric/fabric.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "runtime/waiting.hpp"
#include "runtime/words.hpp"
#include "transports/libfabric/notice.hpp"
#include "transports/libfabric/providers.hpp"
#include "transports/libfabric/rails.hpp"

namespace torii::libfabric {
namespace {

constexpr std::int64_t kConfirmMostNs = 1'000'000'000;

/// What tests/fabric has seen a provider do, and no other is believed to.
struct Proven {
  std::string_view provider;
  bool wakes;           ///< its descriptor wakes a sleeper on every kind of put
  bool notices_deaths;  ///< a confirmed write fails when the peer's process has ended
};
constexpr Proven kProven[] = {{"tcp;ofi_rxm", true, true}, {"net", true, true}};

Proven proven(std::string_view provider) {
  for (const Proven& each : kProven) {
    if (each.provider == provider) return each;
  }
  return {provider, false, false};
}

constexpr const char* kFine = "fine";

/// Runs a step on all ranks; when it fails on one, all throw that rank's error.
template <class Step>
void together(Exchange& exchange, Step&& step) {
  std::string mine = kFine;
  try {
    step();
  } catch (const Error& error) {
    mine = std::to_string(static_cast<int>(error.status())) + " " + error.what();
  }
  const std::vector<std::string> all = gather_texts(exchange, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == kFine) continue;
    const std::size_t space = all[rank].find(' ');
    throw Error(static_cast<Status>(std::stoi(all[rank])),
                "rank " + std::to_string(rank) + ": " + all[rank].substr(space + 1), static_cast<int>(rank));
  }
}

/// What must be equal on all ranks, or is taken at its least.
struct RankCard {
  std::uint64_t engines;
  std::uint64_t arena_bytes;
  std::uint64_t ordered_bytes;
  std::uint64_t data_bytes;
};

}  // namespace

Fabric::Fabric(Exchange& exchange, const Options& options, const Api& api)
    : options_(options), rank_(exchange.rank()), ranks_(exchange.ranks()), peers_(exchange.ranks()) {
  together(exchange, [&] {
    if (options_.engines < 1 || options_.engines > kEnginesMax) {
      throw Error(Status::invalid_argument,
                  std::to_string(options_.engines) + " engines; they must be 1 to " + std::to_string(kEnginesMax));
    }
    for (const std::string& source : options_.source_addresses) check_source(source);
  });
  open_engines(exchange, api);

  const RankCard mine = {static_cast<std::uint64_t>(options_.engines), options_.arena_bytes, ordered_bytes_,
                         data_bytes_};
  const std::vector<RankCard> cards = gather_values(exchange, mine);
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].engines != mine.engines || cards[rank].arena_bytes != mine.arena_bytes) {
      throw Error(Status::mismatch,
                  "rank " + std::to_string(rank) + " has " + std::to_string(cards[rank].engines) +
                      " engines and an arena of " + std::to_string(cards[rank].arena_bytes) + " bytes, rank " +
                      std::to_string(rank_) + " " + std::to_string(mine.engines) + " and " +
                      std::to_string(mine.arena_bytes),
                  static_cast<int>(rank));
    }
    ordered_bytes_ = std::min<std::size_t>(ordered_bytes_, cards[rank].ordered_bytes);
    data_bytes_ = std::min<std::size_t>(data_bytes_, cards[rank].data_bytes);
  }
  together(exchange, [&] {
    if (options_.arena_bytes > arena_bytes_max(data_bytes_)) {
      throw Error(Status::unsupported, "completions of " + provider_ + " carry " + std::to_string(data_bytes_) +
                                           " bytes, enough for an arena of " +
                                           std::to_string(arena_bytes_max(data_bytes_) >> 30) + " GiB; this one has " +
                                           std::to_string(options_.arena_bytes >> 30) + " GiB; set TORII_ARENA lower");
    }
  });
  for (const auto& engine : engines_) {
    EngineCard card{};
    together(exchange, [&] { card = engine->card(); });
    const std::vector<EngineCard> peers = gather_values(exchange, card);
    together(exchange, [&] { engine->connect(peers, ordered_bytes_); });
  }
  // shm of libfabric 1.17 still writes into the memory of a peer of the same process that has closed its endpoint; what
  // was put stands in the peer's memory already.
  confirms_at_end_ = provider_ != "shm";
  const bool waits =
      std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->wait_descriptor() >= 0; });
  const Proven known = proven(provider_);
  capabilities_ = {.name = "libfabric",
                   .mapped = false,
                   .wakes_on_put = waits && known.wakes,
                   .notices_deaths = known.notices_deaths,
                   .engines = options_.engines};
}

/// Agrees on provider, addresses and devices, then opens. Collective.
void Fabric::open_engines(Exchange& exchange, const Api& api) {
  sources_ = agree_on_sources(exchange, options_);
  std::vector<std::string> sources = sources_;
  std::ranges::sort(sources);
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  provider_ = choose_provider(exchange, api, options_.provider, sources);
  if (sources.empty() || !is_over_ip(provider_)) sources = {""};
  std::map<std::string, std::vector<Info>> found;
  together(exchange, [&] {
    for (const std::string& source : sources) found[source] = find_devices(api, provider_, source);
  });
  std::vector<const fi_info*> devices;  // of each engine
  if (is_over_ip(provider_)) {
    sources_.resize(static_cast<std::size_t>(options_.engines));
    std::map<std::string, std::size_t> taken;
    for (const std::string& source : sources_) {
      const std::vector<Info>& here = found[source];
      devices.push_back(here[taken[source]++ % here.size()].get());
    }
  } else {
    sources_.assign(static_cast<std::size_t>(options_.engines), "");
    for (const std::size_t device : agree_on_devices(exchange, found[""], options_.engines)) {
      devices.push_back(found[""][device].get());
    }
  }
  ordered_bytes_ = SIZE_MAX;
  data_bytes_ = sizeof(std::uint64_t);
  together(exchange, [&] {
    arrivals_ = std::make_unique<Arrivals>(options_.arena, options_.arena_bytes, true);
    for (const fi_info* const device : devices) open_engine(api, *device);
  });
}

void Fabric::open_engine(const Api& api, const fi_info& info) {
  const bool ordered = (info.tx_attr->msg_order & info.rx_attr->msg_order & FI_ORDER_WAW) != 0;
  ordered_bytes_ = std::min(ordered_bytes_, ordered ? info.ep_attr->max_order_waw_size : 0);
  data_bytes_ = std::min(data_bytes_, info.domain_attr->cq_data_size);
  const Shared shared = {options_.arena, options_.arena_bytes, ranks_, *arrivals_, peers_, options_.sleeps};
  const int number = static_cast<int>(engines_.size());
  engines_.push_back(std::make_unique<Engine>(api, info, number, shared, options_.bounce_bytes));
  device_names_.emplace_back(info.domain_attr->name);
}

Fabric::~Fabric() {
  if (peers_.status() != Status::ok || !confirms_at_end_) return;
  for (const auto& engine : engines_) engine->flush();
  const std::int64_t deadline = now_ns() + kConfirmMostNs;
  const auto confirmed = [this] {
    return std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->confirmed(); });
  };
  while (!confirmed() && now_ns() < deadline) {
    (void)progress();
    sleep(
        1000, [](void*) { return true; }, nullptr);
  }
}

Status Fabric::put(const Put& put) noexcept {
  if (put.peer != rank_) {
    const Status status = peers_.status();
    return status == Status::ok ? engines_[static_cast<std::size_t>(put.engine)]->put(put) : status;
  }
  if (put.source != nullptr) std::memcpy(options_.arena + put.target_offset, put.source, put.bytes);
  store_word(options_.arena + put.signal_offset, put.signal);
  return Status::ok;
}

Status Fabric::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  if (peer == rank_) {
    store_word(options_.arena + offset, value);
    return Status::ok;
  }
  const Status status = peers_.status();
  if (status != Status::ok) return status;
  // A word goes through one engine always, so that its values do not overtake each other where the provider orders.
  return engines_[offset / sizeof(std::uint64_t) % engines_.size()]->put_word(peer, offset, value);
}

Status Fabric::progress() noexcept {
  for (const auto& engine : engines_) engine->progress();
  return peers_.status();
}

bool Fabric::drained() noexcept {
  return std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->drained(); });
}

void Fabric::sleep(int most_us, bool (*still_idle)(void* data), void* data) noexcept {
  // A put that comes from here on makes a descriptor readable, so none is slept through.
  if (!still_idle(data)) return;
  const timespec most = {most_us / 1'000'000, static_cast<long>(most_us % 1'000'000) * 1000};
  if (!capabilities_.wakes_on_put) {
    nanosleep(&most, nullptr);
    return;
  }
  pollfd entries[kEnginesMax];
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (!engines_[i]->may_sleep()) return;
    entries[i] = {engines_[i]->wait_descriptor(), POLLIN, 0};
  }
  ppoll(entries, engines_.size(), &most, nullptr);
}

bool Fabric::alive(int peer) noexcept {
  if (peer == rank_) return true;
  if (peers_.is_lost(peer)) return false;
  const std::int64_t now = now_ns();
  for (const auto& engine : engines_) {
    if (engine->probe(peer, now)) break;
  }
  return true;
}

}  // namespace torii::libfabric
