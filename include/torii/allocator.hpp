// SPDX-License-Identifier: Apache-2.0
// Containers of the standard library in memory that peers reach in place. Included by torii.hpp.
#pragma once

#include <torii/request.hpp>

#include <cstddef>
#include <limits>
#include <new>
#include <utility>

namespace torii {
inline namespace cpp {

/// `std::vector<float, torii::Allocator<float>> data(1000, torii::Allocator<float>(context.shared()))`. Memory of
/// torii_allocate, 64-byte aligned. A container keeps its context. Throws std::bad_alloc when the arena or
/// the machine has no more; torii_last_error() says which.
template <typename Element>
class Allocator {
 public:
  using value_type = Element;
  static_assert(alignof(Element) <= 64);

  explicit Allocator(SharedContext context) noexcept : context_(std::move(context)) {}
  template <typename Other>
  Allocator(const Allocator<Other>& other) noexcept : context_(other.context()) {}

  Element* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(Element)) throw std::bad_array_new_length();
    void* address = nullptr;
    if (torii_allocate(context_.get(), count == 0 ? 1 : count * sizeof(Element), &address) != TORII_OK)
      throw std::bad_alloc();
    return static_cast<Element*>(address);
  }
  void deallocate(Element* address, std::size_t) noexcept { (void)torii_free(context_.get(), address); }
  const SharedContext& context() const noexcept { return context_; }

 private:
  SharedContext context_;
};

template <typename Left, typename Right>
bool operator==(const Allocator<Left>& left, const Allocator<Right>& right) noexcept {
  return left.context() == right.context();
}

}  // namespace cpp
}  // namespace torii
