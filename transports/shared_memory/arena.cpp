// SPDX-License-Identifier: Apache-2.0
// A memfd, its mapping, and a first-fit allocator that keeps free pages out of memory.
#include "transports/shared_memory/arena.hpp"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/page.hpp"
#include "runtime/base/platform.hpp"
#include "runtime/base/reason.hpp"
#include "runtime/base/status.hpp"
#include "runtime/devices/cpus.hpp"
#include "runtime/devices/memory_limits.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::size_t kSmall = 64;
constexpr std::size_t kBig = 64 * 1024;

constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }
constexpr std::size_t round_down(std::size_t value, std::size_t to) { return value / to * to; }

/// Asked for in pieces: a signal undoes and repeats the piece that it interrupts, and others take memory meanwhile.
constexpr std::size_t kPiece = std::size_t{8} << 20;
/// At most this much is taken without asking, and this much has to remain, since others ask at the same time.
constexpr std::size_t kUnasked = std::size_t{16} << 20;
constexpr std::size_t kSpare = std::size_t{16} << 20;

/// The soft limit; SIZE_MAX if there is none.
std::size_t limit_of(__rlimit_resource_t resource) {
  rlimit limit{};
  getrlimit(resource, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : limit.rlim_cur;
}

std::string limit_text(__rlimit_resource_t resource) {
  const std::size_t limit = limit_of(resource);
  return limit == SIZE_MAX ? "unlimited" : std::to_string(limit) + " bytes";
}

/// Why a mapping was refused with this errno, and which limit to raise.
std::string mapping_limits(int refused) {
  // After mlockall(MCL_FUTURE) the kernel counts the whole mapping, and refuses it with this errno.
  if (refused == EAGAIN) {
    return "the process locks what it maps (mlockall), and its limit of locked memory (ulimit -l) is " +
           limit_text(RLIMIT_MEMLOCK);
  }
  return "its limits are: address space (ulimit -v) " + limit_text(RLIMIT_AS) + ", file size (ulimit -f) " +
         limit_text(RLIMIT_FSIZE);
}

}  // namespace

int prefer_node(void* base, std::size_t bytes, int node) noexcept {
  // Debian 12's C library declares no mbind().
  constexpr int kNodesMost = 1024;
  constexpr int kWordBits = 8 * sizeof(unsigned long);
  unsigned long nodes[kNodesMost / kWordBits] = {};
  if (node < 0 || node >= kNodesMost) return EINVAL;
  nodes[node / kWordBits] = 1UL << node % kWordBits;
  return syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, nodes, kNodesMost + 1, 0) == 0 ? 0 : errno;
}

Mapping::Mapping(int fd, std::size_t bytes) : bytes_(bytes) {
  // In two steps: after mlockall(MCL_FUTURE) the kernel takes all pages of a mapping that is accessible from the start.
  // In this way it takes and locks each page on first touch.
  void* const address = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  const bool is_mapped = address != MAP_FAILED;
  if (!is_mapped || mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) {
    const int refused = errno;
    if (is_mapped) munmap(address, bytes);
    throw Error(Status::no_resource, "cannot map an arena of " + std::to_string(bytes) + " bytes (" +
                                         std::strerror(refused) +
                                         "); set TORII_ARENA lower: " + mapping_limits(refused));
  }
  base_ = static_cast<std::byte*>(address);
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  Mapping taken(std::move(other));
  std::swap(base_, taken.base_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

std::size_t Arena::possible_bytes(std::size_t wanted_bytes, int arenas) {
  // Growing a file past this limit would end the process with SIGXFSZ.
  const std::size_t file_bytes_max = limit_of(RLIMIT_FSIZE);
  int refused = 0;
  // Ranks that are threads of one process ask at the same time, and would find no room beside each other's probes.
  static std::mutex probing;
  const std::lock_guard lock(probing);
  for (std::size_t bytes = round_down(wanted_bytes, kBig); bytes >= kArenaBytesMin;
       bytes = round_down(bytes / 2, kBig)) {
    if (bytes > file_bytes_max) continue;
    std::size_t together = 0;
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(arenas), &together)) continue;
    void* const probe = mmap(nullptr, together, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
      refused = errno;
      continue;
    }
    munmap(probe, together);
    return bytes;
  }
  throw Error(Status::no_resource, "this process cannot map " + std::to_string(arenas) + " arenas of even " +
                                       std::to_string(kArenaBytesMin >> 20) + " MiB: " + mapping_limits(refused));
}

Arena::Arena(std::size_t bytes) : bytes_(bytes), fd_(memfd_create("torii-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!fd_.open()) throw Error(Status::no_resource, "cannot make the arena's memfd" + reason());
  if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
    throw Error(Status::no_resource, "cannot size the arena to " + std::to_string(bytes) + " bytes" + reason());
  }
  // If a peer shrank the file, every rank that touches it would end with SIGBUS.
  if (fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw Error(Status::no_resource, "cannot seal the arena's memfd" + reason());
  }
  mapping_ = Mapping(fd_.get(), bytes);
  // If this is refused, as in containers without CAP_SYS_NICE, pages are placed where they are first touched.
  if (const auto node = home_node(allowed_cpus())) (void)prefer_node(base(), bytes, *node);
  free_.emplace(0, bytes);
}

std::size_t Arena::used_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

bool Arena::contains(const void* address, std::size_t bytes) const noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const auto base = reinterpret_cast<std::uintptr_t>(mapping_.base());
  return first >= base && first - base <= bytes_ && bytes <= bytes_ - (first - base);
}

std::size_t Arena::allocate(std::size_t bytes, Backing backing) {
  if (bytes == 0) throw Error(Status::invalid_argument, "an allocation of 0 bytes; ask for at least 1");
  if (bytes > capacity_bytes()) {
    throw Error(Status::no_resource, "an allocation of " + std::to_string(bytes) +
                                         " bytes is larger than the arena of " + std::to_string(capacity_bytes()) +
                                         (is_pinned() ? " that the fabric has pinned" : "") + "; raise TORII_ARENA");
  }
  ask_platform(bytes);
  const std::lock_guard lock(mutex_);
  const bool big = bytes >= kBig;
  const std::size_t rounded = round_up(bytes, big ? kBig : kSmall);
  // Made first: after this free() needs no memory for the allocation.
  Ranges made = {{0, rounded}};
  Ranges::node_type range = made.extract(made.begin());
  const std::size_t offset = take(rounded, big ? kBig : kSmall);
  range.key() = offset;
  try {
    if (backing == Backing::reserved && !is_pinned()) populate(offset, rounded);
  } catch (...) {
    give_back(std::move(range));
    throw;
  }
  used_.insert(std::move(range));
  used_bytes_ += rounded;
  // Large allocations have whole pages, and free pages are holes; small ones may share a page with a neighbour.
  if (!big) std::memset(base() + offset, 0, rounded);
  return offset;
}

std::vector<std::size_t> Arena::used_offsets() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> offsets;
  offsets.reserve(used_.size());
  for (const auto& [offset, bytes] : used_) offsets.push_back(offset);
  return offsets;
}

std::size_t Arena::bytes_at(std::size_t offset) const {
  const std::lock_guard lock(mutex_);
  return find(offset)->second;
}

Arena::Ranges::const_iterator Arena::find(std::size_t offset) const {
  const auto found = used_.find(offset);
  if (found != used_.end()) return found;
  throw Error(Status::invalid_argument, "nothing was allocated at offset " + std::to_string(offset) + " of the arena");
}

void Arena::free(std::size_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = find(offset);
  used_bytes_ -= found->second;
  give_back(used_.extract(found));
}

/// First fit: the lowest place that is large enough. Pins more if there is none. Throws Error{no_resource}.
std::size_t Arena::take(std::size_t bytes, std::size_t alignment) {
  std::optional<std::size_t> offset = find_room(bytes, alignment);
  if (!offset && is_pinned()) {
    pin_more(bytes);
    offset = find_room(bytes, alignment);
  }
  if (offset) return *offset;
  throw Error(Status::no_resource,
              "the arena of " + std::to_string(capacity_bytes()) + " bytes has no " + std::to_string(bytes) +
                  " bytes in one piece left (" + std::to_string(used_bytes_) + " are in use); " +
                  (extents_.size() == kExtentsMost ? "it has as many extents as can be pinned" : "raise TORII_ARENA"));
}

std::optional<std::size_t> Arena::find_room(std::size_t bytes, std::size_t alignment) {
  for (auto place = free_.begin(); place != free_.end(); ++place) {
    const auto [first, length] = *place;
    const std::optional<std::size_t> offset = first_in({first, length}, bytes, alignment);
    if (!offset) continue;
    const std::size_t behind = first + length - (*offset + bytes);
    if (behind != 0) free_.emplace(*offset + bytes, behind);
    if (*offset == first) {
      free_.erase(place);
    } else {
      place->second = *offset - first;
    }
    return offset;
  }
  return {};
}

/// The first offset in a free part, so that the bytes lie in one extent if memory is pinned.
std::optional<std::size_t> Arena::first_in(const Extent& part, std::size_t bytes,
                                           std::size_t alignment) const noexcept {
  const auto in = [&](std::size_t begin, std::size_t end) -> std::optional<std::size_t> {
    const std::size_t offset = round_up(begin, alignment);
    if (offset > end || end - offset < bytes) return {};
    return offset;
  };
  if (!is_pinned()) return in(part.offset, part.end());
  for (const Extent& one : extents_) {
    const auto offset = in(std::max(part.offset, one.offset), std::min(part.end(), one.end()));
    if (offset) return offset;
  }
  return {};
}

/// Joins the range with its free neighbours and makes holes of the pages that became free.
void Arena::give_back(Ranges::node_type range) noexcept {
  const std::size_t offset = range.key();
  const std::size_t bytes = range.mapped();
  std::size_t first = offset;
  std::size_t end = offset + bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      first = before->first;
      next = free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == end) {
    end += next->second;
    free_.erase(next);
  }
  range.key() = first;
  range.mapped() = end - first;
  free_.insert(std::move(range));

  const std::size_t hole_first = std::max(round_up(first, kPageBytes), round_down(offset, kPageBytes));
  const std::size_t hole_end = std::min(round_down(end, kPageBytes), round_up(offset + bytes, kPageBytes));
  if (hole_first < hole_end) give_back_pages(hole_first, hole_end - hole_first);
}

void Arena::give_back_pages(std::size_t offset, std::size_t bytes) noexcept {
  if (is_pinned() || keepers_ != 0) {
    std::memset(base() + offset, 0, bytes);
  } else {
    punch(offset, bytes);
  }
}

void Arena::punch(std::size_t offset, std::size_t bytes) noexcept {
  while (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                   static_cast<off_t>(bytes)) != 0) {
    // Without a hole the pages must at least be zero, because allocate() promises that.
    if (errno == EINTR) continue;
    std::memset(base() + offset, 0, bytes);
    break;
  }
}

void Arena::ask_platform(std::size_t bytes) {
  if (platform().grants(bytes)) return;
  throw Error(Status::no_resource, "the machine refuses " + std::to_string(bytes) + " bytes of shared memory");
}

/// Takes the pages of a range from the machine. Throws Error{no_resource}; give_back() then makes the holes.
void Arena::populate(std::size_t offset, std::size_t bytes) {
  if (bytes > kPiece) ask_for(bytes, bytes);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(kPiece, bytes - done);
    ask_for(bytes, piece);
    if (fallocate(fd_.get(), 0, static_cast<off_t>(offset + done), static_cast<off_t>(piece)) == 0) {
      done += piece;
    } else if (errno != EINTR) {
      throw Error(Status::no_resource, "cannot get " + std::to_string(bytes) + " bytes of shared memory" + reason());
    }
  }
}

/// Throws if the machine does not have `bytes` more, of `together`: the kernel grants memory that it does not have, and
/// later ends some process. The less is left, the more often this asks.
void Arena::ask_for(std::size_t together, std::size_t bytes) {
  constexpr std::size_t kShare = 16;  // others take from the rest too
  const std::size_t unasked = unasked_bytes_.load(std::memory_order_relaxed);
  if (bytes <= unasked) {
    unasked_bytes_.store(unasked - bytes, std::memory_order_relaxed);
    return;
  }
  const MemoryLeft left = memory_left();
  if (left.bytes < bytes || left.bytes - bytes < kSpare) {
    throw Error(Status::no_resource, "an allocation of " + std::to_string(together) +
                                         " bytes exceeds the memory that is available: " + std::to_string(left.bytes) +
                                         " bytes are left of " + left.limit + ", and " + std::to_string(kSpare) +
                                         " must stay");
  }
  unasked_bytes_.store(std::min(kUnasked, (left.bytes - bytes - kSpare) / kShare), std::memory_order_relaxed);
}

}  // namespace torii::shared_memory
