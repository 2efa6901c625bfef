// SPDX-License-Identifier: Apache-2.0
// Faults that are planted in a copy of the code under test, each behind a number (planted.patch): credits and
// signatures that are not looked at, messages that are lost, signals and credits that come too early. A world finds
// each.
#include <gtest/gtest.h>

#include <iostream>
#include <string_view>

#include "runtime/fabric/words.hpp"
#include "tests/exploration/worlds.hpp"
#include "tests/support/test_run.hpp"

namespace torii::exploration {
namespace {

struct Planted {
  int number;
  std::string_view what;
  std::string_view world;  ///< that finds it
  bool is_short = false;
};

constexpr Planted kPlanted[] = {
    {1, "a signal without the number of its message", "cells, rings of 1 entry", true},
    {2, "a signal without the signature of its call", "calls that differ", true},
    {3, "an entry of another node is filled without a credit", "3 segments, over a network, rings of 1 entry", true},
    {4, "a message to another node is sent ahead of its credit", "3 segments, over a network, rings of 1 entry"},
    {5, "an operand counts as read before its reader has said so", "broadcast in place"},
    {6, "any credit of an entry counts, an old one too",
     "calls as programs, over a network (by loads), rings of 1 entry", true},
    {7, "any signal in an entry counts", "cells, rings of 1 entry"},
    {8, "a signal of an older message of the same kind counts", "cells, rings of 1 entry", true},
    {9, "at the end of a call its payloads do not count as read", "a whole outbox after one payload", true},
    {10, "payloads are counted as rarely as entries, which are more", "2 segments in 1 slot", true},
    {11, "a receiver credits each message of a group", "groups of credits of two plans", true},
    {12, "a group of credits is never counted anew", "groups of credits of two plans"},
    {13, "a message is lost", "cells, rings of 2 entries", true},
    {14, "a credit is lost", "3 segments, over a network, rings of 1 entry"},
    {15, "the buffer offer of an earlier call counts", "broadcast in place", true},
    {16, "a result is written before its owner has offered it", "broadcast written in place"},
    {17, "an operand is released after its first segment", "broadcast in place"},
    {18, "a call ends while its operand is still being read", "broadcast in place"},
    {19, "the offer of an earlier exchange counts", "pairwise in place, then by value"},
    {20, "an exchange ends while its operand is still being read", "pairwise read in place"},
    {21, "an exchange fills entries whatever their counts and credits say", "pairwise at once, rings of 1 entry"},
    {22, "an exchange takes a block before it has come", "pairwise, rings of 1 entry"},
    {23, "a call ends before the network has taken its payloads",
     "calls as programs, over a network (by loads), rings of 1 entry", true},
    {24, "an entry is given back twice", "3 segments, over a network, rings of 1 entry"},
    {25, "an entry is given back before it has been read", "cells, rings of 1 entry"},
    {26, "a message is signalled before it is stored", "cells, rings of 1 entry"},
    {27, "a send fills slots without credits", "sends in the signal's line, 1 entry", true},
    {28, "a receive is done before its receipt has left", "both ways, read in place, 1 entry"},
    {29, "a send is done when it is announced", "a send that is read in place, 2 entries"},
    {30, "a receive takes the second send that it accepts", "sends before their receives"},
    {31, "a slot is given back before its message has been understood", "sends in the signal's line, 1 entry"},
    {32, "entries of a ring are filled whatever its count says", "cells, rings of 1 entry", true},
    {33, "an entry is filled one message ahead of the count", "cells, rings of 1 entry"},
    {34, "a place in the outbox is filled while it is still read", "5 segments in 1 slot", true},
    {35, "an extent is free before its payloads have been read", "payload in an outbox for one", true},
    {36, "the first reader of an extent speaks for all", "an outbox read by two ranks"},
    {37, "a count says one message more", "cells, rings of 1 entry"},
    {38, "a message taken ahead counts like the one before it", "5 segments, rings of 2 entries"},
    {39, "a ring's numbers begin anew with each call", "cells, rings of 1 entry"},
    {40, "a message is signalled before its offset is stored", "payload in the outbox"},
    {41, "the numbers of a ring begin anew after an exchange", "exchange, flows, exchange by value", true},
    {42, "the last message of a block that is read in place is not awaited",
     "pairwise read in place, rings of 2 entries"},
    {43, "the offers of all exchanges of a pair use one line", "exchange, flows, exchange", true},
    {44, "the place of a send's payload is filled while it is still read", "sends that share a place", true},
    {45, "a place in the outbox is filled while it is still sent to another node", "scatter, an outbox for one, over"},
    {46, "a group of credits between nodes is that of one plan", "groups of credits of two plans", true},
    {47, "a message to another node is lost", "3 segments, over a network, rings of 2 entries"},
    {48, "a place of entries is believed before it has been told", "places of entries are told", true},
    {49, "a send to another node fills an entry without its credit", "sends over a network", true},
    {50, "an entry of a founding is opened while a member still reads there", "foundings: the opener refuses", true},
    {51, "a member of a founding has come before it has told its memory", "foundings: two ranks, again in one", true},
    {52, "a founding is concluded before all have their objects", "foundings: one has no object", true},
    {53, "an entry waits for ever for a dead member", "foundings: a member dies inside", true},
};

Outcome explore_with(const Planted& fault, const Listed& listed) {
  planted_fault = fault.number;
  const Outcome outcome = explorer().explore(*listed.make());
  planted_fault = 0;
  return outcome;
}

TEST(Planted, EachFaultIsFound) {
  const auto list = worlds(true);
  int found = 0;
  for (const Planted& fault : kPlanted) {
    if (!fault.is_short && !tests::is_full()) continue;
    std::string failure;
    for (const Listed& listed : list) {
      if (listed.name.find(fault.world) == std::string::npos) continue;
      const Outcome outcome = explore_with(fault, listed);
      if (outcome.failure.empty()) continue;
      failure = listed.name + ": " + outcome.failure;
      break;
    }
    std::cout << fault.number << ' ' << fault.what << ": " << failure << std::endl;
    EXPECT_NE(failure, "") << fault.what;
    found += failure.empty() ? 0 : 1;
  }
  EXPECT_GE(found, 10);
}

TEST(Planted, TheCopyWithoutAFaultIsRight) {
  for (const Listed& listed : worlds(false)) {
    if (listed.name.find("1 entry") == std::string::npos) continue;
    EXPECT_EQ(explorer().explore(*listed.make()).failure, "") << listed.name;
  }
}

}  // namespace
}  // namespace torii::exploration
