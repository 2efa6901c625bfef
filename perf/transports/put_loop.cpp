// SPDX-License-Identifier: Apache-2.0
// Waiting with a deadline, and puts through a transport.
#include "perf/transports/put_loop.hpp"

#include <cstring>

#include "perf/common/failure.hpp"
#include "perf/common/meeting.hpp"
#include "runtime/fabric/words.hpp"

namespace torii::perf {
namespace {

constexpr std::int64_t kDeadlineNs = 30'000'000'000;
constexpr std::uint64_t kPollsBetweenLooks = 4096;
/// Signals need one that is not 0; all messages of a run are one call's.
constexpr std::uint32_t kSignature = 1;

}  // namespace

template <class Done>
void PutLoop::spin(const char* what, std::uint64_t number, const Done& done) {
  std::int64_t deadline_ns = 0;
  for (std::uint64_t polls = 1; !done(); ++polls) {
    if (polls % kPollsBetweenLooks != 0) continue;
    if (on_quiet) on_quiet();
    if (deadline_ns == 0) deadline_ns = now_ns() + kDeadlineNs;
    if (now_ns() < deadline_ns) continue;
    throw Failure(kTimeout, std::string(what) + " message " + std::to_string(number) + " for 30 s");
  }
}

void PutLoop::begin(const SlotLayout& layout) {
  layout_ = layout;
  put_ = got_ = 0;
  std::memset(memory_, 0, layout.bytes());
}

void PutLoop::wait(std::size_t bytes) {
  const std::uint64_t number = ++got_;
  spin("waited for", number, [&] { return has_come(number, bytes); });
}

void PutLoop::drain() {
  spin("waited for the end of", put_, [&] { return is_drained(); });
}

void TransportLoop::check(Status status) {
  if (status == Status::ok) return;
  const int code = status == Status::peer_lost ? kPeerLost : kNotPossible;
  throw Failure(code, "the transport failed: " + transport_.failure_text());
}

void TransportLoop::poll() { check(transport_.progress()); }

std::byte* TransportLoop::incoming(std::size_t slot, std::size_t bytes) noexcept {
  const std::size_t payload = bytes <= kInlineBytes ? sizeof(std::uint64_t) : kLineBytes;
  return memory() + layout().incoming_offset(slot) + payload;
}

void TransportLoop::put_message(std::uint64_t number, std::size_t bytes) {
  Put put;
  put.peer = 1 - transport_.rank();
  put.engine = static_cast<int>(number % static_cast<std::uint64_t>(engines_));
  put.source = memory() + layout().outgoing_offset(number) + kLineBytes;
  put.bytes = bytes;
  put.signal_offset = layout().incoming_offset(number);
  put.target_offset = put.signal_offset + (bytes <= kInlineBytes ? sizeof(std::uint64_t) : kLineBytes);
  put.signal = signal_word(kSignature, number);
  put.line_before = true;
  check(transport_.put(put));
}

bool TransportLoop::has_come(std::uint64_t number, std::size_t) {
  poll();
  return load_word(memory() + layout().incoming_offset(number)) == signal_word(kSignature, number);
}

bool TransportLoop::is_drained() {
  poll();
  return transport_.drained();
}

}  // namespace torii::perf
