// SPDX-License-Identifier: Apache-2.0
// Steps that ranks take together: values pass unchanged, and what one rank throws all throw, in time.
#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/bootstrap/agreement.hpp"
#include "tests/support/thread_ranks.hpp"

namespace torii::tests {
namespace {

constexpr int kRanks = 4;

template <std::size_t Bytes>
void gather_blob(Bootstrap& bootstrap) {
  std::array<char, Bytes> mine;
  mine.fill(static_cast<char>('a' + bootstrap.rank()));
  const auto all = gather_values(bootstrap, mine);
  for (int rank = 0; rank < bootstrap.ranks(); ++rank) {
    EXPECT_EQ(all[static_cast<std::size_t>(rank)].front(), 'a' + rank);
    EXPECT_EQ(all[static_cast<std::size_t>(rank)].back(), 'a' + rank);
  }
}

/// As in a real set-up: short values, a text, values at the limit of a frame and beyond.
void steps(Bootstrap& bootstrap, int failing_rank, int failing_step, const std::exception_ptr& failure) {
  int step = 0;
  const auto next = [&] {
    if (bootstrap.rank() == failing_rank && step++ == failing_step) std::rethrow_exception(failure);
  };
  next();
  gather_blob<1>(bootstrap);
  next();
  gather_blob<40>(bootstrap);
  next();
  gather_blob<41>(bootstrap);
  next();
  EXPECT_EQ(gather_texts(bootstrap, "").size(), static_cast<std::size_t>(bootstrap.ranks()));
  next();
  gather_blob<3000>(bootstrap);
  next();
}

struct Ended {
  Status status = Status::ok;
  std::string text;
  int rank = -1;
};

/// What each rank throws when those of `failing` throw `failure` before the step.
template <class Body>
std::vector<Ended> run_together(Body&& body) {
  std::vector<Ended> ended(kRanks);
  run_ranks_as_threads(
      kRanks,
      [&](Bootstrap& bootstrap) {
        try {
          EXPECT_EQ(all_or_none(bootstrap,
                                [&](Bootstrap& agreed) {
                                  body(agreed);
                                  return agreed.rank();
                                }),
                    bootstrap.rank());
        } catch (const Error& error) {
          ended[static_cast<std::size_t>(bootstrap.rank())] = {error.status(), error.what(), error.rank()};
        }
        gather_values(bootstrap, 0);  // all have made equally many exchanges
      },
      5);
  return ended;
}

TEST(Agreement, ValuesPass) {
  for (const Ended& one : run_together([](Bootstrap& bootstrap) { steps(bootstrap, -1, 0, {}); })) {
    EXPECT_EQ(one.status, Status::ok) << one.text;
  }
}

TEST(Agreement, OneFailsAtEachStep) {
  for (int step = 0; step < 6; ++step) {
    for (const int failing : {0, 2}) {
      const auto failure = std::make_exception_ptr(Error(Status::unsupported, "no such thing", 7));
      for (const Ended& one : run_together([&](Bootstrap& bootstrap) { steps(bootstrap, failing, step, failure); })) {
        EXPECT_EQ(one.status, Status::unsupported) << "step " << step;
        EXPECT_EQ(one.text, "rank " + std::to_string(failing) + ": no such thing") << "step " << step;
        EXPECT_EQ(one.rank, failing);
      }
    }
  }
}

TEST(Agreement, TheLowestOfSeveralIsNamed) {
  const auto failure = std::make_exception_ptr(std::bad_alloc());
  for (const Ended& one : run_together([&](Bootstrap& bootstrap) {
         if (bootstrap.rank() == 3) throw std::logic_error("never mind");
         steps(bootstrap, 1, 0, failure);
       })) {
    EXPECT_EQ(one.status, Status::no_resource);
    EXPECT_EQ(one.text, "rank 1: out of memory");
  }
}

TEST(Agreement, WhatAllHaveFoundAlikeIsNoRanksOwn) {
  for (const Ended& one : run_together([](Bootstrap&) { throw Error(Status::mismatch, "rank 2 differs", 2); })) {
    EXPECT_EQ(one.status, Status::mismatch);
    EXPECT_EQ(one.text, "rank 2 differs");
    EXPECT_EQ(one.rank, 2);
  }
}

TEST(Agreement, RanksAtDifferentStepsAreTold) {
  for (const Ended& one : run_together([](Bootstrap& bootstrap) {
         if (bootstrap.rank() == 2) {
           gather_blob<8>(bootstrap);
         } else {
           gather_blob<9>(bootstrap);
         }
       })) {
    EXPECT_EQ(one.status, Status::mismatch);
    EXPECT_EQ(one.text, "rank 2 exchanges 8 bytes, rank 0 9: they are at different steps");
  }
}

/// An inner agreement may fail on all, and the ranks go on: so transports are tried one after the other.
TEST(Agreement, AnInnerOneMayFailOnAll) {
  for (const Ended& one : run_together([](Bootstrap& bootstrap) {
         const auto inner = [](Bootstrap& agreed) {
           const auto failure = std::make_exception_ptr(Error(Status::unsupported, "not here"));
           steps(agreed, 1, 3, failure);
           return 0;
         };
         EXPECT_THROW(all_or_none(bootstrap, inner), Error);
         steps(bootstrap, -1, 0, {});
       })) {
    EXPECT_EQ(one.status, Status::ok) << one.text;
  }
}

/// A rank that misses another one leaves at once: the others miss that one too.
TEST(Agreement, AMissingRankIsToldByNobody) {
  const auto begun = std::chrono::steady_clock::now();
  run_ranks_as_threads(
      2,
      [&](Bootstrap& bootstrap) {
        if (bootstrap.rank() == 1) return;  // never comes
        EXPECT_THROW(
            all_or_none(bootstrap, [](Bootstrap&) -> int { throw Error(Status::timeout, "rank 1 does not come", 1); }),
            Error);
      },
      5);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(3));
}

/// An exchange whose second all_gather fails on rank 0 alone.
class FailsOnce final : public Bootstrap {
 public:
  explicit FailsOnce(Bootstrap& inner) : inner_(inner) {}
  int rank() const noexcept override { return inner_.rank(); }
  int ranks() const noexcept override { return inner_.ranks(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_.all_gather(mine, all);
    if (++calls_ == 2 && rank() == 0) throw Error(Status::aborted, "aborted meanwhile");
  }
  bool decide(bool agreed) override {
    ++decisions_;
    return agreed;
  }
  int decisions() const noexcept { return decisions_; }

 private:
  Bootstrap& inner_;
  int calls_ = 0;
  int decisions_ = 0;
};

/// A rank that knows that another one has failed asks nobody whether all have ended well: the others have left.
TEST(Agreement, ARefusalNeedsNoDecision) {
  run_ranks_as_threads(
      2,
      [&](Bootstrap& inner) {
        FailsOnce bootstrap(inner);
        try {
          all_or_none(bootstrap, [](Bootstrap& agreed) {
            if (agreed.rank() == 1) throw Error(Status::unsupported, "no such thing");
            return 0;
          });
          ADD_FAILURE() << "rank " << inner.rank() << " has ended well";
        } catch (const Error& error) {
          EXPECT_EQ(error.status(), inner.rank() == 0 ? Status::aborted : Status::unsupported);
        }
        EXPECT_EQ(bootstrap.decisions(), 0);
      },
      5);
}

}  // namespace
}  // namespace torii::tests
