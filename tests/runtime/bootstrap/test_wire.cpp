// SPDX-License-Identifier: Apache-2.0
// The pieces of joining that are pure: proofs, frames, the rendezvous file, interfaces and addresses; fuzzed where
// parsed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/rendezvous_file.hpp"
#include "runtime/bootstrap/wire.hpp"
#include "runtime/devices/address.hpp"
#include "tests/support/test_run.hpp"

namespace torii {
namespace {

std::string frame_text(const wire::Key& key, std::uint64_t round, const std::string& payload) {
  wire::FrameHead head;
  head.round = round;
  head.bytes = payload.size();
  const wire::Proof proof = wire::seal(key, head, std::as_bytes(std::span(payload)));
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + payload +
         std::string(reinterpret_cast<const char*>(&proof), sizeof(proof));
}

/// Gives the bytes to the reader in pieces of at most `piece`; returns how many it took.
std::size_t feed(wire::FrameReader& reader, const std::string& bytes, std::size_t piece) {
  std::size_t at = 0;
  while (at < bytes.size() && !reader.complete()) {
    const auto room = reader.room();
    const std::size_t count = std::min({room.size(), piece, bytes.size() - at});
    std::memcpy(room.data(), bytes.data() + at, count);
    at += count;
    reader.filled(count);
  }
  return at;
}

TEST(Proofs, DependOnTokenRoleAndBothNonces) {
  const wire::Key key = wire::job_key("secret");
  wire::Hello hello;
  hello.rank = 1;
  hello.nonce = wire::random_nonce();
  wire::Challenge challenge;
  challenge.nonce = wire::random_nonce();
  const wire::Proof proof = wire::prove(key, "rank", hello, challenge);
  EXPECT_TRUE(wire::equal(proof, wire::prove(key, "rank", hello, challenge)));
  EXPECT_FALSE(wire::equal(proof, wire::prove(key, "rank 0", hello, challenge)));
  EXPECT_FALSE(wire::equal(proof, wire::prove(wire::job_key("secret "), "rank", hello, challenge)));
  EXPECT_FALSE(wire::equal(proof, wire::session_key(key, "rank", hello, challenge)));
  wire::Hello other_rank = hello;
  other_rank.rank = 2;
  EXPECT_FALSE(wire::equal(proof, wire::prove(key, "rank", other_rank, challenge)));
  wire::Challenge other = challenge;
  other.nonce[31] ^= std::byte{1};
  EXPECT_FALSE(wire::equal(proof, wire::prove(key, "rank", hello, other)));
}

TEST(Frames, ComeThroughInAnyPieces) {
  const wire::Key key = wire::job_key("secret");
  for (const std::size_t length : {0UL, 1UL, 31UL, 70'000UL, 200'001UL}) {
    const std::string payload(length, 'p');
    const std::string bytes = frame_text(key, 7, payload);
    for (const std::size_t piece : {1UL, 13UL, 1'000'000UL}) {
      wire::FrameReader reader(key, 1 << 20);
      for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(feed(reader, bytes, piece), bytes.size());
        ASSERT_TRUE(reader.complete());
        EXPECT_EQ(reader.head().round, 7u);
        ASSERT_EQ(reader.payload().size(), length);
        EXPECT_TRUE(std::ranges::equal(reader.payload(), std::as_bytes(std::span(payload))));
        reader.next();
      }
    }
  }
}

TEST(Frames, EveryChangedBitIsNoticed) {
  const wire::Key key = wire::job_key("secret");
  const std::string bytes = frame_text(key, 7, "payload");
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    wire::FrameReader reader(key, 1 << 20);
    bool noticed = false;
    try {
      feed(reader, changed, changed.size());
    } catch (const Error& error) {
      noticed = true;
      EXPECT_EQ(error.status(), Status::transport);
    }
    // A longer length waits for bytes that never come; a shorter one finds another hash.
    EXPECT_TRUE(noticed || !reader.complete()) << "bit " << bit;
  }
  wire::FrameReader other(wire::job_key("other"), 1 << 20);
  EXPECT_THROW(feed(other, bytes, bytes.size()), Error);
}

TEST(Frames, PromisesTakeNoMemoryAndTooLongOnesAreRefused) {
  const wire::Key key = wire::job_key("secret");
  wire::FrameHead head;
  head.bytes = std::uint64_t{1} << 40;
  const std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  wire::FrameReader trusting(key, std::uint64_t{1} << 50);
  feed(trusting, bytes, bytes.size());
  EXPECT_LE(trusting.room().size(), 65536u);
  wire::FrameReader reader(key, 4096);
  try {
    feed(reader, bytes, bytes.size());
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1099511627776 bytes where 4096 are the most"), std::string::npos);
  }
}

TEST(Frames, GarbageIsNeverComplete) {
  const wire::Key key = wire::job_key("secret");
  for (const tests::Seed& seed : tests::seeds_of("test_exchange_wire/frames", 2000)) {
    std::mt19937_64 random(seed.value);
    std::string bytes(random() % 400, '\0');
    for (char& one : bytes) one = static_cast<char>(random());
    const std::uint32_t magic = wire::kMagic;
    if (random() % 2 == 0 && bytes.size() >= 4) std::memcpy(bytes.data(), &magic, 4);
    // A small length, so that the payload is passed now and then.
    if (random() % 2 == 0 && bytes.size() >= 32) std::memset(bytes.data() + 25, 0, 7);
    wire::FrameReader reader(key, 4096);
    try {
      feed(reader, bytes, 1 + random() % 50);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::transport);
    }
    EXPECT_FALSE(reader.complete()) << seed;
  }
}

RendezvousFile example_file() {
  RendezvousFile file;
  file.ranks = 12;
  file.secret = std::string(64, 'b');
  file.addresses = {Address::parse("10.0.0.1", 4242), Address::parse("fd00::1", 65535)};
  return file;
}

TEST(MeetingFiles, ReadBackWhatWasPrinted) {
  const std::string text = print_rendezvous_file(example_file(), "token");
  std::string why_not;
  const auto file = parse_rendezvous_file(text, "token", why_not);
  ASSERT_TRUE(file) << why_not;
  EXPECT_EQ(file->ranks, 12);
  EXPECT_EQ(file->secret, std::string(64, 'b'));
  ASSERT_EQ(file->addresses.size(), 2u);
  EXPECT_EQ(file->addresses[0].text(), "10.0.0.1:4242");
  EXPECT_EQ(file->addresses[1].text(), "[fd00::1]:65535");
  EXPECT_FALSE(parse_rendezvous_file(text, "other", why_not));
  EXPECT_NE(why_not.find("another job token"), std::string::npos);
}

TEST(MeetingFiles, ChangedOrCutOnesAreRefused) {
  const std::string text = print_rendezvous_file(example_file(), "token");
  std::string why_not;
  // Only the line break at the very end may be missing.
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(parse_rendezvous_file(text.substr(0, length), "token", why_not)) << length;
  }
  EXPECT_FALSE(parse_rendezvous_file(text + "more", "token", why_not));
  for (const tests::Seed& seed : tests::seeds_of("test_exchange_wire/files", 5000)) {
    std::mt19937_64 random(seed.value);
    std::string changed = text;
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % changed.size();
      if (random() % 3 == 0) {
        changed.erase(at, random() % 20);
      } else if (random() % 2 == 0) {
        changed.insert(at, changed.substr(random() % changed.size(), random() % 30));
      } else {
        changed[at] = static_cast<char>(random());
      }
      if (changed.empty()) break;
    }
    const bool same = changed == text || changed + "\n" == text;
    EXPECT_EQ(parse_rendezvous_file(changed, "token", why_not).has_value(), same) << seed << "\n" << changed;
  }
}

Interface interface_named(const std::string& name, const std::string& address) {
  return {name, Address::parse(address, 0), Address::parse("255.255.255.0", 0)};
}

std::string selected(std::string_view selection) {
  std::string names;
  const std::vector<Interface> all{interface_named("lo", "127.0.0.1"), interface_named("eth0", "10.0.0.1"),
                                   interface_named("eth1", "10.0.1.1"), interface_named("ib0", "10.1.0.1"),
                                   interface_named("docker0", "172.17.0.1")};
  for (const Interface& one : select_interfaces(selection, all)) names += one.name + " ";
  return names;
}

TEST(Interfaces, AreSelectedByPrefixExclusionAndName) {
  EXPECT_EQ(selected(""), "eth0 eth1 ib0 docker0 ");
  EXPECT_EQ(selected("eth"), "eth0 eth1 ");
  EXPECT_EQ(selected("ib,eth1"), "eth1 ib0 ");
  EXPECT_EQ(selected("=eth0"), "eth0 ");
  EXPECT_EQ(selected("^docker,ib"), "eth0 eth1 ");
  EXPECT_EQ(selected("^=eth"), "eth0 eth1 ib0 docker0 ");
  EXPECT_EQ(selected("lo"), "lo ");
  EXPECT_EQ(select_interfaces("", {interface_named("lo", "127.0.0.1")}).size(), 1u);
  try {
    selected("=eth");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("'=eth', which selects none of the interfaces that are up: lo, eth0"),
              std::string::npos);
  }
}

TEST(Interfaces, NetworksAreComparedByMask) {
  const std::vector<Interface> own{interface_named("eth0", "10.0.0.1")};
  EXPECT_TRUE(is_directly_connected(Address::parse("10.0.0.200", 5), own));
  EXPECT_FALSE(is_directly_connected(Address::parse("10.0.1.200", 5), own));
  EXPECT_FALSE(is_directly_connected(Address::parse("fd00::1", 5), own));
}

TEST(Addresses, KnowWhatTheyAre) {
  EXPECT_TRUE(Address::parse("127.3.4.5", 1).is_loopback());
  EXPECT_TRUE(Address::parse("::1", 1).is_loopback());
  EXPECT_FALSE(Address::parse("128.0.0.1", 1).is_loopback());
  EXPECT_TRUE(Address::parse("0.0.0.0", 1).is_any());
  EXPECT_TRUE(Address::parse("::", 1).is_any());
  EXPECT_FALSE(Address::parse("0.0.0.1", 1).is_any());
  EXPECT_EQ(source_address(Address::parse("127.0.0.1", 0)).text(), "127.0.0.1:0");
  EXPECT_THROW(Address::parse("localhost", 1), Error);
  EXPECT_THROW(listen_on(Address::parse("::", 1), {}, 1), Error);
}

}  // namespace
}  // namespace torii
