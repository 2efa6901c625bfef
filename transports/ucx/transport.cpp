// SPDX-License-Identifier: Apache-2.0
// Makes the engines of a job.
#include "transports/ucx/transport.hpp"

#include <algorithm>
#include <string_view>

#include "runtime/base/blocked_signals.hpp"
#include "transports/network/rails.hpp"
#include "transports/network/setup.hpp"
#include "transports/network/together.hpp"
#include "transports/ucx/providers.hpp"

namespace torii::ucx {
namespace {

/// The transports with which tests/fabric has seen every kind of put wake a sleeper; others are assumed not to.
constexpr std::string_view kWakes[] = {"tcp"};

/// The abilities of a rank; an ability is used only if all ranks have it.
struct RankCard {
  bool puts;
  bool peer_errors;
};

}  // namespace

UcxTransport::UcxTransport(Bootstrap& bootstrap, const Options& options) : EngineTransport(bootstrap, options) {
  transports::check_options(bootstrap, options);
  const std::vector<std::string> sources = transports::agree_on_sources(bootstrap, options);
  const std::string provider = choose_provider(bootstrap, options.provider, sources);
  std::vector<Selection> selections;
  transports::together(bootstrap, [&] { selections = find_selections(provider, sources); });

  const auto all_of = [&](bool Abilities::*ability) {
    return std::all_of(selections.begin(), selections.end(),
                       [&](const Selection& selection) { return selection.abilities.*ability; });
  };
  Manner manner;
  manner.puts = options.way == Way::puts || (options.way == Way::by_ability && all_of(&Abilities::puts));
  manner.peer_errors = all_of(&Abilities::peer_errors);
  const bool may_sleep = options.wait != WaitMode::spin && options.wait != WaitMode::yield;
  manner.wakes = may_sleep && std::find(std::begin(kWakes), std::end(kWakes), provider) != std::end(kWakes);
  for (const RankCard& card : gather_values(bootstrap, RankCard{manner.puts, manner.peer_errors})) {
    manner.puts = manner.puts && card.puts;
    manner.peer_errors = manner.peer_errors && card.peer_errors;
  }

  // UCX over InfiniBand would also keep memory of sent messages registered, unknown to the program.
  const std::size_t pinned_bytes = std::ranges::any_of(selections, pins_memory) ? options.bytes_to_pin() : 0;
  const std::vector<Extent> extents = options.extents_to_register(pinned_bytes);
  const Shared shared = {arena_, options.arena_bytes, rank_, ranks_, peers_, sleepers_};
  // UCX starts a thread for connections (one per process), which must not receive the program's signals.
  const BlockedSignals blocked;
  std::vector<std::shared_ptr<Device>> devices(selections.size());
  transports::together(bootstrap, [&] {
    for (int number = 0; number < options.engines; ++number) {
      const Selection& selection = selections[static_cast<std::size_t>(number) % selections.size()];
      const auto first =
          std::ranges::find_if(selections, [&](const Selection& one) { return one.has_devices_of(selection); });
      std::shared_ptr<Device>& device = devices[static_cast<std::size_t>(first - selections.begin())];
      if (device == nullptr || !device->is_shareable()) {
        device = std::make_shared<Device>(selection, manner, ranks_);
        for (const Extent& extent : extents) {
          if (manner.puts) device->register_extent(arena_, extent);
        }
      }
      engines_.push_back(std::make_unique<Engine>(device, number, shared));
    }
  });
  for (const auto& engine : engines_) {
    std::string card;
    transports::together(bootstrap, [&] { card = engine->card(); });
    const std::vector<std::string> cards = gather_texts(bootstrap, card);
    transports::together(bootstrap, [&] { engine->connect(cards); });
  }
  capabilities_ = {.name = "ucx",
                   .mapped = false,
                   .wakes_on_put = manner.wakes,
                   .notices_deaths = manner.peer_errors && pinned_bytes == 0,  // devices also lose peers that live
                   .engines = options.engines,
                   .rails = std::min(static_cast<int>(selections.size()), options.engines),
                   .pinned_bytes = pinned_bytes,
                   .put_bytes = transports::put_bytes(provider == "tcp"),
                   .gathers = true};
  connect_all(bootstrap, options);
}

}  // namespace torii::ucx
