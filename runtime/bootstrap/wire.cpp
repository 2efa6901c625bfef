// SPDX-License-Identifier: Apache-2.0
// Makes keys, proofs and frames with libsodium's keyed hash (BLAKE2b).
#include "runtime/bootstrap/wire.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstddef>

#include "runtime/base/status.hpp"

namespace torii::wire {
namespace {

const unsigned char* raw(const void* bytes) { return static_cast<const unsigned char*>(bytes); }

/// A keyed hash of several pieces; without a key when `key` is nullptr.
class Hash {
 public:
  explicit Hash(const Key* key) {
    if (sodium_init() < 0) throw Error(Status::no_resource, "libsodium finds no source of random bytes");
    crypto_generichash_init(&state_, key != nullptr ? raw(key->data()) : nullptr, key != nullptr ? key->size() : 0,
                            Proof().size());
  }
  void add(const void* bytes, std::size_t count) { crypto_generichash_update(&state_, raw(bytes), count); }
  Proof end() {
    Proof proof;
    crypto_generichash_final(&state_, reinterpret_cast<unsigned char*>(proof.data()), proof.size());
    return proof;
  }

 private:
  crypto_generichash_state state_;
};

Proof transcript(const Key& key, std::string_view purpose, std::string_view role, const Hello& hello,
                 const Challenge& challenge) {
  Hash hash(&key);
  const std::string label = "torii " + std::string(purpose) + " of " + std::string(role);
  const std::uint64_t length = label.size();
  hash.add(&length, sizeof(length));
  hash.add(label.data(), label.size());
  hash.add(&hello, sizeof(hello));
  hash.add(&challenge, sizeof(challenge));
  return hash.end();
}

}  // namespace

Key job_key(std::string_view token) {
  constexpr std::string_view kLabel = "torii job token";
  Hash hash(nullptr);
  hash.add(kLabel.data(), kLabel.size());
  hash.add(token.data(), token.size());
  return hash.end();
}

Nonce random_nonce() {
  if (sodium_init() < 0) throw Error(Status::no_resource, "libsodium finds no source of random bytes");
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Hello make_hello(const Key& key, int rank, int ranks) {
  Hello hello;
  hello.rank = rank;
  hello.ranks = ranks;
  hello.nonce = random_nonce();
  hello.mark = mark_of(key, hello);
  return hello;
}

Proof mark_of(const Key& key, const Hello& hello) {
  constexpr std::string_view kLabel = "torii hello";
  Hash hash(&key);
  hash.add(kLabel.data(), kLabel.size());
  hash.add(&hello, offsetof(Hello, mark));
  return hash.end();
}

Proof prove(const Key& key, std::string_view role, const Hello& hello, const Challenge& challenge) {
  return transcript(key, "proof", role, hello, challenge);
}

Key session_key(const Key& key, std::string_view role, const Hello& hello, const Challenge& challenge) {
  return transcript(key, "session", role, hello, challenge);
}

bool equal(const Proof& a, const Proof& b) noexcept { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte one : bytes) {
    text += kDigits[std::to_integer<int>(one) >> 4];
    text += kDigits[std::to_integer<int>(one) & 15];
  }
  return text;
}

Proof seal(const Key& key, const FrameHead& head, std::span<const std::byte> payload) {
  Hash hash(&key);
  hash.add(&head, sizeof(head));
  hash.add(payload.data(), payload.size());
  return hash.end();
}

std::span<std::byte> FrameReader::room() {
  constexpr std::size_t kPieceBytes = 65536;
  switch (stage_) {
    case Stage::head:
      return std::as_writable_bytes(std::span(&head_, 1)).subspan(have_);
    case Stage::payload:
      payload_.resize(std::min<std::size_t>(head_.bytes, have_ + kPieceBytes));
      return std::span(payload_).subspan(have_);
    case Stage::proof:
      return std::span(proof_).subspan(have_);
    case Stage::complete:
      break;
  }
  return {};
}

void FrameReader::filled(std::size_t bytes) {
  have_ += bytes;
  if (stage_ == Stage::head && have_ == sizeof(head_)) {
    if (head_.magic != kMagic || head_.bytes > bytes_max_) {
      throw Error(Status::transport, "a message that is not torii's, or of " + std::to_string(head_.bytes) +
                                         " bytes where " + std::to_string(bytes_max_) + " are the most");
    }
    stage_ = head_.bytes > 0 ? Stage::payload : Stage::proof;
    have_ = 0;
  } else if (stage_ == Stage::payload && have_ == head_.bytes) {
    stage_ = Stage::proof;
    have_ = 0;
  } else if (stage_ == Stage::proof && have_ == proof_.size()) {
    if (!equal(proof_, seal(key_, head_, payload_))) {
      throw Error(Status::transport, "a message whose keyed hash is wrong: it was changed on its way");
    }
    stage_ = Stage::complete;
  }
}

void FrameReader::next() {
  stage_ = Stage::head;
  have_ = 0;
  payload_.clear();
}

}  // namespace torii::wire
