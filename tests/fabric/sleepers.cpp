// SPDX-License-Identifier: Apache-2.0
// The scenarios of ranks that sleep: who is woken, who is not, and that nothing is slept through.
#include <sys/resource.h>
#include <time.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/forms.hpp"
#include "tests/fabric/places.hpp"
#include "tests/fabric/scenarios.hpp"

namespace torii::tests {
namespace {

/// What sleep() asks of a rank that waits for a word.
struct Sleeper {
  Stage& stage;
  std::uint64_t offset;
  std::uint64_t awaited;
  static bool is_idle(void* data) {
    auto& self = *static_cast<Sleeper*>(data);
    (void)self.stage.transport().progress();
    return load_word(self.stage.at(self.offset)) != self.awaited;
  }
};

/// How often the calling thread gave its CPU away because it had to wait.
long waits_of_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

/// Rank 0 puts in each form while the others sleep for seconds; they wake at once, or, where the transport does not
/// promise that, at the end of a step.
void sleepers(Stage& stage) {
  constexpr std::int64_t kWakesWithinNs = 3'000'000'000;  // one that does not wake sleeps for four
  const bool wakes = stage.transport().capabilities().wakes_on_put;
  for (std::uint64_t time = 1; time <= 2 * std::size(kForms); ++time) {
    stage.meet();
    const std::size_t bytes = time % 2 == 0 ? 40 : 56;
    const Form form = kForms[time / 2 % std::size(kForms)];
    if (stage.rank() == 0) {
      const timespec nap = {0, 60'000'000};
      nanosleep(&nap, nullptr);
      for (int peer = 1; peer < stage.ranks(); ++peer) {
        std::byte* const source = stage.at(of_rank(kSources, peer)) + kLineBytes;
        const std::int64_t now = now_ns();
        std::memcpy(source, &now, sizeof(now));
        Put put;
        put.peer = peer;
        put.source = source;
        put.bytes = bytes;
        put.target_offset = payload_offset(form, 0);
        put.signal_offset = of_rank(kSlots, 0);
        put.signal = time;
        put.line_before = form == Form::slot_with_line_before;
        stage.expect(stage.transport().put(put), "a put to a sleeper");
      }
      continue;
    }
    Sleeper sleeper{stage, of_rank(kSlots, 0), time};
    stage.await("a put to a sleeper", [&] {
      stage.transport().sleep_once(wakes ? 4'000'000 : 1000, &Sleeper::is_idle, &sleeper);
      return !Sleeper::is_idle(&sleeper);
    });
    const std::int64_t woke = now_ns();
    std::int64_t put_at = 0;
    std::memcpy(&put_at, stage.at(payload_offset(form, 0)), sizeof(put_at));
    if (woke - put_at > kWakesWithinNs) {
      throw std::runtime_error("a sleeper woke " + std::to_string((woke - put_at) / 1'000'000) + " ms after the put");
    }
  }
}

/// Two threads of each rank wait, as in calls on two teams, and each takes in what comes for both. In odd rounds both
/// sleep. In even rounds the first one polls until the other has its word, too, and mostly takes it in. Where puts wake
/// a rank a sleep lasts for seconds, and nothing else comes meanwhile, so a word that is slept through shows.
void two_sleepers(Stage& stage) {
  constexpr std::int64_t kWakesWithinNs = 3'000'000'000;
  const Capabilities& able = stage.transport().capabilities();
#if defined(__SANITIZE_THREAD__)
  // A provider stores words with plain stores, on whichever thread takes them in. The other thread reads such a word
  // for equality only, so half of one is never taken for it; but the sanitizer cannot know.
  if (!able.mapped) return;
#endif
  const int most_us = able.wakes_on_put ? 4'000'000 : 1000;
  const timespec nap = {0, 60'000'000};
  for (std::uint64_t time = 1; time <= 4; ++time) {
    stage.meet();
    if (stage.rank() == 0) {
      for (const int turn : {0, 1}) {
        const int thread = time % 2 == 0 ? turn : 1 - turn;
        nanosleep(&nap, nullptr);
        for (int peer = 1; peer < stage.ranks(); ++peer) {
          stage.expect(stage.transport().put_word(peer, of_rank(kSlots, thread), time), "a word to two sleepers");
        }
      }
      for (int peer = 1; peer < stage.ranks(); ++peer) {
        stage.await("two sleepers", [&] { return load_word(stage.at(credit_offset(peer, 2))) == time; });
      }
      continue;
    }
    std::string trouble[2];
    const auto wait = [&](int thread) {
      Sleeper sleeper{stage, of_rank(kSlots, thread), time};
      const bool polls = thread == 0 && time % 2 == 0;
      const std::int64_t begun_ns = now_ns();
      try {
        stage.await("a word to one of two sleepers", [&] {
          if (!polls) stage.transport().sleep_once(most_us, &Sleeper::is_idle, &sleeper);
          return !Sleeper::is_idle(&sleeper) && (!polls || load_word(stage.at(of_rank(kSlots, 1))) == sleeper.awaited);
        });
      } catch (const std::exception& error) {
        trouble[thread] = error.what();
      }
      const std::int64_t waited_ns = now_ns() - begun_ns;
      if (waited_ns > kWakesWithinNs) {
        trouble[thread] = "thread " + std::to_string(thread) + " of two waited " + std::to_string(waited_ns) + " ns";
      }
    };
    std::thread first(wait, 0);
    const timespec order = {0, 20'000'000};
    nanosleep(&order, nullptr);
    wait(1);
    first.join();
    for (const std::string& text : trouble) {
      if (!text.empty()) throw std::runtime_error(text);
    }
    stage.expect(stage.transport().put_word(0, credit_offset(stage.rank(), 2), time), "an answer of two sleepers");
  }
}

/// A rank to which nothing is put sleeps, also after much has come and gone. The kernel says so: a thread that comes
/// back at once may lose its CPU for as long as a sleep takes. How long sleeps are is the subject of test_doorbell.cpp.
void rest(Stage& stage) {
  // Words by which others have met, and layers that refuse at random and hold things back, wake it at first.
  constexpr std::int64_t kWakeMostNs = 5'000'000'000;
  constexpr int kSleeps = 20;
  for (int time = 0; time < 10; ++time) stage.meet();
  const auto looks_in_vain = [](void* data) {
    (void)static_cast<Stage*>(data)->transport().progress();
    return true;
  };
  int sleeps = 0;
  for (const std::int64_t first_ns = now_ns(); now_ns() - first_ns < kWakeMostNs && sleeps < kSleeps;) {
    const long before = waits_of_thread();
    stage.transport().sleep_once(1000, looks_in_vain, &stage);
    if (waits_of_thread() != before) ++sleeps;
  }
  if (sleeps < kSleeps) throw std::runtime_error("a rank to which nothing is put cannot sleep");
  stage.meet();
}

}  // namespace torii::tests
