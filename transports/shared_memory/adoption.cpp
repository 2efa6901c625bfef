// SPDX-License-Identifier: Apache-2.0
// Counts adopted pages, finds them a place in the arena, exchanges them and undoes that.
#include "transports/shared_memory/adoption.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"
#include "transports/shared_memory/page_exchange.hpp"

namespace torii::shared_memory {
namespace {

/// A window has this part of the arena as room on both sides of the first range it is made for.
constexpr std::size_t kMarginPart = 128;
/// Only that many windows have such margins; later ones take what they need, so that the arena remains usable for
/// others.
constexpr std::size_t kWideWindows = 16;
/// From this size on the arena allocates whole pages.
constexpr std::size_t kAlignedBytes = 64 * 1024;

/// The pages that contain any of the bytes.
AddressRange pages_of(const void* address, std::size_t bytes, std::size_t page_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  std::uintptr_t end = 0;
  if (address == nullptr || bytes == 0 || __builtin_add_overflow(first, bytes, &end) ||
      __builtin_add_overflow(end, page_bytes - 1, &end)) {
    throw Error(Status::invalid_argument, "cannot adopt " + std::to_string(bytes) + " bytes at " + hex(first) +
                                              "; give the address and length of memory of this process");
  }
  return {first / page_bytes * page_bytes, end / page_bytes * page_bytes};
}

std::string text(AddressRange range) { return "[" + hex(range.first) + ", " + hex(range.end) + ")"; }

}  // namespace

std::mutex& Adoption::exchanging() {
  static std::mutex mutex;
  return mutex;
}

std::size_t Adoption::page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Adoption::Adoption(Arena& arena) : arena_(arena) {
  struct stat file {};
  if (fstat(arena.fd(), &file) != 0) throw Error(Status::internal, "fstat of the arena failed");
  inode_ = file.st_ino;
  device_major_ = major(file.st_dev);
  device_minor_ = minor(file.st_dev);
}

Adoption::~Adoption() {
  const std::lock_guard lock(exchanging());
  leave_forks();
  if (pages_.empty()) return;
  try {
    const std::vector<MappedRange> mappings = read_mappings();
    for (const auto& [first, pages] : pages_) restore({{first, pages.end}, pages.window}, mappings);
  } catch (const std::exception& error) {
    log(LogLevel::warn, std::string("adopted memory stays shared, contents kept: ") + error.what());
  }
}

void Adoption::adopt(const void* address, std::size_t bytes) {
  const AddressRange range = pages_of(address, bytes, page_bytes());
  const std::lock_guard lock(exchanging());
  join_forks();
  release_kept();
  const std::vector<MappedRange> mappings = read_mappings();
  check_still_there(range, mappings);
  const std::vector<AddressRange> parts = fresh_parts(range);
  const auto own_stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  for (const AddressRange part : parts) {
    std::string why = why_not_adoptable(mappings, part);
    if (part.first <= own_stack && own_stack < part.end) why = "memory at " + hex(own_stack) + " is the stack";
    if (why.empty()) continue;
    throw Error(Status::unsupported, "cannot adopt the pages " + text(range) + ": " + why +
                                         "; private anonymous memory (malloc, new, mmap) can be adopted");
  }
  try {
    Window& window = window_for(range);
    std::vector<Piece> freed;
    freed.reserve(pages_.size() + parts.size() + 2);
    kept_.reserve(kept_.size() + 2 * parts.size());
    add(range, window);
    try {
      entries_.reserve(pages_.size());
      table_.reserve(pages_.size());
      exchange(parts, window);
    } catch (...) {
      remove(range, freed);
      throw;
    }
  } catch (...) {
    drop_unused_windows();
    throw;
  }
  publish();
}

void Adoption::give_back(const void* address, std::size_t bytes) {
  const AddressRange range = pages_of(address, bytes, page_bytes());
  const std::lock_guard lock(exchanging());
  release_kept();
  std::vector<Piece> freed;
  freed.reserve(pages_.size());
  kept_.reserve(kept_.size() + pages_.size());
  remove(range, freed);
  publish();
  std::size_t missing = 0;
  std::size_t done = 0;
  try {
    const std::vector<MappedRange> mappings = freed.empty() ? std::vector<MappedRange>() : read_mappings();
    for (; done < freed.size(); ++done) {
      const Piece& piece = freed[done];
      missing += piece.range.bytes() - restore(piece, mappings);
      release(piece);
      piece.window->left = piece.window->held;
    }
  } catch (const std::exception& error) {
    for (; done < freed.size(); ++done) freed[done].window->stranded = true;
    throw Error(Status::no_resource,
                "the pages " + text(range) + " stay shared memory, contents kept: " + error.what());
  }
  drop_unused_windows();
  if (missing == 0) return;
  throw Error(Status::invalid_argument,
              std::to_string(missing) + " bytes of the adopted pages " + text(range) +
                  " were freed, moved or unmapped before they were deregistered; deregister memory first");
}

/// Memory that was adopted before must still be the arena's, or calls on it would be wrong.
void Adoption::check_still_there(AddressRange range, const std::vector<MappedRange>& mappings) const {
  for (const auto& [first, pages] : pages_) {
    const AddressRange wanted = range.common({first, pages.end});
    if (wanted.first >= wanted.end) continue;
    std::uintptr_t at = wanted.first;
    for (const MappedRange& mapping : mappings) {
      if (mapping.range.first > at || mapping.range.end <= at || at >= wanted.end) continue;
      if (!is_own(mapping) || mapping.offset + (at - mapping.range.first) != pages.window->offset_of(at)) break;
      at = mapping.range.end;
    }
    if (at >= wanted.end) continue;
    throw Error(Status::invalid_argument, "memory at " + hex(at) +
                                              " was adopted before and then freed, moved or unmapped; deregister it "
                                              "before it is registered anew");
  }
}

std::vector<AddressRange> Adoption::fresh_parts(AddressRange range) const {
  std::vector<AddressRange> parts;
  std::uintptr_t at = range.first;
  for (const auto& [first, pages] : pages_) {
    if (pages.end <= at || first >= range.end) continue;
    if (first > at) parts.push_back({at, first});
    at = pages.end;
  }
  if (at < range.end) parts.push_back({at, range.end});
  return parts;
}

/// A window that contains the range, and its pages that are adopted already. A window in which a forked child still
/// sees the range is avoided, since the contents there would change under the child.
Adoption::Window& Adoption::window_for(AddressRange range) {
  Window* shared = nullptr;
  for (const auto& [first, pages] : pages_) {
    if (pages.end <= range.first || first >= range.end) continue;
    if (shared == nullptr) shared = pages.window;
    if (shared == pages.window && shared->range.contains(range) && shared->is_usable()) continue;
    throw Error(Status::no_resource, "the pages " + text(range) +
                                         " share some with other registered memory, and there is no room beside that "
                                         "in the arena; register one range that holds both, or raise TORII_ARENA");
  }
  if (shared != nullptr) return *shared;
  for (Window& window : windows_) {
    if (window.range.contains(range) && window.is_usable() && !is_kept(range, window)) return window;
  }
  return make_window(range);
}

Adoption::Window& Adoption::make_window(AddressRange range) {
  Window& window = windows_.emplace_back();
  const std::size_t margin = arena_.capacity_bytes() / kMarginPart / page_bytes() * page_bytes();
  if (windows_.size() <= kWideWindows) {
    window.range = {range.first - std::min<std::uintptr_t>(margin, range.first), range.end + margin};
    try {
      window.offset = arena_.allocate(std::max(window.range.bytes(), kAlignedBytes), Backing::on_touch);
      return window;
    } catch (const Error&) {
      // If that fails, without margins.
    }
  }
  window.range = range;
  try {
    window.offset = arena_.allocate(std::max(range.bytes(), kAlignedBytes), Backing::on_touch);
  } catch (...) {
    windows_.pop_back();
    throw;
  }
  return window;
}

void Adoption::hold() noexcept {
  const std::lock_guard lock(exchanging());
  for (Window& window : windows_) window.held = true;
}

void Adoption::end_hold() noexcept {
  const std::lock_guard lock(exchanging());
  for (Window& window : windows_) window.held = window.left = false;
  drop_unused_windows();
}

void Adoption::drop_unused_windows() noexcept {
  std::erase_if(windows_, [this](const Window& window) {
    const auto uses = [&](const auto& pages) { return pages.second.window == &window; };
    if (!window.is_usable() || std::any_of(pages_.begin(), pages_.end(), uses)) return false;
    if (is_kept(window.range, window)) return false;
    arena_.free(window.offset);
    return true;
  });
}

/// Maps the arena's pages under the parts, or leaves all unchanged.
void Adoption::exchange(const std::vector<AddressRange>& parts, Window& window) {
  std::vector<Replacement> replacements;
  replacements.reserve(parts.size());
  std::size_t done = 0;
  for (const AddressRange part : parts) take_back(part, window);
  try {
    for (const AddressRange part : parts) {
      arena_.reserve(window.offset_of(part.first), part.bytes());
      replacements.push_back(Replacement::of_file(arena_.fd(), window.offset_of(part.first), part.bytes()));
    }
    for (; done < parts.size(); ++done) replacements[done].take_place(parts[done].first);
  } catch (...) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      try {
        if (i < done) Replacement::of_private_memory(parts[i].bytes()).take_place(parts[i].first);
        release({parts[i], &window});
      } catch (const Error&) {
        window.stranded = true;  // the contents are in the arena and stay there
      }
    }
    throw;
  }
}

void Adoption::split_at(std::uintptr_t address) {
  auto after = pages_.lower_bound(address);
  if (after == pages_.begin()) return;
  Pages& before = std::prev(after)->second;
  if (before.end <= address) return;
  pages_.emplace_hint(after, address, Pages(before));
  before.end = address;
}

/// Adds one use to the pages of the range. Throws nothing after its first change.
void Adoption::add(AddressRange range, Window& window) {
  split_at(range.first);
  split_at(range.end);
  std::map<std::uintptr_t, Pages> fresh;
  for (const AddressRange part : fresh_parts(range)) fresh.emplace(part.first, Pages{part.end, &window, 0});
  pages_.merge(fresh);
  for (auto at = pages_.lower_bound(range.first); at != pages_.end() && at->first < range.end; ++at) {
    ++at->second.count;
  }
}

/// Removes one use, and tells which pages have none left. `freed` has room for them.
void Adoption::remove(AddressRange range, std::vector<Piece>& freed) noexcept {
  for (auto at = pages_.lower_bound(range.first); at != pages_.end() && at->first < range.end;) {
    if (--at->second.count != 0) {
      ++at;
      continue;
    }
    freed.push_back({{at->first, at->second.end}, at->second.window});
    at = pages_.erase(at);
  }
}

/// Publishes the entries. Pages that are neighbours in memory and in the arena become one entry.
void Adoption::publish() noexcept {
  entries_.clear();
  for (const auto& [first, pages] : pages_) {
    const auto offset = static_cast<std::int64_t>(pages.window->offset_of(first));
    if (!entries_.empty()) {
      AddressTable::Entry& last = entries_.back();
      if (last.range.end == first && last.offset + static_cast<std::int64_t>(last.range.bytes()) == offset) {
        last.range.end = pages.end;
        continue;
      }
    }
    entries_.push_back({{first, pages.end}, offset});
  }
  table_.set(entries_);
}

/// Maps private pages wherever pages of the piece are mapped now, and returns how many bytes were still in their place.
std::size_t Adoption::restore(const Piece& piece, const std::vector<MappedRange>& mappings) {
  const std::size_t offset = piece.window->offset_of(piece.range.first);
  std::size_t stood = 0;
  for (const MappedRange& mapping : mappings) {
    if (!is_own(mapping)) continue;
    const AddressRange there = {mapping.offset, mapping.offset + mapping.range.bytes()};
    const AddressRange common = there.common({offset, offset + piece.range.bytes()});
    if (common.first >= common.end) continue;
    const std::uintptr_t place = mapping.range.first + (common.first - mapping.offset);
    Replacement::of_private_memory(common.bytes()).take_place(place);
    if (place == piece.range.first + (common.first - offset)) stood += common.bytes();
  }
  return stood;
}

/// Gives the piece back to the arena, unless a forked child still sees it. kept_ has room.
void Adoption::release(const Piece& piece) noexcept {
  if (is_seen_by_child(piece)) return kept_.push_back(piece);
  arena_.release(piece.window->offset_of(piece.range.first), piece.range.bytes());
}

/// Gives back what the children that have ended were the last to see.
void Adoption::release_kept() noexcept {
  const auto gone = std::erase_if(kept_, [this](const Piece& piece) {
    if (is_seen_by_child(piece)) return false;
    arena_.release(piece.window->offset_of(piece.range.first), piece.range.bytes());
    return true;
  });
  if (gone != 0) drop_unused_windows();
}

bool Adoption::is_kept(AddressRange range, const Window& window) const noexcept {
  return std::ranges::any_of(kept_, [&](const Piece& piece) {
    const AddressRange common = piece.range.common(range);
    return piece.window == &window && common.first < common.end;
  });
}

/// The range is adopted again, in the same window. kept_ has room for one more.
void Adoption::take_back(AddressRange range, const Window& window) noexcept {
  for (std::size_t i = kept_.size(); i-- > 0;) {
    const Piece piece = kept_[i];
    const AddressRange common = piece.range.common(range);
    if (piece.window != &window || common.first >= common.end) continue;
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    if (piece.range.first < common.first) kept_.push_back({{piece.range.first, common.first}, piece.window});
    if (common.end < piece.range.end) kept_.push_back({{common.end, piece.range.end}, piece.window});
  }
}

/// Whether this maps the arena's file and is not the arena itself.
bool Adoption::is_own(const MappedRange& mapping) const noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(arena_.base());
  return mapping.is_shared && mapping.inode == inode_ && mapping.device_major == device_major_ &&
         mapping.device_minor == device_minor_ && !AddressRange{base, base + arena_.bytes()}.contains(mapping.range);
}

}  // namespace torii::shared_memory
