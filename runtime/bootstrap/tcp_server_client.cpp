// SPDX-License-Identifier: Apache-2.0
// All-gathers through rank 0: every rank sends its part there, and receives all parts or the reason of a failure.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/tcp.hpp"

namespace torii {
namespace {

/// A frame that is being sent. The payload belongs to the caller; several frames may share it.
struct Outgoing {
  wire::FrameHead head;
  std::span<const std::byte> payload;
  wire::Proof proof{};
  std::size_t sent = 0;

  Outgoing(const wire::Key& key, const wire::FrameHead& what, std::span<const std::byte> bytes)
      : head(what), payload(bytes), proof(wire::seal(key, what, bytes)) {}
  std::size_t bytes() const { return sizeof(head) + payload.size() + sizeof(proof); }
  bool done() const { return sent == bytes(); }
  /// The bytes that have not been sent yet, in order.
  std::array<std::span<const std::byte>, 3> rest() const {
    std::array<std::span<const std::byte>, 3> pieces = {std::as_bytes(std::span(&head, 1)), payload, proof};
    std::size_t skip = sent;
    for (auto& piece : pieces) {
      const std::size_t skipped = std::min(skip, piece.size());
      piece = piece.subspan(skipped);
      skip -= skipped;
    }
    return pieces;
  }
};

/// Sends as much as the socket takes now; false if the connection is broken.
bool push(TcpLink& link, Outgoing& frame) {
  while (!frame.done()) {
    iovec parts[4] = {{link.unsent.data(), link.unsent.size()}};
    std::size_t count = 1;
    for (const auto& piece : frame.rest()) parts[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(link.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0 && errno != EINTR) return false;
    if (sent <= 0) continue;
    const std::size_t earlier = std::min(static_cast<std::size_t>(sent), link.unsent.size());
    link.unsent.erase(link.unsent.begin(), link.unsent.begin() + static_cast<std::ptrdiff_t>(earlier));
    frame.sent += static_cast<std::size_t>(sent) - earlier;
  }
  return true;
}

/// No more is pushed of this frame. If a part of it has left, the rest goes before the next frame.
void give_up(TcpLink& link, const Outgoing& frame) {
  if (frame.sent == 0) return;
  for (const auto& piece : frame.rest()) link.unsent.insert(link.unsent.end(), piece.begin(), piece.end());
}

/// The common part of both ends: rank, number of ranks, join, round, and the first failure of the join, which later
/// calls repeat.
class TcpBootstrap : public Bootstrap {
 public:
  explicit TcpBootstrap(const TcpIdentity& identity) : identity_(identity) {}
  int rank() const noexcept override { return identity_.rank; }
  int ranks() const noexcept override { return identity_.ranks; }
  bool notices_deaths() const noexcept override { return true; }
  void begin() noexcept override {
    if (std::exchange(has_begun_, true)) ++join_;
    round_ = 0;
    broken_.reset();
  }

 protected:
  /// The head of this rank's next frame.
  wire::FrameHead next_round(std::size_t mine_bytes, std::size_t all_bytes) {
    check_sizes(mine_bytes, all_bytes);
    // After a failure the ranks no longer agree on what the next message means.
    if (broken_) throw Error(*broken_);
    ++round_;
    return head(Status::ok, -1, mine_bytes);
  }
  wire::FrameHead head(Status status, int rank, std::size_t bytes) const {
    wire::FrameHead made;
    made.status = static_cast<std::int32_t>(status);
    made.rank = rank;
    made.join = join_;
    made.round = round_;
    made.bytes = bytes;
    return made;
  }
  /// True if the frame that has arrived belongs to an earlier join, in which one of both has given up; drops it.
  bool drops_earlier(TcpLink& link) const {
    if (link.reader.head().join >= join_) return false;
    link.reader.next();
    return true;
  }
  [[noreturn]] void break_off(const Error& error) {
    broken_ = error;
    throw Error(error);
  }

  TcpIdentity identity_;
  bool has_begun_ = false;
  std::uint32_t join_ = 1;
  std::uint64_t round_ = 0;
  std::optional<Error> broken_;
};

/// Rank 0.
class Server final : public TcpBootstrap {
 public:
  Server(const TcpIdentity& identity, std::vector<TcpLink> links) : TcpBootstrap(identity), links_(std::move(links)) {
    for (std::size_t rank = 1; rank < links_.size(); ++rank) {
      const int yes = 1;
      setsockopt(links_[rank].socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    }
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::string address() const override {
    return links_.size() < 2 ? "" : Address::of_socket(links_[1].socket.get()).host();
  }

 private:
  void collect(std::span<const std::byte> mine, std::span<std::byte> all);
  bool take_part(std::size_t rank, std::span<const std::byte> mine, std::span<std::byte> all);
  void distribute(const wire::FrameHead& head, std::span<const std::byte> payload, Deadline deadline);
  [[noreturn]] void fail(Status status, int rank, const std::string& sentence);

  std::vector<TcpLink> links_;  // by rank
};

void Server::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  (void)next_round(mine.size(), all.size());
  collect(mine, all);
  distribute(head(Status::ok, -1, all.size()), all, Deadline::after_s(identity_.timeout_s));
}

void Server::collect(std::span<const std::byte> mine, std::span<std::byte> all) {
  Deadline deadline = Deadline::after_s(identity_.timeout_s);
  std::ranges::copy(mine, all.begin());
  std::vector<int> missing;
  for (int rank = 1; rank < identity_.ranks; ++rank) missing.push_back(rank);
  while (true) {
    std::erase_if(missing, [&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      Received received = Received::closed;
      try {
        received = receive_frame(links_[at]);
      } catch (const Error& error) {
        links_[at].socket = OwnDescriptor();
        fail(error.status(), rank, "rank " + std::to_string(rank) + " sent " + error.what());
      }
      if (received == Received::closed) {
        fail(Status::peer_lost, rank,
             "rank " + std::to_string(rank) + " ended before all ranks had exchanged what they need to join");
      }
      return received == Received::some && take_part(at, mine, all);
    });
    if (missing.empty()) return;
    if (deadline.is_over()) fail(Status::timeout, missing[0], ranks_text(missing) + " not joined in time");
    std::vector<pollfd> entries;
    for (const int rank : missing) {
      entries.push_back({links_[static_cast<std::size_t>(rank)].socket.get(), POLLIN, 0});
    }
    poll(entries.data(), entries.size(), deadline.nap_ms(1000));
  }
}

/// False if the frame is none of this join.
bool Server::take_part(std::size_t rank, std::span<const std::byte> mine, std::span<std::byte> all) {
  wire::FrameReader& reader = links_[rank].reader;
  const std::string who = "rank " + std::to_string(rank);
  if (drops_earlier(links_[rank])) return false;
  if (reader.head().join > join_) {
    fail(Status::timeout, static_cast<int>(rank), who + " has given up this join and begun the next one");
  }
  if (reader.head().round != round_) {
    fail(Status::transport, static_cast<int>(rank),
         who + " sent part " + std::to_string(reader.head().round) + " when part " + std::to_string(round_) +
             " was due");
  }
  const std::span<const std::byte> part = reader.payload();
  if (part.size() != mine.size()) {
    fail(Status::mismatch, static_cast<int>(rank),
         who + " exchanges " + std::to_string(part.size()) + " bytes and rank 0 " + std::to_string(mine.size()) +
             ": they do not run the same program or the same version");
  }
  std::ranges::copy(part, all.begin() + static_cast<std::ptrdiff_t>(rank * mine.size()));
  reader.next();
  return true;
}

/// A connection that breaks here fails the next round; for the other ranks this round is complete.
void Server::distribute(const wire::FrameHead& head, std::span<const std::byte> payload, Deadline deadline) {
  std::vector<std::pair<TcpLink*, Outgoing>> frames;
  for (TcpLink& link : links_) {
    if (link.socket.open()) frames.emplace_back(&link, Outgoing(link.send_key, head, payload));
  }
  while (true) {
    std::erase_if(frames, [](auto& one) { return !push(*one.first, one.second) || one.second.done(); });
    if (frames.empty() || deadline.is_over()) break;
    std::vector<pollfd> entries;
    for (const auto& one : frames) entries.push_back({one.first->socket.get(), POLLOUT, 0});
    poll(entries.data(), entries.size(), deadline.nap_ms(1000));
  }
  for (const auto& [link, frame] : frames) give_up(*link, frame);
}

void Server::fail(Status status, int rank, const std::string& sentence) {
  constexpr double kLastWordS = 1;  // a sentence fits into any socket's buffer unless the rank has stopped reading
  distribute(head(status, rank, sentence.size()), std::as_bytes(std::span(sentence)), Deadline::after_s(kLastWordS));
  break_off(Error(status, sentence, rank));
}

/// Every other rank.
class Client final : public TcpBootstrap {
 public:
  Client(const TcpIdentity& identity, TcpLink link) : TcpBootstrap(identity), link_(std::move(link)) {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::string address() const override { return Address::of_socket(link_.socket.get()).host(); }

 private:
  void exchange(Outgoing& frame);
  Received receive();
  void wait(short events, Deadline& deadline);

  TcpLink link_;
};

void Client::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  Outgoing frame(link_.send_key, next_round(mine.size(), all.size()), mine);
  try {
    exchange(frame);
  } catch (...) {
    give_up(link_, frame);
    throw;
  }
  give_up(link_, frame);  // rank 0 may answer that this join has failed before it has read all
  const wire::FrameHead answer = link_.reader.head();
  if (answer.join > join_) {
    break_off(Error(Status::timeout, "rank 0 has given up this join and begun the next one", 0));
  }
  const std::span<const std::byte> payload = link_.reader.payload();
  if (answer.status != static_cast<std::int32_t>(Status::ok)) {
    const std::string sentence(reinterpret_cast<const char*>(payload.data()), payload.size());
    break_off(Error(static_cast<Status>(answer.status), sentence, answer.rank));
  }
  if (answer.round != round_ || payload.size() != all.size()) {
    break_off(Error(Status::transport,
                    "rank 0 answered round " + std::to_string(answer.round) + " with " +
                        std::to_string(payload.size()) + " bytes when round " + std::to_string(round_) + " of " +
                        std::to_string(all.size()) + " bytes was due",
                    0));
  }
  std::ranges::copy(payload, all.begin());
  link_.reader.next();
}

/// Sends the frame and waits for an answer of this join, or of a later one.
void Client::exchange(Outgoing& frame) {
  // Rank 0 knows which ranks are missing, so it reports first. The two seconds matter only if rank 0 hangs.
  constexpr double kGraceS = 2;
  Deadline deadline = Deadline::after_s(identity_.timeout_s + kGraceS);
  for (bool is_connected = true;;) {
    is_connected = is_connected && push(link_, frame);
    // If the connection breaks, or rank 0 has stopped reading, the socket may contain the reason.
    const Received received = receive();
    if (received == Received::some && !drops_earlier(link_)) return;
    if (received == Received::nothing_yet) wait(is_connected && !frame.done() ? POLLIN | POLLOUT : POLLIN, deadline);
  }
}

Received Client::receive() {
  Received received = Received::closed;
  try {
    received = receive_frame(link_);
  } catch (const Error& error) {
    link_.socket = OwnDescriptor();
    break_off(Error(error.status(), std::string("rank 0 sent ") + error.what(), 0));
  }
  if (received == Received::closed) {
    break_off(Error(Status::peer_lost, "rank 0 ended before all ranks had exchanged what they need to join", 0));
  }
  return received;
}

void Client::wait(short events, Deadline& deadline) {
  pollfd entry{link_.socket.get(), events, 0};
  if (poll(&entry, 1, deadline.nap_ms(1000)) > 0 || !deadline.is_over()) return;
  break_off(
      Error(Status::timeout,
            "rank 0 has not answered rank " + std::to_string(identity_.rank) + " in time: it is missing, or hangs", 0));
}

}  // namespace

Received receive_frame(TcpLink& link) {
  while (!link.reader.complete()) {
    const std::span<std::byte> room = link.reader.room();
    const ssize_t got = recv(link.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got > 0) {
      link.reader.filled(static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return Received::closed;
    } else if (errno == EAGAIN) {
      return Received::nothing_yet;
    }
  }
  return Received::some;
}

std::unique_ptr<Bootstrap> make_tcp_bootstrap(const TcpIdentity& identity, std::vector<TcpLink> links) {
  if (identity.rank == 0) return std::make_unique<Server>(identity, std::move(links));
  return std::make_unique<Client>(identity, std::move(links.at(0)));
}

}  // namespace torii
