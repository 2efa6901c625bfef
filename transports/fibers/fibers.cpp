// SPDX-License-Identifier: Apache-2.0
// Turns of fibers, and their switches.
#include "transports/fibers/fibers.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace torii::fibers {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
/// Far from every descriptor of the system.
constexpr int kFirstDescriptor = 1 << 24;
/// The time between two points of a fiber.
constexpr Time kWorkNs = 20;

/// The exceptions that a thread has caught and not yet let go of. g++ keeps them by thread, and a fiber that gives its
/// thread away inside a handler has to find its own again.
struct Exceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

Exceptions& exceptions_of_thread() noexcept { return *reinterpret_cast<Exceptions*>(abi::__cxa_get_globals()); }

/// Stacks of fibers that have ended serve again: to map one anew for each fiber takes longer than its history.
class Stacks {
 public:
  boost::context::stack_context allocate() {
    if (spare_.empty()) return boost::context::protected_fixedsize_stack(kStackBytes).allocate();
    const boost::context::stack_context stack = spare_.back();
    spare_.pop_back();
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) { spare_.push_back(stack); }

 private:
  std::vector<boost::context::stack_context> spare_;
};

Stacks& stacks() {
  static auto* const all = new Stacks;  // fibers may end after any static object
  return *all;
}

/// The allocator that boost copies into each fiber.
struct PooledStack {
  boost::context::stack_context* taken;
  boost::context::stack_context allocate() { return *taken = stacks().allocate(); }
  void deallocate(boost::context::stack_context& stack) { stacks().deallocate(stack); }
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

}  // namespace

struct Fibers::Fiber {
  std::function<void()> body;
  FiberFaults faults;
  boost::context::fiber context;
  boost::context::stack_context stack;
  Exceptions exceptions;
  std::uint64_t points = 0;
  std::uint64_t yields = 0;      ///< in a row
  std::uint64_t yielded_at = 0;  ///< the point of the last one
  std::uint64_t ticket = 0;
  std::uint64_t grants_left = 0;    ///< before memory is refused
  std::uint64_t refusals_left = 0;  ///< of memory
  std::uint64_t refusals = 0;
  bool has_ended = false;
  bool is_dead = false;
  Time gone_at = 0;
  const void* waits_on = nullptr;  ///< a word
  const pollfd* polls = nullptr;
  std::size_t polls_count = 0;
  void* fake_stack = nullptr;  ///< of the address sanitizer
};

struct Fibers::Main {
  boost::context::fiber context;
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
};

Fibers::Fibers(std::uint64_t seed) : RandomCpus(~seed), random_(seed), main_(std::make_unique<Main>()) {}

Fibers::~Fibers() {
  for (auto& one : fibers_) {
    // To unwind a fiber throws through it, and much of what it runs is noexcept.
    if (one->context) (void)new boost::context::fiber(std::move(one->context));
  }
}

int Fibers::add(std::function<void()> body, const FiberFaults& faults) {
  const int number = static_cast<int>(fibers_.size());
  fibers_.push_back(std::make_unique<Fiber>());
  Fiber& one = *fibers_.back();
  one.body = std::move(body);
  one.faults = faults;
  one.context =
      boost::context::fiber(std::allocator_arg, PooledStack{&one.stack}, [this, &one](boost::context::fiber&& main) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(nullptr, &main_->stack_bottom, &main_->stack_bytes);
#endif
        main_->context = std::move(main);
        one.body();
        one.body = nullptr;
        one.has_ended = true;
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(nullptr, main_->stack_bottom, main_->stack_bytes);
#endif
        return std::move(main_->context);
      });
  push(now_, number, one.ticket);
  return number;
}

bool Fibers::is_dead(int number) const noexcept { return fiber(number).is_dead; }
void Fibers::stop_in(std::uint64_t points, std::optional<Time> stops_for) noexcept {
  Fiber& one = fiber(current_);
  (stops_for ? one.faults.stops_at : one.faults.dies_at) = one.points + points;
  if (stops_for) one.faults.stops_for = *stops_for;
}
void Fibers::refuse_memory_in(std::uint64_t request, std::uint64_t times) noexcept {
  fiber(current_).grants_left = request - 1;
  fiber(current_).refusals_left = times;
}
std::uint64_t Fibers::refusals(int number) const noexcept { return fiber(number).refusals; }
std::uint64_t Fibers::points(int number) const noexcept { return fiber(number).points; }

bool Fibers::is_gone(int number, Time ago) const noexcept {
  const Fiber& one = fiber(number);
  return (one.has_ended || one.is_dead) && now_ - one.gone_at >= ago;
}

void Fibers::push(Time time, int number, std::uint64_t ticket) {
  turns_ahead_.push_back({std::max(time, now_), order_++, number, ticket});
  std::push_heap(turns_ahead_.begin(), turns_ahead_.end());
}

void Fibers::after(Time delay, std::function<void()> event) {
  std::size_t place = events_.size();
  if (free_events_.empty()) {
    events_.push_back(std::move(event));
  } else {
    place = free_events_.back();
    free_events_.pop_back();
    events_[place] = std::move(event);
  }
  push(now_ + delay, -1, place);
}

End Fibers::run(std::uint64_t turns_most) {
  const auto is_gone_now = [](const std::unique_ptr<Fiber>& one) { return one->has_ended || one->is_dead; };
  while (!std::ranges::all_of(fibers_, is_gone_now)) {
    if (turns_ahead_.empty()) return End::stuck;
    if (turns_ >= turns_most) return End::endless;
    std::pop_heap(turns_ahead_.begin(), turns_ahead_.end());
    const Turn turn = turns_ahead_.back();
    turns_ahead_.pop_back();
    now_ = std::max(now_, turn.time);
    if (turn.fiber < 0) {
      const std::function<void()> event = std::exchange(events_[turn.ticket], nullptr);
      free_events_.push_back(turn.ticket);
      event();
      continue;
    }
    if (const Fiber& one = fiber(turn.fiber); one.ticket != turn.ticket || one.has_ended || one.is_dead) continue;
    ++turns_;
    digest_ = mix(mix(digest_, static_cast<std::uint64_t>(now_)), static_cast<std::uint64_t>(turn.fiber));
    resume(turn.fiber);
  }
  return End::all_ended;
}

void Fibers::resume(int number) {
  Fiber& one = fiber(number);
  ++one.ticket;
  current_ = number;
  const Exceptions own = std::exchange(exceptions_of_thread(), one.exceptions);
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, static_cast<const std::byte*>(one.stack.sp) - one.stack.size,
                                 one.stack.size);
#endif
  one.context = std::move(one.context).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  one.exceptions = std::exchange(exceptions_of_thread(), own);
  current_ = -1;
  if (!one.has_ended && !one.is_dead) return;
  one.gone_at = now_;
  if (ended_) ended_(number);
}

void Fibers::suspend_until(Time time) noexcept {
  Fiber& one = fiber(current_);
  push(time, current_, one.ticket);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&one.fake_stack, main_->stack_bottom, main_->stack_bytes);
#endif
  main_->context = std::move(main_->context).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(one.fake_stack, &main_->stack_bottom, &main_->stack_bytes);
#endif
}

bool Fibers::apply_faults() noexcept {
  Fiber& one = fiber(current_);
  ++one.points;
  if (one.points == one.faults.dies_at) {
    one.is_dead = true;
    note(current_, "dies");
    suspend_until(now_);  // and nobody resumes it
  }
  if (one.points == one.faults.stops_at) {
    note(current_, "is stopped");
    suspend_until(now_ + one.faults.stops_for);
    note(current_, "runs again");
    return true;
  }
  return false;
}

void Fibers::pass() noexcept {
  if (current_ < 0 || apply_faults()) return;
  constexpr std::uint64_t kPassesPerSwitch = 8;
  if (one_in(kPassesPerSwitch)) return suspend_until(now_ + draw(kWorkNs, 5 * kMicrosecond));
  now_ += kWorkNs;
}

Time Fibers::draw(Time least, Time most) noexcept {
  return least + static_cast<Time>(random_() % static_cast<std::uint64_t>(most - least + 1));
}

int Fibers::add_descriptor() {
  readable_.push_back(false);
  return kFirstDescriptor + static_cast<int>(readable_.size()) - 1;
}

bool Fibers::is_readable(const pollfd& entry) const noexcept {
  return entry.fd >= kFirstDescriptor && readable_[static_cast<std::size_t>(entry.fd - kFirstDescriptor)];
}

void Fibers::set_readable(int descriptor, bool readable) noexcept {
  readable_[static_cast<std::size_t>(descriptor - kFirstDescriptor)] = readable;
  if (!readable) return;
  for (std::size_t number = 0; number < fibers_.size(); ++number) {
    const Fiber& one = *fibers_[number];
    const auto is_it = [=](const pollfd& entry) { return entry.fd == descriptor; };
    if (std::any_of(one.polls, one.polls + one.polls_count, is_it)) wake(static_cast<int>(number));
  }
}

/// A sleeper takes a while to wake.
void Fibers::wake(int number) noexcept {
  Fiber& one = fiber(number);
  one.waits_on = nullptr;
  one.polls_count = 0;
  ++one.ticket;
  push(now_ + draw(500, 60 * kMicrosecond), number, one.ticket);
}

std::int64_t Fibers::now_ns() noexcept {
  if (current_ < 0) return now_;
  // Whoever looks at the clock until it shows a time comes to an end, and lets others run meanwhile.
  constexpr std::uint64_t kLooksPerPass = 16;
  if (one_in(kLooksPerPass)) pass();
  now_ += kWorkNs;
  const FiberFaults& faults = fiber(current_).faults;
  return now_ + faults.clock_offset + static_cast<Time>(faults.clock_drift * static_cast<double>(now_));
}

void Fibers::yield() noexcept {
  if (current_ < 0 || apply_faults()) return;
  // Whoever yields for long waits for long: his turns become rarer, or a second of it would take millions of them.
  constexpr std::uint64_t kPointsBetween = 32;
  constexpr std::uint64_t kYieldsPerStep = 256;
  Fiber& one = fiber(current_);
  one.yields = one.points - one.yielded_at < kPointsBetween ? one.yields + 1 : 0;
  one.yielded_at = one.points;
  suspend_until(now_ + draw(100, 2 * kMicrosecond) * static_cast<Time>(1 + one.yields / kYieldsPerStep));
}

void Fibers::sleep(std::int64_t ns) noexcept {
  if (current_ < 0 || apply_faults()) return;
  suspend_until(now_ + ns + draw(0, 60 * kMicrosecond));
}

void Fibers::wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept {
  if (current_ < 0 || apply_faults() || word.load(std::memory_order_acquire) != value) return;
  Fiber& one = fiber(current_);
  one.waits_on = &word;
  suspend_until(now_ + most_ns + draw(0, 60 * kMicrosecond));
  one.waits_on = nullptr;
}

void Fibers::wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  for (std::size_t number = 0; number < fibers_.size(); ++number) {
    if (fibers_[number]->waits_on == &word) wake(static_cast<int>(number));
  }
  pass();
}

int Fibers::poll(pollfd* entries, std::size_t count, std::int64_t most_ns) noexcept {
  const auto ready = [&] {
    int found = 0;
    for (std::size_t i = 0; i < count; ++i) {
      entries[i].revents = is_readable(entries[i]) ? POLLIN : short{0};
      found += entries[i].revents != 0 ? 1 : 0;
    }
    return found;
  };
  if (current_ < 0 || apply_faults()) return ready();
  if (const int found = ready()) return found;
  Fiber& one = fiber(current_);
  one.polls = entries;
  one.polls_count = count;
  suspend_until(now_ + most_ns + draw(0, 60 * kMicrosecond));
  one.polls_count = 0;
  return ready();
}

bool Fibers::grants(std::size_t bytes) noexcept {
  if (current_ < 0) return true;
  Fiber& one = fiber(current_);
  if (one.refusals_left == 0) return true;
  if (one.grants_left != 0) {
    --one.grants_left;
    return true;
  }
  --one.refusals_left;
  ++one.refusals;
  note(current_, "is refused " + std::to_string(bytes) + " bytes of shared memory");
  return false;
}

}  // namespace torii::fibers
