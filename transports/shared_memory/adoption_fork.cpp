// SPDX-License-Identifier: Apache-2.0
// Adopted pages of a forked child. They are absent there (MADV_DONTFORK): a child that shared them would damage its
// parent's heap. The handlers of fork put private pages in their place.
//
// The first and last page of a buffer can hold other data of the heap, which a child changes when it frees or
// allocates. These pages are copies from before the fork, like all other memory. Pages between them belong to the
// buffer alone and are mapped privately from the arena's file, so a fork copies nothing long. The child sees what the
// parent stores there later, until the child stores there itself.
//
// The file must not lose these pages while a child may read them. So each fork opens the arena's file once more, locks
// the pages for reading, and maps them in the child by that opening. The parent closes its descriptor, and so does the
// child. From then on only mappings of the child, and of children of its own, hold the opening. The kernel drops the
// lock with the last of them, however they end. A pipe whose end only children hold would miss a child that closes what
// it has not opened, as daemons do.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "transports/shared_memory/adoption.hpp"

namespace torii::shared_memory {

namespace {

/// Adopted pages, and where their contents are.
struct ForkedPiece {
  AddressRange range;
  int fd;
  std::size_t offset;
  int closes;  ///< after this piece: a descriptor, or -1
};

/// The data that a fork under way needs on its other side, in a mapping of its own. In a child the heap may miss pages
/// until it has been put in order. First the pieces, then for each of them its first and its last page.
struct ForkUnderWay {
  std::byte* memory;  ///< nullptr: no adopted pages, or no memory for this
  std::size_t bytes;
  std::size_t pieces;
  std::size_t edges_offset;
};

// Guarded by the lock of adoptions, which a fork holds from before to after.
constinit ForkUnderWay under_way = {};
constinit bool has_handlers = false;

/// Another opening of the arena's file, with locks of its own, or -1.
int open_again(int arena_fd) noexcept {
  char path[32];
  (void)std::snprintf(path, sizeof(path), "/proc/self/fd/%d", arena_fd);
  return open(path, O_RDONLY | O_CLOEXEC);
}

struct flock lock_of(short type, std::size_t offset, std::size_t bytes) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = static_cast<off_t>(bytes);
  return lock;
}

bool lock_pages(int fd, std::size_t offset, std::size_t bytes) noexcept {
  struct flock lock = lock_of(F_RDLCK, offset, bytes);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

/// While no other opening of the file has a lock on the pages, no child sees them. A kernel without such locks has also
/// refused those of the forks, so windows are unwatched there.
bool Adoption::is_seen_by_child(const Piece& piece) const noexcept {
  if (piece.window->is_unwatched) return true;
  struct flock lock = lock_of(F_WRLCK, piece.window->offset_of(piece.range.first), piece.range.bytes());
  return fcntl(arena_.fd(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// All adoptions of the process. Guarded in the same way.
std::vector<const Adoption*>& Adoption::adoptions() {
  static auto* const all = new std::vector<const Adoption*>;  // a fork may come while static objects are destroyed
  return *all;
}

void Adoption::join_forks() {
  if (!has_handlers) {
    // Without handlers a child that touches adopted pages ends.
    has_handlers = pthread_atfork(
                       before_fork, [] { after_fork(false); }, [] { after_fork(true); }) == 0;
  }
  if (std::ranges::find(adoptions(), this) == adoptions().end()) adoptions().push_back(this);
}

void Adoption::leave_forks() noexcept { std::erase(adoptions(), this); }

void Adoption::before_fork() noexcept {
  exchanging().lock();
  const std::size_t page = page_bytes();
  ForkUnderWay& fork = under_way;
  fork = {};
  for (const Adoption* const adoption : adoptions()) fork.pieces += adoption->pages_.size();
  if (fork.pieces == 0) return;
  fork.edges_offset = (fork.pieces * sizeof(ForkedPiece) + page - 1) / page * page;
  fork.bytes = fork.edges_offset + 2 * fork.pieces * page;
  void* const memory = mmap(nullptr, fork.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  fork.memory = static_cast<std::byte*>(memory);
  auto* piece = reinterpret_cast<ForkedPiece*>(fork.memory);
  std::byte* to = fork.memory + fork.edges_offset;
  for (const Adoption* const adoption : adoptions()) {
    if (adoption->pages_.empty()) continue;
    const int own = adoption->arena_.fd();
    const int again = open_again(own);
    for (const auto& [first, pages] : adoption->pages_) {
      *piece = {{first, pages.end}, again >= 0 ? again : own, pages.window->offset_of(first), -1};
      const bool is_locked = again >= 0 && lock_pages(again, piece->offset, piece->range.bytes());
      if (!is_locked) pages.window->is_unwatched = true;
      for (const std::size_t at : {piece->offset, piece->offset + piece->range.bytes() - page}) {
        // From the file, since the addresses are the program's: it may have unmapped them.
        if (pread(own, to, page, static_cast<off_t>(at)) != static_cast<ssize_t>(page)) std::memset(to, 0, page);
        to += page;
      }
      ++piece;
    }
    piece[-1].closes = again;
  }
}

void Adoption::after_fork(bool is_child) noexcept {
  if (is_child && under_way.memory != nullptr) give_child_pages();
  // The child's pages are its own now, and a child of its own inherits them as all memory.
  if (is_child) adoptions().clear();
  if (under_way.memory != nullptr) {
    const auto* const pieces = reinterpret_cast<const ForkedPiece*>(under_way.memory);
    for (std::size_t i = 0; i < under_way.pieces; ++i) {
      if (pieces[i].closes >= 0) close(pieces[i].closes);
    }
    munmap(under_way.memory, under_way.bytes);
  }
  exchanging().unlock();
}

/// Touches no memory of the heap.
void Adoption::give_child_pages() noexcept {
  const std::size_t page = page_bytes();
  const auto* const pieces = reinterpret_cast<const ForkedPiece*>(under_way.memory);
  for (std::size_t i = 0; i < under_way.pieces; ++i) {
    const auto& [range, fd, offset, closes] = pieces[i];
    const std::byte* const edges = under_way.memory + under_way.edges_offset + 2 * i * page;
    void* const place = reinterpret_cast<void*>(range.first);
    // Never over what the program has mapped there since.
    void* const made = mmap(place, range.bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, static_cast<off_t>(offset));
    if (made == MAP_FAILED) continue;
    if (made != place) {  // kernels before 4.17 take the place for a hint
      munmap(made, range.bytes());
      continue;
    }
    std::memcpy(place, edges, page);
    std::memcpy(reinterpret_cast<void*>(range.end - page), edges + page, page);
  }
}

}  // namespace torii::shared_memory
