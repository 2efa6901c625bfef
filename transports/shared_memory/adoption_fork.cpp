// SPDX-License-Identifier: Apache-2.0
// Adopted pages of a forked child. They are absent there (MADV_DONTFORK): a child that shared them would damage its
// parent's heap. The handlers of fork put private pages in their place.
//
// The first and last page of a buffer can hold other data of the heap, which a child changes when it frees or
// allocates: these are copies from before the fork, as of all other memory. Pages between them belong to the buffer
// alone and are mapped privately from the arena's file, so a fork copies nothing long: the child sees what the parent
// stores there later, until it stores there itself.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "transports/shared_memory/adoption.hpp"

namespace torii::shared_memory {

/// Of the process. Guarded by exchanging(), which a fork holds from before to after.
struct Adoption::Forks {
  std::vector<const Adoption*> adoptions;
  bool has_handlers = false;
  std::byte* edges = nullptr;  ///< copies of first and last pages, two for each piece; nullptr: none, or no memory
  std::size_t edges_bytes = 0;
};

Adoption::Forks& Adoption::forks() {
  static Forks* const forks = new Forks;  // a fork may come while other static objects are destroyed
  return *forks;
}

void Adoption::join_forks() {
  Forks& all = forks();
  if (!all.has_handlers) {
    // Without handlers a child that touches adopted pages ends.
    all.has_handlers = pthread_atfork(
                           before_fork, [] { after_fork(false); }, [] { after_fork(true); }) == 0;
  }
  if (std::ranges::find(all.adoptions, this) == all.adoptions.end()) all.adoptions.push_back(this);
}

void Adoption::leave_forks() noexcept { std::erase(forks().adoptions, this); }

/// Calls `visit(adoption, range, offset)` for each piece.
template <class Visit>
void Adoption::for_each_piece(Visit&& visit) {
  for (const Adoption* const adoption : forks().adoptions) {
    for (const auto& [first, pages] : adoption->pages_)
      visit(*adoption, AddressRange{first, pages.end}, pages.window->offset_of(first));
  }
}

void Adoption::before_fork() noexcept {
  exchanging().lock();
  Forks& all = forks();
  const std::size_t page = page_bytes();
  std::size_t pieces = 0;
  for_each_piece([&](const Adoption&, AddressRange, std::size_t) { ++pieces; });
  if (pieces == 0) return;
  all.edges_bytes = 2 * pieces * page;
  void* const memory = mmap(nullptr, all.edges_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  all.edges = static_cast<std::byte*>(memory);
  // From the file, since the addresses are the program's: it may have unmapped them.
  std::byte* to = all.edges;
  for_each_piece([&](const Adoption& adoption, AddressRange range, std::size_t offset) {
    for (const std::size_t at : {offset, offset + range.bytes() - page}) {
      if (pread(adoption.arena_.fd(), to, page, static_cast<off_t>(at)) != static_cast<ssize_t>(page))
        std::memset(to, 0, page);
      to += page;
    }
  });
}

void Adoption::after_fork(bool is_child) noexcept {
  Forks& all = forks();
  if (is_child) {
    if (all.edges != nullptr) give_child_pages();
    // Its pages are its own now, and a child of its own inherits them as all memory.
    all.adoptions.clear();
  }
  if (all.edges != nullptr) munmap(all.edges, all.edges_bytes);
  all.edges = nullptr;
  exchanging().unlock();
}

void Adoption::give_child_pages() noexcept {
  const std::size_t page = page_bytes();
  const std::byte* from = forks().edges;
  for_each_piece([&](const Adoption& adoption, AddressRange range, std::size_t offset) {
    const std::byte* const first_page = std::exchange(from, from + 2 * page);
    void* const place = reinterpret_cast<void*>(range.first);
    // Never over what the program has mapped there since.
    void* const made =
        mmap(place, range.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             adoption.arena_.fd(), static_cast<off_t>(offset));
    if (made == MAP_FAILED) return;
    if (made != place) {  // kernels before 4.17 take the place for a hint
      munmap(made, range.bytes());
      return;
    }
    std::memcpy(place, first_page, page);
    std::memcpy(reinterpret_cast<void*>(range.end - page), first_page + page, page);
  });
}

}  // namespace torii::shared_memory
