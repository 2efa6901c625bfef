// SPDX-License-Identifier: Apache-2.0
// The scenarios: sizes and places of puts, thousands in flight, words, sources that are free again.
#include "tests/fabric/scenarios.hpp"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <random>
#include <stdexcept>

#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/forms.hpp"
#include "tests/fabric/places.hpp"

namespace torii::tests {
namespace {

std::string text(Form form, std::size_t bytes, int engine, int sender) {
  return "form " + std::to_string(static_cast<int>(form)) + ", " + std::to_string(bytes) + " bytes, engine " +
         std::to_string(engine) + ", from rank " + std::to_string(sender);
}

/// One put from every rank to every other, read and answered.
void exchange_once(Stage& stage, Form form, std::size_t bytes, int engine, std::uint64_t number) {
  const std::uint64_t signal = signal_word(0xabcd0000U + static_cast<std::uint32_t>(form), number);
  const auto key = [&](int from, int to) {
    return stage.seed() + number * 64 + static_cast<std::uint64_t>(from * 8 + to);
  };
  std::vector<std::vector<std::byte>> outside(static_cast<std::size_t>(stage.ranks()));
  for (int peer = 0; peer < stage.ranks(); ++peer) {
    if (peer == stage.rank()) continue;
    std::byte* source = stage.at(of_rank(kSources, peer)) + kLineBytes;
    if (form == Form::from_outside) {
      outside[static_cast<std::size_t>(peer)].resize(bytes + 1);
      source = outside[static_cast<std::size_t>(peer)].data();
    }
    fill(source, bytes, key(stage.rank(), peer));
    Put put;
    put.peer = peer;
    put.engine = engine;
    put.source = source;
    put.bytes = bytes;
    put.target_offset = payload_offset(form, stage.rank());
    put.signal_offset = of_rank(kSlots, stage.rank());
    put.signal = signal;
    put.line_before = form == Form::slot_with_line_before;
    stage.expect(stage.transport().put(put), text(form, bytes, engine, stage.rank()));
    if (put.is_in_line()) std::memset(source, 0xee, bytes);  // it has left
  }
  for (int peer = 0; peer < stage.ranks(); ++peer) {
    if (peer == stage.rank()) continue;
    const std::string what = text(form, bytes, engine, peer);
    stage.await(what, [&] { return load_word(stage.at(of_rank(kSlots, peer))) == signal; });
    std::byte* const payload = stage.at(payload_offset(form, peer));
    check(payload, bytes, key(peer, stage.rank()), what);
    if (form != Form::in_line || bytes <= kInlineBytes - 8) {
      const bool untouched = form == Form::in_line || std::all_of(payload + bytes, payload + bytes + kGuard,
                                                                  [](std::byte each) { return each == std::byte{0}; });
      if (!untouched) throw std::runtime_error(what + ": bytes behind the payload were written");
    }
    std::memset(payload, 0, bytes);
    stage.expect(stage.transport().put_word(peer, credit_offset(stage.rank(), 0), number), "a credit");
  }
  for (int peer = 0; peer < stage.ranks(); ++peer) {
    if (peer == stage.rank()) continue;
    stage.await("a credit", [&] { return load_word(stage.at(credit_offset(peer, 0))) == number; });
  }
  stage.await("drained", [&] { return stage.transport().drained(); });
}

void sizes(Stage& stage) {
  std::uint64_t number = 0;
  for (int engine = 0; engine < stage.transport().capabilities().engines; ++engine) {
    for (const std::size_t bytes : {0, 1, 8, 48, 49, 56, 57, 4096, 65536, 1048576}) {
      for (const Form form : kForms) {
        if (form == Form::in_line && bytes > kInlineBytes) continue;
        exchange_once(stage, form, bytes, engine, ++number);
      }
    }
  }
}

/// A put to the own rank is done when it returns.
void own_rank(Stage& stage) {
  std::byte* const source = stage.at(kSources) + kLineBytes;
  fill(source, 100, stage.seed());
  Put put;
  put.peer = stage.rank();
  put.source = source;
  put.bytes = 100;
  put.target_offset = kLandings;
  put.signal_offset = kSlots;
  put.signal = 5;
  stage.expect(stage.transport().put(put), "a put to the own rank");
  stage.expect(stage.transport().put_word(stage.rank(), kSlots + 8, 6), "a word to the own rank");
  if (load_word(stage.at(kSlots)) != 5 || load_word(stage.at(kSlots + 8)) != 6) {
    throw std::runtime_error("a put to the own rank is not there when it returns");
  }
  check(stage.at(kLandings), 100, stage.seed(), "a put to the own rank");
  if (stage.transport().mapped(stage.rank(), 0) != stage.at(0)) throw std::runtime_error("the own arena is elsewhere");
}

constexpr std::uint64_t kFloodSlots = 64;
constexpr std::size_t kFloodSlotBytes = 8192;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kFloodMessages = 400;
#else
constexpr std::uint64_t kFloodMessages = 1500;  // of every rank to every other
#endif

/// What message n from a rank to another looks like: known to both sides.
struct Message {
  Form form;
  std::size_t bytes;
  std::uint64_t key;
  Message(std::uint64_t seed, int from, int to, std::uint64_t number) {
    std::mt19937_64 random(seed * 1'000'003 + number * 64 + static_cast<std::uint64_t>(from * 8 + to));
    form = kForms[random() % std::size(kForms)];
    bytes = random() % (form == Form::in_line ? kInlineBytes + 1 : random() % 4 == 0 ? kFloodSlotBytes - 64 : 200);
    key = random();
  }
  std::uint64_t slot(int sender, std::uint64_t number) const {
    return of_rank(kSlots, sender) + number % kFloodSlots * kFloodSlotBytes;
  }
  std::uint64_t payload(int sender, std::uint64_t number) const {
    if (form == Form::landing) return of_rank(kLandings, sender) + number % kFloodSlots * kFloodSlotBytes;
    return slot(sender, number) + (form == Form::in_line ? sizeof(std::uint64_t) : kLineBytes);
  }
};

/// One direction of the flood.
struct Flow {
  int peer;
  std::uint64_t sent = 0;
  std::uint64_t taken = 0;
  std::vector<std::byte> outside = std::vector<std::byte>(kFloodSlots * kFloodSlotBytes);
};

bool send_one(Stage& stage, Flow& flow, int& engine) {
  const std::uint64_t number = flow.sent;
  if (number == kFloodMessages) return false;
  const std::uint64_t slot = number % kFloodSlots;
  // Freed slot by slot: the credit of message n lets message n + slots go.
  if (number >= kFloodSlots && load_word(stage.at(credit_offset(flow.peer, slot))) != number - kFloodSlots + 1) {
    return false;
  }
  const Message message(stage.seed(), stage.rank(), flow.peer, number);
  std::byte* base = message.form == Form::from_outside ? flow.outside.data() : stage.at(of_rank(kSources, flow.peer));
  std::byte* const source = base + slot * kFloodSlotBytes + kLineBytes;
  fill(source, message.bytes, message.key);
  Put put;
  put.peer = flow.peer;
  put.engine = engine;
  put.source = source;
  put.bytes = message.bytes;
  put.target_offset = message.payload(stage.rank(), number);
  put.signal_offset = message.slot(stage.rank(), number);
  put.signal = signal_word(77, number + 1);
  put.line_before = message.form == Form::slot_with_line_before;
  stage.expect(stage.transport().put(put), "message " + std::to_string(number));
  if (put.is_in_line()) std::memset(source, 0xee, message.bytes);  // it has left
  engine = (engine + 1) % stage.transport().capabilities().engines;
  ++flow.sent;
  return true;
}

bool take_one(Stage& stage, Flow& flow) {
  const std::uint64_t number = flow.taken;
  if (number == kFloodMessages) return false;
  const Message message(stage.seed(), flow.peer, stage.rank(), number);
  if (load_word(stage.at(message.slot(flow.peer, number))) != signal_word(77, number + 1)) return false;
  check(stage.at(message.payload(flow.peer, number)), message.bytes, message.key,
        "message " + std::to_string(number) + " from rank " + std::to_string(flow.peer) + ", form " +
            std::to_string(static_cast<int>(message.form)));
  stage.expect(stage.transport().put_word(flow.peer, credit_offset(stage.rank(), number % kFloodSlots), number + 1),
               "a credit");
  ++flow.taken;
  return true;
}

/// Thousands of puts of all forms between all pairs at once, over all engines, with as many under way as slots allow.
void flood(Stage& stage) {
  std::vector<Flow> flows;
  for (int peer = 0; peer < stage.ranks(); ++peer) {
    if (peer != stage.rank()) flows.push_back({peer});
  }
  int engine = 0;
  stage.await("the flood", [&] {
    bool done = true;
    for (Flow& flow : flows) {
      while (send_one(stage, flow, engine)) {
      }
      while (take_one(stage, flow)) {
      }
      done = done && flow.sent == kFloodMessages && flow.taken == kFloodMessages;
    }
    return done;
  });
  stage.await("drained", [&] { return stage.transport().drained(); });
  // What outlives this scope must not be read any more; the credits of the last messages are awaited by the meeting.
}

/// Words go round the ranks; each rank adds one.
void words(Stage& stage) {
  constexpr std::uint64_t kRounds = 200;
  const int next = (stage.rank() + 1) % stage.ranks();
  const auto ranks = static_cast<std::uint64_t>(stage.ranks());
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t offset = kSlots + round % 7 * 8;  // words need no line of their own
    const std::uint64_t value = stage.seed() + round * ranks + static_cast<std::uint64_t>(stage.rank());
    if (stage.rank() != 0) {
      stage.await("a word", [&] { return load_word(stage.at(offset)) == value; });
    }
    stage.expect(stage.transport().put_word(next, offset, value + 1), "a word");
    if (stage.rank() == 0) {
      stage.await("the word of the round", [&] { return load_word(stage.at(offset)) == value + ranks; });
    }
  }
}

/// A source may be overwritten as soon as the transport is drained. One outside the arena may even be given back: other
/// pages stand at its address the next time, and whatever a provider keeps of registrations, what arrives are their
/// bytes.
void drained_sources(Stage& stage) {
  constexpr int kTimes = 8;
  constexpr std::size_t kBytes = 1048576;
  const int next = (stage.rank() + 1) % stage.ranks();
  const int previous = (stage.rank() + stage.ranks() - 1) % stage.ranks();
  const auto key = [&](std::uint64_t time, int of) {
    return stage.seed() + 17 * time + static_cast<std::uint64_t>(of);
  };
  const auto map_pages = [](void* at) {
    void* const pages =
        mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
    if (pages == MAP_FAILED) throw std::runtime_error("cannot map a source");
    return pages;
  };
  void* const outside = map_pages(nullptr);
  for (std::uint64_t time = 1; time <= kTimes; ++time) {
    const bool is_outside = time % 2 == 0;
    std::byte* const source = is_outside ? static_cast<std::byte*>(outside) : stage.at(of_rank(kSources, stage.rank()));
    fill(source, kBytes, key(time, stage.rank()));
    Put put;
    put.peer = next;
    put.source = source;
    put.bytes = kBytes;
    put.target_offset = of_rank(kLandings, stage.rank());
    put.signal_offset = of_rank(kSlots, stage.rank());
    put.signal = time;
    stage.expect(stage.transport().put(put), "a large put");
    stage.await("drained", [&] { return stage.transport().drained(); });
    if (is_outside) {
      map_pages(outside);
    } else {
      std::memset(source, 0xee, kBytes);
    }
    stage.await("a large put", [&] { return load_word(stage.at(of_rank(kSlots, previous))) == time; });
    check(stage.at(of_rank(kLandings, previous)), kBytes, key(time, previous), "a source that was overwritten");
    stage.meet();
  }
  munmap(outside, kBytes);
}

}  // namespace

void PrintTo(const NamedScenario& scenario, std::ostream* stream) { *stream << scenario.name; }

const std::vector<NamedScenario>& scenarios() {
  static const std::vector<NamedScenario> all = {{"sizes", sizes},
                                                 {"own_rank", own_rank},
                                                 {"flood", flood},
                                                 {"words", words},
                                                 {"drained", drained_sources},
                                                 {"sleepers", sleepers},
                                                 {"two_sleepers", two_sleepers},
                                                 {"rest", rest},
                                                 {"silent_peer", silent_peer}};
  return all;
}

void peer_dies(Stage& stage, const std::function<void()>& die) {
  const int victim = stage.ranks() - 1;
  stage.meet();
  if (stage.rank() == victim) die();
  const std::int64_t died = now_ns();
  while (stage.transport().alive(victim)) {
    stage.expect(stage.transport().progress(), "progress after a death");
    const timespec nap = {0, 1'000'000};
    nanosleep(&nap, nullptr);
    if (now_ns() - died > 5'000'000'000) throw std::runtime_error("the death of a peer is not noticed");
  }
  // The others go on: a ring of words among them.
  for (std::uint64_t round = 1; round <= 10; ++round) {
    for (int peer = 0; peer < victim; ++peer) {
      stage.expect(stage.transport().put_word(peer, credit_offset(stage.rank(), 1), round), "a word after a death");
    }
    for (int peer = 0; peer < victim; ++peer) {
      if (!stage.transport().alive(peer)) throw std::runtime_error("a living peer is taken for dead");
      stage.await("a survivor's word", [&] { return load_word(stage.at(credit_offset(peer, 1))) >= round; });
    }
  }
}

}  // namespace torii::tests
