// SPDX-License-Identifier: Apache-2.0
// Serves the rounds: receives parts, completes or fails the round, answers.
#include "tools/torii-run/gather_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace torii::tools {
namespace {

using job_socket::Reply;
using job_socket::Request;

std::shared_ptr<std::vector<std::byte>> make_answer(const Reply& reply) {
  auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(reply));
  std::memcpy(bytes->data(), &reply, sizeof(reply));
  return bytes;
}

std::shared_ptr<std::vector<std::byte>> make_refusal(Status status, int rank, const std::string& sentence) {
  Reply reply;
  reply.status = static_cast<std::int32_t>(status);
  reply.rank = rank;
  reply.bytes = sentence.size();
  const auto bytes = make_answer(reply);
  const auto text = std::as_bytes(std::span(sentence));
  bytes->insert(bytes->end(), text.begin(), text.end());
  return bytes;
}

constexpr std::uint32_t kBeginsAny = job_socket::kBegins | job_socket::kBeginsInContext;

}  // namespace

GatherServer::GatherServer(std::vector<Descriptor> sockets) : links_(sockets.size()) {
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) links_[rank].socket = std::move(sockets[rank]);
}

void GatherServer::watch(std::vector<pollfd>& entries) const {
  for (const Link& link : links_) {
    const short events = link.outgoing != nullptr ? POLLIN | POLLOUT : POLLIN;
    if (link.socket.open()) entries.push_back({link.socket.get(), events, 0});
  }
}

std::optional<GatherServer::Clock::time_point> GatherServer::deadline() const {
  if (!deadline_) return std::nullopt;
  return Clock::now() + std::chrono::milliseconds(deadline_->nap_ms(1000));
}

void GatherServer::serve() {
  for (Link& link : links_) {
    if (link.socket.open()) receive(link);
  }
  answer_verdicts();
  end_round();
  for (Link& link : links_) {
    if (link.outgoing != nullptr) send(link);
  }
}

void GatherServer::rank_ended(int rank, const std::string& how) {
  Link& link = links_[static_cast<std::size_t>(rank)];
  link.ended = how;
  link.outgoing = nullptr;
  if (first_ended_ < 0) first_ended_ = rank;
}

void GatherServer::rank_replaced(int rank, Descriptor socket) {
  const auto verdict =
      make_refusal(Status::peer_lost, rank,
                   "rank " + std::to_string(rank) + " " + links_[static_cast<std::size_t>(rank)].ended +
                       " and has been replaced: make a new context");
  // A join in which no round has ended yet goes on: its ranks wait for the new process.
  for (Link& one : links_) {
    one.verdict = verdict;
    one.knows_verdict = true;
    one.needs_context = true;
  }
  Link& link = links_[static_cast<std::size_t>(rank)];
  link = Link();
  link.socket = std::move(socket);
  const auto is_gone = [](const Link& one) { return !one.ended.empty(); };
  const auto gone = std::ranges::find_if(links_, is_gone);
  first_ended_ = gone == links_.end() ? -1 : static_cast<int>(gone - links_.begin());
  deadline_.reset();
}

/// A rank that comes late to a failed join must hear of that, or it would wait for ranks that have left.
void GatherServer::answer_verdicts() {
  for (Link& link : links_) {
    const Request* const part = part_of(link);
    if (part == nullptr || link.verdict == nullptr) continue;
    const std::uint32_t ends_it = link.needs_context ? job_socket::kBegins : kBeginsAny;
    if ((part->timeout_ms & ends_it) != 0 && link.knows_verdict) {
      link.verdict = nullptr;
      link.needs_context = false;
    } else {
      link.knows_verdict = true;
      answer(link, link.verdict);
    }
  }
}

void GatherServer::receive(Link& link) {
  std::array<std::byte, 65536> piece;
  while (true) {
    const ssize_t got = recv(link.socket.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) {
      link.inbox.insert(link.inbox.end(), piece.begin(), piece.begin() + got);
      // One request at a time: a sender of more than the largest request is not a rank of ours.
      if (link.inbox.size() > sizeof(Request) + job_socket::kPartBytesMax) link.socket = Descriptor();
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      link.socket = Descriptor();
    } else if (errno == EAGAIN) {
      return;
    }
    if (!link.socket.open()) return;
  }
}

void GatherServer::send(Link& link) {
  while (link.sent < link.outgoing->size()) {
    const ssize_t sent = ::send(link.socket.get(), link.outgoing->data() + link.sent, link.outgoing->size() - link.sent,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      link.sent += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      break;  // the rank is gone; the kernel reports its end
    }
  }
  link.outgoing = nullptr;
  link.sent = 0;
}

/// The whole request that waits in the inbox, or nullptr.
const Request* GatherServer::part_of(const Link& link) const {
  if (link.inbox.size() < sizeof(Request)) return nullptr;
  const auto* const request = reinterpret_cast<const Request*>(link.inbox.data());
  return link.inbox.size() - sizeof(Request) >= request->bytes ? request : nullptr;
}

void GatherServer::end_round() {
  int first = -1;  // the lowest rank whose part has arrived
  int missing = -1;
  for (int rank = 0; rank < static_cast<int>(links_.size()); ++rank) {
    const Link& link = links_[static_cast<std::size_t>(rank)];
    const Request* const part = part_of(link);
    if (part == nullptr && missing < 0) missing = rank;
    if (part == nullptr) continue;
    if (first < 0) first = rank;
    if (!deadline_) deadline_.emplace((part->timeout_ms & ~kBeginsAny) * std::int64_t{1'000'000});
  }
  if (first < 0) return;
  if (first_ended_ >= 0) {
    return fail(Status::peer_lost, first_ended_,
                "rank " + std::to_string(first_ended_) + " " + links_[static_cast<std::size_t>(first_ended_)].ended +
                    " before all ranks had exchanged what they need to join");
  }
  if (missing >= 0) {
    if (!deadline_->is_over()) return;
    return fail(Status::timeout, missing, "rank " + std::to_string(missing) + " has not joined in time");
  }

  const Request lead = *part_of(links_[0]);
  Reply reply;
  reply.bytes = lead.bytes * links_.size();
  const auto whole = make_answer(reply);
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    const Request& part = *part_of(links_[rank]);
    if (part.magic != job_socket::kMagic || part.bytes != lead.bytes) {
      return fail(Status::mismatch, static_cast<int>(rank),
                  "rank " + std::to_string(rank) + " exchanges " + std::to_string(part.bytes) + " bytes and rank 0 " +
                      std::to_string(lead.bytes) + ": they do not run the same program or the same version");
    }
    const auto begin = links_[rank].inbox.begin() + sizeof(Request);
    whole->insert(whole->end(), begin, begin + static_cast<std::ptrdiff_t>(part.bytes));
  }
  answer(whole);
}

/// Sends every rank whose part has arrived these bytes, and drops the part.
void GatherServer::answer(const std::shared_ptr<const Bytes>& bytes) {
  for (Link& link : links_) {
    if (part_of(link) != nullptr) answer(link, bytes);
  }
  deadline_.reset();
}

void GatherServer::answer(Link& link, const std::shared_ptr<const Bytes>& bytes) {
  const auto part_bytes = static_cast<std::ptrdiff_t>(sizeof(Request) + part_of(link)->bytes);
  link.inbox.erase(link.inbox.begin(), link.inbox.begin() + part_bytes);
  if (!link.ended.empty() || !link.socket.open()) return;
  link.outgoing = bytes;
  link.sent = 0;
}

void GatherServer::fail(Status status, int rank, const std::string& sentence) {
  const auto bytes = make_refusal(status, rank, sentence);
  for (Link& link : links_) {
    if (status == Status::peer_lost) break;  // the dead rank's end is the answer to all that follows
    // Later rounds of this join would not match.
    link.verdict = bytes;
    link.knows_verdict = part_of(link) != nullptr;
  }
  answer(bytes);
}

}  // namespace torii::tools
