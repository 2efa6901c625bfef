// SPDX-License-Identifier: Apache-2.0
// Items whose addresses UCX has while it works on them.
#pragma once

#include <deque>
#include <exception>

namespace torii::ucx {

/// Items never move, and are used again; an item has a pointer `next_free`.
template <class Item>
class Pool {
 public:
  /// A free item, or a new one; nullptr if memory is short.
  Item* take() noexcept {
    if (Item* const item = first_free_) {
      first_free_ = item->next_free;
      return item;
    }
    try {
      return &all_.emplace_back();
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  void give_back(Item& item) noexcept {
    item.next_free = first_free_;
    first_free_ = &item;
  }
  /// Free ones included.
  std::deque<Item>& all() noexcept { return all_; }
  const std::deque<Item>& all() const noexcept { return all_; }

 private:
  std::deque<Item> all_;
  Item* first_free_ = nullptr;
};

}  // namespace torii::ucx
