// SPDX-License-Identifier: Apache-2.0
// Writers and readers of versioned data. Instrumented as the code under test is.
#include "tests/exploration/record_worlds.hpp"

#include <array>
#include <cstring>
#include <memory_resource>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "api/agreement/call_records.hpp"
#include "api/agreement/refused_calls.hpp"
#include "tests/exploration/station.hpp"
#include "transports/shared_memory/address_table.hpp"

namespace torii::exploration {
namespace {

/// Two ranks: rank 0 writes, rank 1 reads.
class TwoSides : public World {
 public:
  int ranks() const override { return 2; }
  void set_up(Explorer& explorer) override { Station::instance().set_up(explorer, ranks()); }
  void run(int rank) override {
    if (rank == 0) {
      write();
    } else {
      read();
    }
  }

 protected:
  virtual void write() = 0;
  virtual void read() = 0;
  static std::byte* ground() { return Station::instance().ground(0); }
};

class CallRecords final : public TwoSides {
  static_assert(sizeof(TeamControl) <= kGroundBytes);
  static TeamControl& control() { return *reinterpret_cast<TeamControl*>(ground()); }
  static CallSnapshot snapshot(std::uint64_t sequence) {
    CallSnapshot told;
    told.sequence = sequence;
    told.count = sequence * 3;
    told.kind = sequence * 5;
    told.root = static_cast<std::int64_t>(sequence * 7);
    return told;
  }
  void write() override {
    for (const std::uint64_t sequence : {std::uint64_t{1}, 1 + kSharedRecords}) {
      write_record(control(), snapshot(sequence));
    }
  }
  void read() override {
    for (const std::uint64_t sequence : {std::uint64_t{1}, 1 + kSharedRecords}) {
      const std::optional<CallSnapshot> found = read_record(control(), sequence);
      if (!found) continue;
      const CallSnapshot right = snapshot(sequence);
      if (found->count != right.count || found->kind != right.kind || found->root != right.root) {
        explorer().fail("the record of call " + std::to_string(sequence) + " has fields of another call");
      }
    }
  }
};

/// The notice of a run that grows, and then of a later run.
class RefusalNoticesInOnePlace final : public TwoSides {
  static RefusalNotice& place() { return *reinterpret_cast<RefusalNotice*>(ground()); }
  /// Call numbers of run `n`, from 1: none is adjacent to that of another run.
  static constexpr std::uint64_t first_of(std::uint64_t n) { return 10 * n; }
  void write() override {
    RefusedCalls calls;
    write_notice(place(), calls.add(first_of(1), "first"));
    write_notice(place(), calls.add(first_of(1) + 1, "first"));
    // Eight runs later the place is the same.
    for (std::uint64_t i = 1; i < kNotices; ++i) (void)calls.add(first_of(1 + i), "between");
    write_notice(place(), calls.add(first_of(1 + kNotices), "second"));
  }
  void read() override {
    const std::optional<RefusalNotice> notice = read_notice(place());
    if (!notice) return;
    const bool is_first = notice->number == 1;
    const char* const text = is_first ? "first" : "second";
    const std::uint64_t calls = notice->last - notice->first;
    if (notice->first != first_of(notice->number) || calls > (is_first ? 1 : 0) ||
        std::strcmp(notice->text.data(), text) != 0) {
      explorer().fail("a notice has the number of one run and the calls or the text of another");
    }
  }
};

/// Both ranks refuse the same calls, more runs than there are places for notices. The reader must not take any of them
/// for a call that the writer made.
class CallsThatBothRefuse final : public TwoSides {
  static TeamControl& control() { return *reinterpret_cast<TeamControl*>(ground()); }
  /// Run `n` is one call. The runs between are not published, so that two places are written twice and the others
  /// never.
  static constexpr std::uint64_t call_of(std::uint64_t n) { return 10 * n; }
  static constexpr bool is_published(std::uint64_t n) { return n <= 2 || n > kNotices; }
  static constexpr std::uint64_t kRuns = kNotices + 2;
  void write() override {
    RefusedCalls calls;
    for (std::uint64_t run = 1; run <= kRuns; ++run) {
      const RefusalNotice& notice = calls.add(call_of(run), "refused");
      if (!is_published(run)) continue;
      write_notice(control().refusals[run % kNotices], notice);
      control().completed.store(call_of(run), std::memory_order_release);
    }
  }
  void read() override {
    RefusedCalls calls;
    for (std::uint64_t run = 1; run <= kRuns; ++run) {
      if (is_published(run)) (void)calls.add(call_of(run), "refused");
    }
    const std::uint64_t settled = control().completed.load(std::memory_order_acquire);
    if (const auto found = calls.refused_here_alone(control().refusals, settled)) {
      explorer().fail("call " + std::to_string(found->sequence) +
                      " counts as made by the rank that has refused it too");
    }
  }
};

using Addresses = shared_memory::AddressTable;
constexpr std::uintptr_t kLookedUp = 0x5000;
constexpr std::int64_t kBefore = 0x100000;
constexpr std::int64_t kAfter = 0x200000;

/// Entries whose addresses are so far from their offsets.
constexpr Addresses::Entry entry(std::uintptr_t first, std::uintptr_t end, std::int64_t distance) {
  return {{first, end}, static_cast<std::int64_t>(first) + distance};
}
constexpr Addresses::Entry kOne[] = {entry(0x4000, 0x6000, kBefore)};
constexpr Addresses::Entry kTwo[] = {entry(0x1000, 0x2000, kAfter), entry(0x5000, 0x9000, kAfter)};
constexpr Addresses::Entry kSecondOfTwo[] = {entry(0x1000, 0x2000, kBefore), entry(0x5000, 0x9000, kBefore)};
constexpr Addresses::Entry kFirstOfTwo[] = {entry(0x4000, 0x6000, kAfter), entry(0x8000, 0x9000, kAfter)};

/// Threads of one process: one changes the adopted pages; the other one looks up an address that is always among them.
class AdoptedAddresses final : public TwoSides {
 public:
  explicit AdoptedAddresses(AddressChange change) : change_(change) {}

 private:
  class Room final : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      used_ = (used_ + alignment - 1) / alignment * alignment + bytes;
      if (used_ > room_.size()) throw std::bad_alloc();
      return room_.data() + used_ - bytes;
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    alignas(kLineBytes) std::array<std::byte, kGroundBytes / 4> room_;
    std::size_t used_ = 0;
  };

  static Addresses& table() { return *reinterpret_cast<Addresses*>(ground()); }
  void set_up(Explorer& explorer) override {
    TwoSides::set_up(explorer);
    auto* const room = new (ground() + kGroundBytes / 2) Room;
    std::pmr::memory_resource* const before = std::pmr::set_default_resource(room);
    new (ground()) Addresses;
    std::pmr::set_default_resource(before);
    table().reserve(1);
    set(kOne, kSecondOfTwo);
  }
  void write() override {
    constexpr std::size_t kMoreThanItsRoom = 17;
    if (change_ == AddressChange::larger_block) table().reserve(kMoreThanItsRoom);
    set(kTwo, kFirstOfTwo);
  }
  void read() override {
    const std::int64_t found = table().find(reinterpret_cast<const void*>(kLookedUp), 8).value_or(0);
    if (found != static_cast<std::int64_t>(kLookedUp) + kBefore &&
        found != static_cast<std::int64_t>(kLookedUp) + kAfter) {
      explorer().fail("an adopted address is at " + std::to_string(found) + " of the arena");
    }
  }
  void set(std::span<const Addresses::Entry> entries, std::span<const Addresses::Entry> if_moved) {
    table().set(change_ == AddressChange::moves ? if_moved : entries);
  }

  const AddressChange change_;
};

}  // namespace

std::unique_ptr<World> adopted_addresses(AddressChange change) { return std::make_unique<AdoptedAddresses>(change); }
std::unique_ptr<World> call_records() { return std::make_unique<CallRecords>(); }
std::unique_ptr<World> refusal_notices() { return std::make_unique<RefusalNoticesInOnePlace>(); }
std::unique_ptr<World> calls_that_both_refuse() { return std::make_unique<CallsThatBothRefuse>(); }

}  // namespace torii::exploration
