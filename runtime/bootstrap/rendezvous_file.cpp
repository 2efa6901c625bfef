// SPDX-License-Identifier: Apache-2.0
// Writes the file under another name and renames it, so that readers see the whole file or none.
#include "runtime/bootstrap/rendezvous_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/numbers.hpp"
#include "runtime/base/reason.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr std::string_view kTitle = "torii meeting 1";
constexpr std::size_t kFileBytesMax = 8192;
constexpr std::size_t kAddressesMax = 32;
constexpr std::size_t kHexDigits = 64;

/// A keyed hash of the text, so that a file with another job token is refused.
std::string check_of(std::string_view body, std::string_view job_token) {
  wire::FrameHead head;
  head.bytes = body.size();
  return wire::hex(wire::seal(wire::job_key(job_token), head, std::as_bytes(std::span(body))));
}

/// Removes the first line from the text and returns it without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool take_prefix(std::string_view& line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return false;
  line.remove_prefix(prefix.size());
  return true;
}

std::optional<int> whole(std::string_view text, int low, int high) {
  const auto value = parse_number<int>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<Address> parse_listen(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::optional<int> port = whole(line.substr(space + 1), 1, 65535);
  if (!port) return std::nullopt;
  try {
    return Address::parse(std::string(line.substr(0, space)), *port);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The text of the file at `path`, or nothing with the reason.
std::optional<std::string> read_file(const std::string& path, std::string& why_not) {
  // Does not follow a link, and does not wait for the writer of a pipe.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about {};
  if (!file.open() || fstat(file.get(), &about) != 0) {
    why_not = path + " cannot be read" + reason();
    return std::nullopt;
  }
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & 077) != 0) {
    why_not = path + " is not a file of this user that nobody else can read";
    return std::nullopt;
  }
  std::string text(kFileBytesMax + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

/// The file while rank 0 waits. The destructor removes it unless another job has replaced it.
class PostedFile {
 public:
  PostedFile(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {
    std::string why_not;
    const std::optional<std::string> there = read_file(path_, why_not);
    struct stat about {};
    const bool exists = lstat(path_.c_str(), &about) == 0;
    if (exists && !(there && there->starts_with(kTitle))) {
      throw Error(Status::invalid_argument,
                  "TORII_RENDEZVOUS=file:" + path_ +
                      ": something else than a rendezvous file of this user is there; name a "
                      "path that nothing else uses",
                  0);
    }
    // A fixed name, so that the draft of a killed job is replaced too.
    const std::string draft = path_ + ".draft";
    unlink(draft.c_str());
    write_draft(draft);
    if (rename(draft.c_str(), path_.c_str()) == 0) return;
    const Error error(Status::invalid_argument, "TORII_RENDEZVOUS: cannot make the file " + path_ + reason(), 0);
    unlink(draft.c_str());
    throw Error(error);
  }
  PostedFile(const PostedFile&) = delete;
  PostedFile& operator=(const PostedFile&) = delete;
  ~PostedFile() {
    std::string why_not;
    if (read_file(path_, why_not) == text_) unlink(path_.c_str());
  }

 private:
  void write_draft(const std::string& draft) const {
    const Descriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.open()) {
      throw Error(Status::invalid_argument, "TORII_RENDEZVOUS: cannot make a file beside " + path_ + reason(), 0);
    }
    if (write(file.get(), text_.data(), text_.size()) == static_cast<ssize_t>(text_.size()) && fsync(file.get()) == 0) {
      return;
    }
    const Error error(Status::no_resource, "TORII_RENDEZVOUS: cannot write " + draft + reason(), 0);
    unlink(draft.c_str());
    throw Error(error);
  }

  std::string path_;
  std::string text_;
};

std::unique_ptr<Bootstrap> join_as_rank_0(const Settings& settings, const TcpIdentity& identity,
                                          const std::string& path) {
  std::vector<Descriptor> listeners;
  RendezvousFile file;
  file.ranks = identity.ranks;
  file.secret = wire::hex(wire::random_nonce());
  for (const Interface& one : select_interfaces(settings.interfaces, interfaces_of_host())) {
    if (listeners.size() == kAddressesMax) break;
    listeners.push_back(
        listen_on(one.address.with_port(0), {settings.port_low, settings.port_high}, queue_length(identity.ranks)));
    file.addresses.push_back(Address::of_socket(listeners.back().get()));
  }
  const PostedFile posted(path, print_rendezvous_file(file, settings.job_token));
  return make_tcp_bootstrap(
      identity, admit_ranks(identity, std::move(listeners), wire::job_key(settings.job_token + file.secret)));
}

}  // namespace

std::string print_rendezvous_file(const RendezvousFile& file, std::string_view job_token) {
  std::string text = std::string(kTitle) + "\nranks " + std::to_string(file.ranks) + "\nsecret " + file.secret + "\n";
  for (const Address& one : file.addresses) {
    text += "listen " + one.host() + " " + std::to_string(one.port()) + "\n";
  }
  return text + "check " + check_of(text, job_token) + "\n";
}

std::optional<RendezvousFile> parse_rendezvous_file(std::string_view text, std::string_view job_token,
                                                    std::string& why_not) {
  const std::string_view whole_text = text;
  why_not = "it is not a whole rendezvous file of this version";
  RendezvousFile file;
  std::string_view line = take_line(text);
  if (line != kTitle || whole_text.size() > kFileBytesMax) return std::nullopt;
  line = take_line(text);
  const std::optional<int> ranks = take_prefix(line, "ranks ") ? whole(line, 1, 1 << 20) : std::nullopt;
  if (!ranks) return std::nullopt;
  file.ranks = *ranks;
  line = take_line(text);
  if (!take_prefix(line, "secret ") || line.size() != kHexDigits) return std::nullopt;
  file.secret = line;
  std::size_t body = whole_text.size() - text.size();
  for (line = take_line(text); take_prefix(line, "listen "); line = take_line(text)) {
    const std::optional<Address> address = parse_listen(line);
    if (!address || file.addresses.size() == kAddressesMax) return std::nullopt;
    file.addresses.push_back(*address);
    body = whole_text.size() - text.size();
  }
  if (file.addresses.empty() || !take_prefix(line, "check ") || line.size() != kHexDigits || !text.empty()) {
    return std::nullopt;
  }
  if (line != check_of(whole_text.substr(0, body), job_token)) {
    why_not = "it was made with another job token (TORII_JOB_TOKEN), or is damaged";
    return std::nullopt;
  }
  return file;
}

std::unique_ptr<Bootstrap> join_file(const Settings& settings, int rank, int ranks, const std::string& path) {
  const TcpIdentity identity{rank, ranks, settings.timeout_s};
  if (rank == 0) return join_as_rank_0(settings, identity, path);
  const auto find = [&](std::string& why_not) -> std::optional<Rendezvous> {
    const std::optional<std::string> text = read_file(path, why_not);
    if (!text) return std::nullopt;
    std::string what;
    std::optional<RendezvousFile> file = parse_rendezvous_file(*text, settings.job_token, what);
    if (!file) {
      why_not = path + ": " + what;
      return std::nullopt;
    }
    // Addresses in this host's networks are tried first; this host may not reach the other networks.
    const std::vector<Interface> own = interfaces_of_host();
    std::ranges::stable_partition(file->addresses, [&](const Address& one) { return is_directly_connected(one, own); });
    return Rendezvous{std::move(file->addresses), wire::job_key(settings.job_token + file->secret)};
  };
  // Refusals are not final: the file of an earlier job may name a port where another job listens now, until rank 0
  // replaces it.
  std::vector<TcpLink> links;
  links.push_back(dial_rank_0(identity, {find, false}));
  return make_tcp_bootstrap(identity, std::move(links));
}

}  // namespace torii
