// SPDX-License-Identifier: Apache-2.0
// Several joins over one set of TCP links: after a join that fails because a rank is late, the next one succeeds.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/agreement.hpp"
#include "runtime/bootstrap/tcp.hpp"

namespace torii {
namespace {

constexpr int kJoiners = 3;

void pause_ms(int time_ms) { std::this_thread::sleep_for(std::chrono::milliseconds(time_ms)); }

/// Three ranks as threads, joined over TCP; each all-gather has `timeout_s`.
void run_joiners(double timeout_s, const std::function<void(Bootstrap&)>& body) {
  const wire::Key key = wire::job_key("secret");
  std::vector<Descriptor> listeners;
  listeners.push_back(listen_on(Address::parse("127.0.0.1", 0), {}, queue_length(kJoiners)));
  const Address address = Address::of_socket(listeners[0].get());
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < kJoiners; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      std::vector<TcpLink> links;
      if (rank == 0) {
        links = admit_ranks({0, kJoiners, 30}, std::move(listeners), key);
      } else {
        links.push_back(dial_rank_0({rank, kJoiners, 30}, {[&](std::string&) {
                                                             return Rendezvous{{address}, key};
                                                           },
                                                           true}));
      }
      body(*make_tcp_bootstrap({rank, kJoiners, timeout_s}, std::move(links)));
    }));
  }
  for (auto& rank : ranks) rank.get();
}

/// One join: a text of its own number, and as many bytes as asked for.
std::string join_once(Bootstrap& bootstrap, int number, std::size_t bytes) {
  try {
    return all_or_none(bootstrap, [&](Bootstrap& agreed) {
      const std::string mine = std::to_string(number) + std::string(bytes, static_cast<char>('a' + bootstrap.rank()));
      const std::vector<std::string> all = gather_texts(agreed, mine);
      for (int rank = 0; rank < kJoiners; ++rank) {
        const std::string theirs = std::to_string(number) + std::string(bytes, static_cast<char>('a' + rank));
        if (all[static_cast<std::size_t>(rank)] != theirs) return std::string("wrong texts");
      }
      return std::string("joined");
    });
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.status())) + " about " + std::to_string(error.rank()) + ": " +
           error.what();
  }
}

TEST(Joins, ALateRankFailsOneJoinOnAllRanksAndNoOther) {
  run_joiners(0.5, [&](Bootstrap& bootstrap) {
    EXPECT_EQ(join_once(bootstrap, 1, 5), "joined");
    if (bootstrap.rank() == 2) pause_ms(700);
    EXPECT_EQ(join_once(bootstrap, 2, 5), "6 about 2: rank 2 has not joined in time");
    EXPECT_EQ(join_once(bootstrap, 3, 100'000), "joined") << bootstrap.rank();
  });
}

TEST(Joins, ARankThatMissesSeveralHearsOfEach) {
  run_joiners(0.4, [&](Bootstrap& bootstrap) {
    if (bootstrap.rank() == 1) pause_ms(1000);
    for (int number = 1; number < 4; ++number) {
      const std::string result = join_once(bootstrap, number, 100);
      EXPECT_TRUE(number == 3 ? result == "joined" : result.starts_with("6 about 1: rank 1 has not joined in time"))
          << bootstrap.rank() << " " << number << " " << result;
    }
  });
}

TEST(Joins, ALateRank0FailsOneJoinAndNoOther) {
#if defined(__SANITIZE_THREAD__)
  constexpr std::size_t kBytes = 2'000'000;  // the sanitizer's own memory makes more too slow for the deadline
  constexpr int kLimitS = 3;
#else
  constexpr std::size_t kBytes = 12'000'000;  // more than the sockets take, so that a part of a frame stays behind
  constexpr int kLimitS = 1;
#endif
  run_joiners(kLimitS, [&](Bootstrap& bootstrap) {
    EXPECT_EQ(join_once(bootstrap, 1, 5), "joined");
    // The others wait two seconds longer than rank 0 would.
    if (bootstrap.rank() == 0) pause_ms(1000 * (kLimitS + 2) + 200);
    const std::string result = join_once(bootstrap, 2, kBytes);
    EXPECT_TRUE(result.starts_with("6 about ")) << bootstrap.rank() << " " << result;
    EXPECT_EQ(join_once(bootstrap, 3, kBytes), "joined") << bootstrap.rank();
  });
}

TEST(Joins, ARefusalFailsOneJoinOnAllRanksAndNoOther) {
  run_joiners(10, [&](Bootstrap& bootstrap) {
    try {
      all_or_none(bootstrap, [&](Bootstrap& agreed) {
        if (bootstrap.rank() == 1) throw Error(Status::unsupported, "not here");
        return gather_values(agreed, 1).front();
      });
      ADD_FAILURE() << "joined";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "rank 1: not here");
    }
    EXPECT_EQ(join_once(bootstrap, 2, 5), "joined") << bootstrap.rank();
  });
}

TEST(Joins, ARankThatGaveUpAloneIsNamed) {
  run_joiners(0.3, [&](Bootstrap& bootstrap) {
    std::string result;
    try {
      all_or_none(bootstrap, [&](Bootstrap& agreed) {
        gather_values(agreed, 1);
        // A rank that misses another one tells nobody.
        if (bootstrap.rank() == 1) throw Error(Status::timeout, "rank 2 is missing", 2);
        return gather_values(agreed, 2).front();
      });
    } catch (const Error& error) {
      result = error.what();
    }
    EXPECT_EQ(result,
              bootstrap.rank() == 1 ? "rank 2 is missing" : "rank 1 has given up this join and begun the next one");
    EXPECT_EQ(join_once(bootstrap, 2, 5), "joined") << bootstrap.rank();
  });
}

TEST(Joins, ADeadRankFailsAllJoins) {
  run_joiners(10, [&](Bootstrap& bootstrap) {
    EXPECT_EQ(join_once(bootstrap, 1, 5), "joined");
    if (bootstrap.rank() == 2) return;
    for (int number = 2; number < 4; ++number) {
      EXPECT_EQ(join_once(bootstrap, number, 5),
                "7 about 2: rank 2 ended before all ranks had exchanged what they need to join");
    }
  });
}

}  // namespace
}  // namespace torii
