// SPDX-License-Identifier: Apache-2.0
// Times engines by the credits of what they carried.
#include "runtime/execution/engine_balancer.hpp"

#include <algorithm>
#include <limits>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {
namespace {

constexpr auto kWeight = tuned<double>("engines.newest_weight");
/// An engine without messages under way is believed to be this much quicker each time it is passed over. So an engine
/// that was slow is tried again.
constexpr auto kForgets = tuned<double>("engines.forgets");
/// How long a stream waits for credits while no engine has room.
constexpr auto kPatienceNs = tuned<std::int64_t>("engines.patience");

}  // namespace

EngineBalancer::EngineBalancer(int slots, int engines)
    : by_slot_(static_cast<std::size_t>(slots)), engine_count_(std::min(engines, kEnginesMax)) {}

void EngineBalancer::look(const std::byte* credits, std::int64_t now_ns) noexcept {
  const bool times = !resumes_;
  resumes_ = false;
  if (open_ == 0) return;
  std::array<std::uint32_t, kEnginesMax> messages{};
  std::array<std::int64_t, kEnginesMax> began_ns{};
  for (std::size_t slot = 0; slot < by_slot_.size(); ++slot) {
    Message& message = by_slot_[slot];
    // The word may be that of a later message, which went another way.
    if (message.engine < 0 || load_word(credits + slot * sizeof(std::uint64_t)) <= message.number) continue;
    const auto engine = static_cast<std::size_t>(message.engine);
    if (messages[engine]++ == 0 || message.sent_ns < began_ns[engine]) began_ns[engine] = message.sent_ns;
    close(message);
    heard_ns_ = now_ns;
  }
  for (std::size_t engine = 0; engine < engines_.size(); ++engine) {
    Engine& one = engines_[engine];
    one.room = std::min(one.room + messages[engine], static_cast<std::uint32_t>(by_slot_.size()));
    if (!times) one.returned_ns = now_ns;
    if (times && messages[engine] != 0) time(one, messages[engine], began_ns[engine], now_ns);
  }
}

void EngineBalancer::close(Message& message) noexcept {
  --engines_[static_cast<std::size_t>(message.engine)].under_way;
  message.engine = -1;
  --open_;
}

/// An engine carries its messages one after the other, so each begins when the one before it ends.
void EngineBalancer::time(Engine& engine, std::uint32_t messages, std::int64_t began_ns, std::int64_t now_ns) noexcept {
  const auto each_ns = std::max(1.0, static_cast<double>(now_ns - std::max(engine.returned_ns, began_ns)) / messages);
  const double weight = engine.message_ns == 0 ? 1 : std::min(kWeight * messages, 1.0);
  engine.message_ns += (each_ns - engine.message_ns) * weight;
  engine.returned_ns = now_ns;
}

bool EngineBalancer::is_known() const noexcept {
  return std::any_of(engines_.begin(), engines_.begin() + engine_count_,
                     [](const Engine& engine) { return engine.message_ns > 0; });
}

bool EngineBalancer::has_room() const noexcept {
  return std::any_of(engines_.begin(), engines_.begin() + engine_count_,
                     [](const Engine& engine) { return engine.under_way < engine.room; });
}

bool EngineBalancer::has_waited(std::int64_t now_ns) const noexcept { return now_ns - heard_ns_ > kPatienceNs; }

int EngineBalancer::next() const noexcept {
  const bool has_room = this->has_room();
  const bool is_known = this->is_known();
  int best = 0;
  double best_ns = std::numeric_limits<double>::infinity();
  for (int number = 0; number < engine_count_; ++number) {
    const Engine& engine = engines_[static_cast<std::size_t>(number)];
    if (has_room && engine.under_way >= engine.room) continue;
    // An engine without measurements is tried before all others, and filled after all others.
    const double unknown_ns = is_known && !has_room ? 1e18 : 1;
    const double through_ns = (engine.under_way + 1) * (engine.message_ns > 0 ? engine.message_ns : unknown_ns);
    if (through_ns >= best_ns) continue;
    best = number;
    best_ns = through_ns;
  }
  return best;
}

void EngineBalancer::sent(int engine, std::uint64_t message, std::int64_t now_ns) noexcept {
  Message& slot = by_slot_[message % by_slot_.size()];
  if (slot.engine >= 0) close(slot);
  if (open_++ == 0) heard_ns_ = now_ns;
  for (int number = 0; number < engine_count_; ++number) {
    Engine& one = engines_[static_cast<std::size_t>(number)];
    if (one.under_way == 0 && number != engine) one.message_ns -= one.message_ns * kForgets;
  }
  ++engines_[static_cast<std::size_t>(engine)].under_way;
  slot = {message, now_ns, engine};
}

int EngineBalancer::least_busy(std::uint64_t turn) const noexcept {
  int best = 0;
  double best_ns = std::numeric_limits<double>::infinity();
  for (int step = 0; step < engine_count_; ++step) {
    const int number =
        static_cast<int>((turn + static_cast<std::uint64_t>(step)) % static_cast<unsigned>(engine_count_));
    const Engine& engine = engines_[static_cast<std::size_t>(number)];
    const double waits_ns = engine.under_way * engine.message_ns;
    if (waits_ns >= best_ns) continue;
    best = number;
    best_ns = waits_ns;
  }
  return best;
}

}  // namespace torii
