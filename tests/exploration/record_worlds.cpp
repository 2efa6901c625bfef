// SPDX-License-Identifier: Apache-2.0
// Writers and readers of versioned data. Instrumented as the code under test is.
#include "tests/exploration/record_worlds.hpp"

#include <cstring>
#include <optional>
#include <string>

#include "api/team/call_records.hpp"
#include "api/team/refused_calls.hpp"
#include "tests/exploration/station.hpp"

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

}  // namespace

std::unique_ptr<World> call_records() { return std::make_unique<CallRecords>(); }
std::unique_ptr<World> refusal_notices() { return std::make_unique<RefusalNoticesInOnePlace>(); }

}  // namespace torii::exploration
