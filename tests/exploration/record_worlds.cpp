// SPDX-License-Identifier: Apache-2.0
// Writers and readers of versioned data. Instrumented as the code under test is.
#include "tests/exploration/record_worlds.hpp"

#include <array>
#include <cstring>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>

#include "api/team/call_records.hpp"
#include "api/team/refused_calls.hpp"
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
  static Standing standing(std::uint64_t sequence) {
    Standing told;
    told.sequence = sequence;
    told.count = sequence * 3;
    told.kind = sequence * 5;
    told.root = static_cast<std::int64_t>(sequence * 7);
    return told;
  }
  void write() override {
    for (const std::uint64_t sequence : {std::uint64_t{1}, 1 + kSharedRecords}) {
      write_record(control(), standing(sequence));
    }
  }
  void read() override {
    for (const std::uint64_t sequence : {std::uint64_t{1}, 1 + kSharedRecords}) {
      const std::optional<Standing> found = read_record(control(), sequence);
      if (!found) continue;
      const Standing right = standing(sequence);
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

/// Threads of one process: one changes the adopted pages, first in the same block and then in a larger one; the other
/// one looks up an address that is always among them, each time elsewhere in the arena.
class AdoptedAddresses final : public TwoSides {
  using Table = shared_memory::AddressTable;
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
  static constexpr std::uintptr_t kAddress = 0x5000;
  static constexpr Table::Entry kFirst[] = {{{0x4000, 0x6000}, 0x100000}};
  static constexpr Table::Entry kSecond[] = {{{0x1000, 0x2000}, 0x200000}, {{0x5000, 0x9000}, 0x300000}};
  static constexpr Table::Entry kThird[] = {{{0x3000, 0x7000}, 0x400000}};
  static constexpr std::size_t kMoreThanItsRoom = 17;

  static Table& table() { return *reinterpret_cast<Table*>(ground()); }
  void set_up(Explorer& explorer) override {
    TwoSides::set_up(explorer);
    auto* const room = new (ground() + kGroundBytes / 2) Room;
    std::pmr::memory_resource* const before = std::pmr::set_default_resource(room);
    new (ground()) Table;
    std::pmr::set_default_resource(before);
    table().reserve(1);
    table().set(kFirst);
  }
  void write() override {
    table().set(kSecond);
    table().reserve(kMoreThanItsRoom);
    table().set(kThird);
  }
  void read() override {
    const std::int64_t found = table().find(reinterpret_cast<const void*>(kAddress), 8).value_or(0);
    if (found != 0x101000 && found != 0x300000 && found != 0x402000) {
      explorer().fail("an adopted address is at " + std::to_string(found) + " of the arena");
    }
  }
};

}  // namespace

std::unique_ptr<World> adopted_addresses() { return std::make_unique<AdoptedAddresses>(); }
std::unique_ptr<World> call_records() { return std::make_unique<CallRecords>(); }
std::unique_ptr<World> refusal_notices() { return std::make_unique<RefusalNoticesInOnePlace>(); }

}  // namespace torii::exploration
