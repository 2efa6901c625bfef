// SPDX-License-Identifier: Apache-2.0
// Joins by the embedder's function, by torii-run's socket, or as a job of one rank. environment.cpp has the other ways.
#include "runtime/bootstrap/bootstrap.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/deadline.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/environment.hpp"
#include "runtime/bootstrap/job_socket.hpp"

namespace torii {
namespace {

class SingleBootstrap final : public Bootstrap {
 public:
  int rank() const noexcept override { return 0; }
  int ranks() const noexcept override { return 1; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_sizes(mine.size(), all.size());
    std::ranges::copy(mine, all.begin());
  }
};

class CallbackBootstrap final : public Bootstrap {
 public:
  explicit CallbackBootstrap(const JoinExchange& given) : given_(given) {}
  int rank() const noexcept override { return given_.rank; }
  int ranks() const noexcept override { return given_.ranks; }
  bool may_fail_alone() const noexcept override { return true; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_sizes(mine.size(), all.size());
    call_exchange(given_.function, given_.data, given_.rank, mine, all, "the exchange function of the embedder");
  }

 private:
  JoinExchange given_;
};

/// Uses the socket of torii-run. The socket belongs to the process: a later context of the process joins over it too.
class LauncherBootstrap final : public Bootstrap {
 public:
  LauncherBootstrap(int fd, int rank, int ranks, double timeout_s)
      : fd_(fd),
        rank_(rank),
        ranks_(ranks),
        timeout_ms_(static_cast<std::uint32_t>(std::max(1.0, timeout_s * 1000))),
        deadline_(Deadline::after_s(timeout_s + kGraceS)) {}
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return ranks_; }
  bool notices_deaths() const noexcept override { return true; }
  void begin() noexcept override {
    if (begins_ == 0) begins_ = job_socket::kBeginsInContext;
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  /// torii-run knows which ranks are missing, so it reports first. The two seconds matter only if torii-run hangs.
  static constexpr double kGraceS = 2;

  void send_all(std::span<const std::byte> bytes);
  void receive_all(std::span<std::byte> bytes);
  void wait_for(short events);

  int fd_;
  int rank_;
  int ranks_;
  std::uint32_t timeout_ms_;
  Deadline deadline_;
  std::uint32_t begins_ = job_socket::kBegins;  ///< goes with the next request
};

void LauncherBootstrap::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  check_sizes(mine.size(), all.size());
  // Two threads that make contexts at once must not mix their bytes on the socket.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  deadline_.restart();

  job_socket::Request request;
  request.timeout_ms = timeout_ms_ | std::exchange(begins_, 0);
  request.bytes = mine.size();
  send_all(std::as_bytes(std::span(&request, 1)));
  send_all(mine);
  job_socket::Reply reply;
  receive_all(std::as_writable_bytes(std::span(&reply, 1)));
  const bool failed = reply.status != static_cast<std::int32_t>(Status::ok);
  if (reply.magic != job_socket::kMagic || (failed ? reply.bytes > 4096 : reply.bytes != all.size())) {
    throw Error(Status::transport,
                "what came over " + std::string(job_socket::kFdVariable) + " is not an answer of torii-run");
  }
  if (failed) {
    std::string reason(reply.bytes, '\0');
    receive_all(std::as_writable_bytes(std::span(reason)));
    throw Error(static_cast<Status>(reply.status), reason, reply.rank);
  }
  receive_all(all);
}

void LauncherBootstrap::wait_for(short events) {
  while (true) {
    pollfd entry{fd_, events, 0};
    const int ready = poll(&entry, 1, deadline_.nap_ms(1000));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw Error(Status::transport, "poll on the socket of torii-run failed");
    if (deadline_.is_over()) {
      throw Error(Status::timeout, "torii-run has not answered rank " + std::to_string(rank_) + " in time");
    }
  }
}

void LauncherBootstrap::send_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    wait_for(POLLOUT);
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      throw Error(Status::peer_lost, "torii-run has ended while rank " + std::to_string(rank_) + " was joining");
    }
  }
}

void LauncherBootstrap::receive_all(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    wait_for(POLLIN);
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      throw Error(Status::peer_lost, "torii-run has ended while rank " + std::to_string(rank_) + " was joining");
    }
  }
}

std::unique_ptr<Bootstrap> join_launcher(int fd, double timeout_s) {
  const std::string socket_text = std::string(job_socket::kFdVariable) + "=" + std::to_string(fd);
  const std::optional<int> rank = number_in(job_socket::kRankVariable);
  const std::optional<int> ranks = number_in(job_socket::kRanksVariable);
  if (!rank || !ranks || *ranks < 1 || *rank < 0 || *rank >= *ranks) {
    throw Error(Status::invalid_argument, socket_text +
                                              " comes with TORII_RANK=" + (rank ? std::to_string(*rank) : "nothing") +
                                              " and TORII_RANKS=" + (ranks ? std::to_string(*ranks) : "nothing") +
                                              "; torii-run sets a rank from 0 to the number of ranks less one");
  }
  int type = 0;
  socklen_t length = sizeof(type);
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
    throw Error(Status::unsupported, socket_text +
                                         " is not the socket of torii-run: a program between torii-run and this "
                                         "one has closed it; let it pass on open files, or start torii-run inside it");
  }
  // A program that this rank starts must not inherit the socket: it is no rank of the job.
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return std::make_unique<LauncherBootstrap>(fd, *rank, *ranks, timeout_s);
}

void check_numbers(const JoinExchange& given) {
  if (given.ranks < 1 || given.rank < 0 || given.rank >= given.ranks) {
    throw Error(Status::invalid_argument, "rank " + std::to_string(given.rank) + " of " + std::to_string(given.ranks) +
                                              " ranks; the rank must be from 0 to the number of ranks less one");
  }
  constexpr int kRanksMax = 1 << 20;  // the limit of a topology
  if (given.ranks > kRanksMax) {
    throw Error(Status::invalid_argument,
                "ranks is " + std::to_string(given.ranks) + "; it must be at most " + std::to_string(kRanksMax));
  }
}

}  // namespace

void Bootstrap::check_sizes(std::size_t mine_bytes, std::size_t all_bytes) const {
  if (all_bytes == mine_bytes * static_cast<std::size_t>(ranks())) return;
  throw Error(Status::internal, "all_gather of " + std::to_string(mine_bytes) + " bytes by " + std::to_string(ranks()) +
                                    " ranks into " + std::to_string(all_bytes) + " bytes");
}

void call_exchange(ExchangeFunction function, void* data, int rank, std::span<const std::byte> mine,
                   std::span<std::byte> all, std::string_view who) {
  const auto fail = [&](const std::string& what) {
    throw Error(Status::transport, std::string(who) + " " + what + " on rank " + std::to_string(rank));
  };
  // Writes wrong bytes first, so that a function that does nothing is detected.
  const auto own = all.subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size());
  std::ranges::transform(mine, own.begin(), [](std::byte byte) { return ~byte; });
  int code = 0;
  try {
    code = function(mine.data(), all.data(), mine.size(), data);
  } catch (const std::exception& error) {
    fail("threw '" + std::string(error.what()) + "'");
  } catch (...) {
    fail("threw what is no std::exception");
  }
  if (code != 0) fail("returned " + std::to_string(code));
  if (!std::ranges::equal(mine, own)) {
    fail("returned 0, but `all` does not hold this rank's " + std::to_string(mine.size()) + " bytes in their place");
  }
}

std::vector<std::string> gather_texts(Bootstrap& bootstrap, std::string_view mine) {
  const std::vector<std::size_t> lengths = gather_values(bootstrap, mine.size());
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded(mine);
  padded.resize(longest);
  std::string all(longest * lengths.size(), '\0');
  bootstrap.all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) texts.push_back(all.substr(rank * longest, lengths[rank]));
  return texts;
}

std::unique_ptr<Bootstrap> join(const Settings& settings, const JoinExchange& given) {
  std::unique_ptr<Bootstrap> bootstrap;
  if (given.function != nullptr || given.ranks != 0) check_numbers(given);
  if (given.function != nullptr) {
    bootstrap = std::make_unique<CallbackBootstrap>(given);
  } else if (given.ranks == 1) {
    bootstrap = std::make_unique<SingleBootstrap>();
  } else if (given.ranks > 1) {
    bootstrap = join_as(settings, given.rank, given.ranks);
  } else if (const std::optional<int> fd = number_in(job_socket::kFdVariable)) {
    bootstrap = join_launcher(*fd, settings.timeout_s);
  } else {
    bootstrap = join_environment(settings);
    if (bootstrap == nullptr) bootstrap = std::make_unique<SingleBootstrap>();
  }
  if (bootstrap->rank() == 0) {
    // Logged as errors, because the default level shows only errors, and a value that the user meant to set is not set.
    for (const std::string& warning : settings.warnings) log(LogLevel::error, warning);
  }
  return bootstrap;
}

}  // namespace torii
