// SPDX-License-Identifier: Apache-2.0
// The way of the other ranks to rank 0: a rank finds it, and both prove to each other that they know the token. A rank
// tries again until the deadline.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/reason.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/job_socket.hpp"
#include "runtime/bootstrap/tcp.hpp"

namespace torii {
namespace {

constexpr double kConnectS = 2;                       // per address, because another one may be the right one
constexpr double kAnswerS = 5;                        // rank 0 answers at once, unless its machine is busy
constexpr std::int64_t kFindMostNs = 10'000'000'000;  // the most that a resolver may take
constexpr int kPauseLeastMs = 5;
constexpr int kPauseMostMs = 200;

/// One attempt at one address.
class Dial {
 public:
  Dial(const TcpIdentity& identity, const Address& address, Deadline& deadline)
      : identity_(identity), address_(address), deadline_(deadline) {}

  /// Sets `why_not` and returns nothing if another attempt may succeed. Throws Error for a refusal.
  std::optional<TcpLink> run(const wire::Key& key, std::string& why_not);

 private:
  bool connect_socket(std::string& why_not);
  bool wait(short events, double seconds);
  template <class Message>
  bool exchange(const void* request, std::size_t bytes, Message& answer);
  void check_refusal(wire::Refusal refusal, int ranks_of_rank_0) const;

  const TcpIdentity& identity_;
  const Address& address_;
  Deadline& deadline_;  ///< of all attempts
  OwnDescriptor socket_;
};

bool Dial::wait(short events, double seconds) {
  Deadline patience = Deadline::after_s(seconds);
  pollfd entry{socket_.get(), events, 0};
  while (true) {
    const int ready = poll(&entry, 1, deadline_.nap_ms(patience.nap_ms(1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    const bool is_late = deadline_.is_over();
    if (patience.is_over() || is_late) return false;
  }
}

bool Dial::connect_socket(std::string& why_not) {
  socket_ = OwnDescriptor::of(
      [this] { return Descriptor(::socket(address_.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); });
  if (!socket_.open()) throw Error(Status::no_resource, "cannot make a socket to reach rank 0" + reason());
  int error = connect(socket_.get(), address_.get(), address_.bytes()) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t length = sizeof(error);
    if (!wait(POLLOUT, kConnectS)) {
      error = ETIMEDOUT;
    } else if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) {
      error = errno;
    }
  }
  // If the kernel picks the port that rank 0 will listen on, the socket connects to itself.
  if (error == 0 && Address::of_socket(socket_.get()).text() == address_.text()) error = ECONNREFUSED;
  if (error == 0) return true;
  why_not = address_.text() + ": " + std::strerror(error);
  return false;
}

/// Sends a small message and reads the whole answer.
template <class Message>
bool Dial::exchange(const void* request, std::size_t bytes, Message& answer) {
  if (send(socket_.get(), request, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(bytes)) return false;
  std::size_t have = 0;
  while (have < sizeof(answer)) {
    if (!wait(POLLIN, kAnswerS)) return false;
    const ssize_t got =
        recv(socket_.get(), reinterpret_cast<char*>(&answer) + have, sizeof(answer) - have, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return answer.magic == wire::kMagic;
}

void Dial::check_refusal(wire::Refusal refusal, int ranks_of_rank_0) const {
  const std::string own = "rank " + std::to_string(identity_.rank);
  const std::string refused = "rank 0 at " + address_.text() + " refused " + own + ": ";
  switch (refusal) {
    case wire::Refusal::token:
      throw Error(Status::mismatch, refused + "their job tokens (TORII_JOB_TOKEN) differ", identity_.rank);
    case wire::Refusal::ranks:
      throw Error(Status::mismatch,
                  refused + "it counts " + std::to_string(ranks_of_rank_0) + " ranks and " + own + " counts " +
                      std::to_string(identity_.ranks),
                  identity_.rank);
    case wire::Refusal::taken:
      throw Error(Status::invalid_argument, refused + "another process has joined as that rank", identity_.rank);
    case wire::Refusal::descriptors:
      throw Error(Status::no_resource,
                  refused + "it cannot have a connection to each rank; raise its limit of open files (ulimit -n)", 0);
    case wire::Refusal::none:
      break;
  }
}

std::optional<TcpLink> Dial::run(const wire::Key& key, std::string& why_not) {
  if (!connect_socket(why_not)) return std::nullopt;
  const std::string where = "rank 0 at " + address_.text();
  const std::string own = "rank " + std::to_string(identity_.rank);
  why_not = "what listens on " + address_.text() + " does not answer as rank 0 of a job does";
  const wire::Hello hello = wire::make_hello(key, identity_.rank, identity_.ranks);
  wire::Challenge challenge;
  if (!exchange(&hello, sizeof(hello), challenge)) return std::nullopt;
  if (challenge.version != wire::kVersion) {
    throw Error(Status::mismatch,
                where + " joins by protocol " + std::to_string(challenge.version) + " and " + own + " by " +
                    std::to_string(wire::kVersion) + ": they run different versions of torii",
                identity_.rank);
  }
  check_refusal(challenge.refusal, 0);
  const wire::Response response{wire::prove(key, "rank", hello, challenge)};
  wire::Verdict verdict;
  if (!exchange(&response, sizeof(response), verdict)) return std::nullopt;
  check_refusal(verdict.refusal, verdict.ranks);
  if (!wire::equal(verdict.proof, wire::prove(key, "rank 0", hello, challenge))) {
    throw Error(Status::mismatch, where + " accepted " + own + " without knowing its job token (TORII_JOB_TOKEN)",
                identity_.rank);
  }
  const int yes = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  TcpLink link;
  link.send_key = wire::session_key(key, "rank", hello, challenge);
  link.reader = wire::FrameReader(wire::session_key(key, "rank 0", hello, challenge),
                                  job_socket::kPartBytesMax * static_cast<std::uint64_t>(identity_.ranks));
  link.socket = std::move(socket_);
  return link;
}

}  // namespace

TcpLink dial_rank_0(const TcpIdentity& identity, const DialPlan& plan) {
  Deadline deadline = Deadline::after_s(identity.timeout_s);
  std::string why_not = "no address";
  for (int pause_ms = kPauseLeastMs;; pause_ms = std::min(2 * pause_ms, kPauseMostMs)) {
    (void)deadline.is_over();  // counts the pause by itself, because find() may take longer
    const std::optional<Rendezvous> rendezvous = plan.find(why_not);
    (void)deadline.look(kFindMostNs);
    for (std::size_t i = 0; rendezvous && i < rendezvous->addresses.size() && !deadline.is_over(); ++i) {
      try {
        std::optional<TcpLink> link = Dial(identity, rendezvous->addresses[i], deadline).run(rendezvous->key, why_not);
        if (link) return std::move(*link);
      } catch (const Error& error) {
        if (plan.refusals_are_final || error.status() == Status::no_resource) throw;
        why_not = error.what();
      }
    }
    if (deadline.is_over()) {
      throw Error(Status::timeout, "rank 0 has not joined in time (" + why_not + ")", 0);
    }
    poll(nullptr, 0, deadline.nap_ms(pause_ms));
  }
}

}  // namespace torii
