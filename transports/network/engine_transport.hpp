// SPDX-License-Identifier: Apache-2.0
// The common part of transports over a network: engines, puts spread over them, and sleeping.
#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/deadline.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/network/engine_options.hpp"
#include "transports/network/peer_states.hpp"
#include "transports/network/sleepers.hpp"
#include "transports/network/together.hpp"

namespace torii::transports {

/// An Engine is thread-safe and has these functions; transports/libfabric/engine.hpp describes them:
/// - put(), put_word(), progress() (false: there was nothing to do), drained(), close()
/// - flush() asks all peers to confirm earlier puts; confirmed() says whether they have
/// - greet() tells the peer's engine of the same number that this engine exists; is_greeted() says whether that engine
///   has done so
/// - take_leave() tells a peer that this rank closes its engines; has_left() says whether the peer has done so
/// - probe() checks that a peer lives; doubt() checks a peer that another engine has lost
/// - wait_descriptor(), may_sleep()
/// Each of them calls Sleepers::took() after it has received something for which a thread of this rank may wait.
template <class Engine>
class EngineTransport : public Transport {
 public:
  const Capabilities& capabilities() const noexcept final { return capabilities_; }
  int rank() const noexcept final { return rank_; }
  int ranks() const noexcept final { return ranks_; }
  int node(int rank) const noexcept final { return rank; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept final { return peer == rank_ ? arena_ + offset : nullptr; }

  Status put(const Put& put) noexcept final {
    if (put.peer != rank_) {
      // After the loss of an engine the others still work: they carry the reason why a team has failed.
      if (peers_.is_broken()) {
        if (put.owner != nullptr) put.owner->fail(Status::transport);
        return Status::transport;
      }
      const std::size_t engine = substitute(static_cast<std::size_t>(put.engine));
      wake(engine);
      const Status status = engines_[engine]->put(put);
      if (status != Status::ok && put.owner != nullptr) put.owner->fail(status);
      return status;
    }
    if (put.source != nullptr) std::memcpy(arena_ + put.target_offset, put.source, put.bytes);
    store_word(arena_ + put.signal_offset, put.signal);
    return Status::ok;
  }

  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept final {
    if (peer == rank_) {
      store_word(arena_ + offset, value);
      return Status::ok;
    }
    if (peers_.is_broken()) return Status::transport;
    // Each word always uses the same engine, so that its values stay in order if the network keeps order.
    const std::size_t engine = substitute(offset / sizeof(std::uint64_t) % engines_.size());
    wake(engine);
    return engines_[engine]->put_word(peer, offset, value);
  }

  /// Polling an engine over sockets costs a system call or two, and mostly some engines are idle for long. While some
  /// engines are busy, every fourth round polls one quiet engine, in turn. While all are quiet, every second round
  /// polls the engine that was busy last: all messages of a series of short calls arrive there.
  Status progress() noexcept final {
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed) + 1;
    turn_.store(turn, std::memory_order_relaxed);
    std::array<std::size_t, kEnginesMax> quiet;
    std::size_t quiet_count = 0;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if (quiet_looks_[i].load(std::memory_order_relaxed) >= kQuietLooks) {
        quiet[quiet_count++] = i;
      } else {
        look(i);
      }
    }
    if (quiet_count == engines_.size()) {
      look(turn % 2 == 0 ? last_busy_.load(std::memory_order_relaxed) : turn / 2 % quiet_count);
    } else if (quiet_count != 0 && turn % kRoundsPerQuietLook == 0) {
      look(quiet[turn / kRoundsPerQuietLook % quiet_count]);
    }
    return peers_.status();
  }

  bool drained() noexcept final {
    return std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->drained(); });
  }

  /// Then looks at the engines that woke it. A caller that waits for its own node only asks none of them, and would
  /// come back at once.
  void sleep(SleepMark& /*mark*/, int most_us, bool (*still_idle)(void* data), void* data) noexcept final {
    const std::uint32_t ready = sleep_until_ready(most_us, still_idle, data);
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if ((ready >> i & 1) != 0) look(i);
    }
  }

  bool alive(int peer) noexcept final {
    if (peer == rank_) return true;
    const bool is_lost = peers_.is_lost(peer);
    if (is_lost && shows_ends(peer)) return false;
    const std::int64_t now = now_ns();
    const bool is_doubted = peers_.is_doubted(peer);
    // A rank that leaves closes its engines one after the other, so each may be the one that knows.
    const auto has_left = [peer](const auto& engine) { return engine->has_left(peer); };
    if ((is_lost || is_doubted) && std::any_of(engines_.begin(), engines_.end(), has_left)) {
      peers_.lose(peer, "it has left");
      return false;
    }
    if (has_ended(peer, now)) return false;
    if (is_lost) return true;  // calls that need it end at their deadline
    for (const auto& engine : engines_) {
      if (is_doubted) {
        engine->doubt(peer, now);
      } else if (engine->probe(peer, now)) {
        break;
      }
    }
    return !peers_.is_lost(peer) || !shows_ends(peer);
  }
  bool may_live(int peer) noexcept override {
    return lives_ == nullptr ? alive(peer) : peer == rank_ || !lives_->has_ended(peer, now_ns());
  }

  void close_engines(std::uint32_t engines) noexcept final {
    std::size_t open_count = 0;
    std::array<std::uint8_t, kEnginesMax> open{};
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if (((engines | peers_.closed()) >> i & 1) == 0) open[open_count++] = static_cast<std::uint8_t>(i);
    }
    if (open_count == 0) std::abort();  // the interface's contract: one stays open
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if (((engines | peers_.closed()) >> i & 1) != 0) substitutes_[i].store(open[i % open_count]);
    }
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if (((engines & ~peers_.closed()) >> i & 1) == 0) continue;
      peers_.close(static_cast<int>(i));
      engines_[i]->close();
    }
  }
  std::uint32_t lost_engines() const noexcept final { return peers_.lost_engines(); }
  std::uint32_t closed_engines() const noexcept final { return peers_.closed(); }

  std::uint64_t strangers() const noexcept final { return peers_.strangers(); }
  std::string failure_text() const final { return peers_.text(); }
  bool oversubscribed() const noexcept final { return oversubscribed_; }

 protected:
  EngineTransport(const Bootstrap& bootstrap, const EngineOptions& options)
      : arena_(options.arena),
        rank_(bootstrap.rank()),
        ranks_(bootstrap.ranks()),
        oversubscribed_(options.oversubscribed),
        peers_(bootstrap.ranks(), options.engines),
        lives_(options.lives) {
    for (std::size_t i = 0; i < substitutes_.size(); ++i) substitutes_[i].store(static_cast<std::uint8_t>(i));
  }

  /// Collective. Every engine greets those of all peers on other nodes and waits for their greetings. A provider may
  /// connect only at the first put and then needs progress() at both ends. But later a peer may be in no call for long.
  /// Throws Error on all ranks: timeout or peer_lost with the missing rank, transport.
  void connect_all(Bootstrap& bootstrap, const EngineOptions& options) {
    together(bootstrap, [&] { greet_all(options); });
  }

  /// Waits up to a second until the peers have confirmed all puts, then closes the engines. Destructors call it.
  void finish(bool confirms) noexcept {
    if (confirms && !peers_.is_broken()) {
      for (const auto& engine : engines_) {
        for (const int peer : connected_) engine->take_leave(peer);
        engine->flush();
      }
      Deadline deadline(kConfirmMostNs);
      // Asks every engine each time: an answer may also let the engine go on.
      const auto are_open = [this] {
        return std::count_if(engines_.begin(), engines_.end(), [](const auto& one) { return !one->confirmed(); }) != 0;
      };
      while (are_open() && !deadline.is_over()) {
        (void)progress();
        for (const int peer : connected_) (void)has_ended(peer, now_ns());  // those confirm nothing any more
        sleep_once(
            1000, [](void*) { return true; }, nullptr);
      }
    }
    engines_.clear();
  }

  std::byte* arena_;
  int rank_;
  int ranks_;
  bool oversubscribed_;
  Capabilities capabilities_;
  PeerStates peers_;
  Sleepers sleepers_;
  std::vector<std::unique_ptr<Engine>> engines_;
  /// By engine: polls that found nothing since the last that did. If two threads count at once, a lost count is
  /// harmless.
  std::array<std::atomic<std::uint32_t>, kEnginesMax> quiet_looks_{};
  std::atomic<std::uint32_t> turn_ = 0;
  std::atomic<std::size_t> last_busy_ = 0;  ///< the last engine whose poll found something

 private:
  LifeWatch* lives_;
  std::array<std::atomic<std::uint8_t>, kEnginesMax> substitutes_;  ///< by engine: see substitute()
  std::vector<int> connected_;                                      ///< peers that the engines have greeted
  /// After so many polls without result an engine counts as quiet.
  static constexpr auto kQuietLooks = tuned<std::uint32_t>("engines.quiet_polls");
  static constexpr auto kRoundsPerQuietLook = tuned<std::uint32_t>("engines.rounds_per_quiet_poll");

  /// Whether a peer that no engine reaches has ended. Devices lose peers also when a link is down: on either side.
  bool shows_ends(int peer) noexcept {
    return capabilities_.notices_deaths || lives_ == nullptr || !lives_->watches(peer);
  }

  bool has_ended(int peer, std::int64_t now_ns) noexcept {
    if (lives_ == nullptr || !lives_->has_ended(peer, now_ns)) return false;
    peers_.lose(peer, "its process has ended");
    return true;
  }

  /// The engines that have something to do; a bit each. While it runs this thread counts as asleep.
  std::uint32_t sleep_until_ready(int most_us, bool (*still_idle)(void* data), void* data) noexcept {
    // A put that arrives from here on makes a descriptor readable, or the thread that receives it rings the bell.
    Sleepers::Sleeper sleeper(sleepers_);
    most_us = sleeper.at_most(most_us);
    if (!still_idle(data) || !sleeper.may_sleep()) return 0;
    const std::size_t count = engines_.size();
    pollfd entries[kEnginesMax + 1];
    for (std::size_t i = 0; capabilities_.wakes_on_put && i < count; ++i) {
      if (!engines_[i]->may_sleep(most_us)) return std::uint32_t{1} << i;
      entries[i] = {engines_[i]->wait_descriptor(), POLLIN, 0};
    }
    entries[count] = {sleeper.bell(), POLLIN, 0};
    const std::int64_t most_ns = most_us * std::int64_t{1000};
    if (!capabilities_.wakes_on_put) {
      platform().sleep(most_ns);
      for (std::size_t i = 0; i < count; ++i) wake(i);
      return 0;
    }
    const bool woken = platform().poll(entries, count + 1, most_ns) > 0;
    std::uint32_t ready = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!woken) quiet_looks_[i].store(kQuietLooks - 1, std::memory_order_relaxed);  // poll it once more
      if (woken && entries[i].revents != 0) ready |= std::uint32_t{1} << i;
    }
    return ready;
  }
  void look(std::size_t engine) noexcept {
    const std::uint32_t looks = quiet_looks_[engine].load(std::memory_order_relaxed);
    const bool came = engines_[engine]->progress();
    if (came) last_busy_.store(engine, std::memory_order_relaxed);
    quiet_looks_[engine].store(came ? 0 : std::min(looks + 1, kQuietLooks), std::memory_order_relaxed);
  }
  /// The engine that sends the puts of this engine: itself while it is open.
  std::size_t substitute(std::size_t engine) const noexcept {
    return substitutes_[engine].load(std::memory_order_relaxed);
  }
  /// The next progress() polls this engine.
  void wake(std::size_t engine) noexcept { quiet_looks_[engine].store(0, std::memory_order_relaxed); }

  static constexpr std::int64_t kConfirmMostNs = 1'000'000'000;
  static constexpr std::size_t kGreetedAtOnce = 4;  ///< by one engine, so that it can still answer the peers

  void greet_all(const EngineOptions& options) {
    std::vector<int> silent;
    // Each rank starts after its own number, so that not all connect to one rank at once.
    for (int step = 1; step < ranks_; ++step) {
      const int peer = (rank_ + step) % ranks_;
      const auto node = [&](int rank) {
        return options.nodes.empty() ? rank : options.nodes[static_cast<std::size_t>(rank)];
      };
      if (node(peer) != node(rank_)) silent.push_back(peer);
    }
    connected_ = silent;
    const std::vector<int>& peers = connected_;
    std::vector<std::size_t> greeted(engines_.size(), 0);  // by engine: number of greeted peers
    Deadline deadline = Deadline::after_s(options.timeout_s);
    const auto has_come = [this](int peer) {
      return std::all_of(engines_.begin(), engines_.end(), [=](const auto& one) { return one->is_greeted(peer); });
    };
    for (bool greets = true; greets || !silent.empty() || !drained();) {
      greets = false;
      for (std::size_t i = 0; i < engines_.size(); ++i) {
        const std::size_t most = engines_[i]->drained() ? std::min(greeted[i] + kGreetedAtOnce, peers.size()) : 0;
        while (greeted[i] < most) engines_[i]->greet(peers[greeted[i]++]);
        greets = greets || greeted[i] < peers.size();
      }
      if (progress() != Status::ok) throw Error(Status::transport, "cannot connect to its peers: " + failure_text());
      const auto lost = [this](int peer) {
        return peers_.is_doubted(peer) ? !alive(peer) : peers_.is_lost(peer) || has_ended(peer, now_ns());
      };
      if (const auto at = std::find_if(silent.begin(), silent.end(), lost); at != silent.end()) {
        throw Error(Status::peer_lost, "rank " + std::to_string(*at) + " was lost while all connect: " + failure_text(),
                    *at);
      }
      if (std::erase_if(silent, has_come) != 0) deadline.restart();
      if (deadline.is_over()) fail_to_connect(silent, options.timeout_s);
      sleep_once(
          1000, [](void*) { return true; }, nullptr);
    }
  }

  [[noreturn]] static void fail_to_connect(const std::vector<int>& silent, double timeout_s) {
    const std::string within = " within " + std::to_string(static_cast<std::int64_t>(timeout_s * 1000)) + " ms";
    if (silent.empty()) throw Error(Status::timeout, "its greetings have not left for its peers" + within);
    std::string ranks;
    for (const int peer : silent) ranks += (ranks.empty() ? "" : ", ") + std::to_string(peer);
    throw Error(Status::timeout,
                "has not heard of rank" + std::string(silent.size() > 1 ? "s " : " ") + ranks + " over every engine" +
                    within + "; a firewall, or a route in one direction only?",
                silent.front());
  }
};

}  // namespace torii::transports
