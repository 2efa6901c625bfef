// SPDX-License-Identifier: Apache-2.0
// As many blocks as copies have been needed at once; a block that is too short is replaced.
#include "api/calls/arena_copies.hpp"

#include <new>

namespace torii {
namespace {

constexpr std::align_val_t kLine{64};

}  // namespace

ArenaCopies::~ArenaCopies() {
  for (const Block& block : blocks_) free(block);
}

ArenaCopies::Block ArenaCopies::make(std::size_t bytes) {
  try {
    return {static_cast<std::byte*>(context_.allocate(bytes)), bytes};
  } catch (const Error& error) {
    if (error.status() != Status::no_resource) throw;
    auto* const address = static_cast<std::byte*>(::operator new(bytes, kLine, std::nothrow));
    if (address == nullptr) throw;
    return {.address = address, .bytes = bytes, .is_in_arena = false};
  }
}

void ArenaCopies::free(const Block& block) noexcept {
  if (block.is_in_arena) {
    context_.free(block.address);
  } else {
    ::operator delete(block.address, kLine);
  }
}

std::byte* ArenaCopies::take(std::size_t bytes) {
  Block* chosen = nullptr;  // the shortest that is long enough, or else the longest
  for (Block& block : blocks_) {
    if (block.is_taken) continue;
    const bool fits = block.bytes >= bytes;
    if (chosen == nullptr || (fits ? chosen->bytes < bytes || block.bytes < chosen->bytes
                                   : chosen->bytes < bytes && block.bytes > chosen->bytes)) {
      chosen = &block;
    }
  }
  if (chosen == nullptr || chosen->bytes < bytes) {
    if (chosen != nullptr) {
      free(*chosen);
      blocks_.erase(blocks_.begin() + (chosen - blocks_.data()));
    }
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(make(bytes));
    chosen = &blocks_.back();
  }
  chosen->is_taken = true;
  return chosen->address;
}

void ArenaCopies::give_back(const std::byte* address) noexcept {
  for (Block& block : blocks_) {
    if (block.address == address) block.is_taken = false;
  }
}

}  // namespace torii
