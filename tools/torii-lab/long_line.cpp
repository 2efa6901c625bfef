// SPDX-License-Identifier: Apache-2.0
// Keeps packets in queues, each with its due time. A TAP device delivers the data that TCP sent at once (up to 16 KiB)
// in one piece with a header, and accepts the same form: one read and one write serve a dozen packets.
#include "tools/torii-lab/long_line.hpp"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "runtime/base/status.hpp"
#include "tools/exit_codes.hpp"

namespace torii::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPacketMost = 66000;  // 64 KiB, Ethernet's header and the one of virtio
// The capacity of a queue: 8 ms at 60 Gbit/s. The rate limit of the sending device keeps queues far shorter.
constexpr std::size_t kQueueBytesMost = 64u << 20;

/// One direction.
class Queue {
 public:
  Queue(int from, int to, Clock::duration delay) : from_(from), to_(to), delay_(delay) {}

  /// Reads the packets that are there now, at most a few dozen. False if the device has failed.
  bool take() {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce; ++i) {
      std::vector<std::byte> packet = std::move(spare_);
      packet.resize(kPacketMost);
      const ssize_t got = read(from_, packet.data(), packet.size());
      if (got <= 0) {
        spare_ = std::move(packet);
        // EBADFD and EIO if the device is down.
        return got < 0 && (errno == EAGAIN || errno == EINTR || errno == EIO || errno == EBADFD);
      }
      packet.resize(static_cast<std::size_t>(got));
      if (bytes_ + packet.size() > kQueueBytesMost) continue;  // lost, as on any overrun line
      bytes_ += packet.size();
      packets_.push_back({Clock::now() + delay_, std::move(packet)});
    }
    return true;
  }
  void deliver(Clock::time_point now) {
    while (!packets_.empty() && packets_.front().due <= now) {
      Packet& first = packets_.front();
      bytes_ -= first.bytes.size();
      // A device that is down or full loses packets; TCP sends them again.
      if (write(to_, first.bytes.data(), first.bytes.size()) >= 0) spare_ = std::move(first.bytes);
      packets_.pop_front();
    }
  }
  Clock::time_point next_due() const { return packets_.empty() ? Clock::time_point::max() : packets_.front().due; }

 private:
  struct Packet {
    Clock::time_point due;
    std::vector<std::byte> bytes;
  };
  int from_;
  int to_;
  Clock::duration delay_;
  std::size_t bytes_ = 0;
  std::deque<Packet> packets_;
  std::vector<std::byte> spare_;
};

}  // namespace

Descriptor open_line_end(const std::string& name) {
  Descriptor end(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (!end.open() || ioctl(end.get(), TUNSETIFF, &request) != 0 ||
      ioctl(end.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) {
    throw Error(Status::unsupported, "cannot make the TAP device " + name + " (/dev/net/tun): " + std::strerror(errno));
  }
  return end;
}

void carry_packets(int first, int second, double delay_ms) {
  const auto delay = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(delay_ms));
  std::array<Queue, 2> queues = {Queue(first, second, delay), Queue(second, first, delay)};
  for (;;) {
    std::array<pollfd, 2> ends = {pollfd{first, POLLIN, 0}, pollfd{second, POLLIN, 0}};
    const Clock::time_point due = std::min(queues[0].next_due(), queues[1].next_due());
    timespec wait{};
    if (due != Clock::time_point::max()) {
      const auto left = std::max(Clock::duration::zero(), due - Clock::now());
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      wait.tv_sec = seconds.count();
      wait.tv_nsec = std::chrono::nanoseconds(left - seconds).count();
    }
    ppoll(ends.data(), ends.size(), due == Clock::time_point::max() ? nullptr : &wait, nullptr);
    for (std::size_t i = 0; i < queues.size(); ++i) {
      if ((ends[i].revents & POLLNVAL) != 0) return;
      if ((ends[i].revents & POLLIN) != 0 && !queues[i].take()) return;
    }
    const Clock::time_point now = Clock::now();
    for (Queue& queue : queues) queue.deliver(now);
  }
}

void carry_line(int first, int second, double delay_ms) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Packets leave within 1 us of their due times, instead of the kernel's usual 50 us, and ahead of the ranks' work.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  setpriority(PRIO_PROCESS, 0, -10);
  carry_packets(first, second, delay_ms);
  _exit(kNotPossible);
}

}  // namespace torii::tools
