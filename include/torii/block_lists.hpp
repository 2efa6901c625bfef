// SPDX-License-Identifier: Apache-2.0
// Collectives on lists of blocks, as functions of Team. Included by torii.hpp.
#pragma once

#include <torii/torii.h>
#include <torii/call.hpp>

#include <span>
#include <type_traits>

namespace torii {
inline namespace cpp {

/// Each block is in a place of its own; block_lists.h says how these calls pair. A list with another number of blocks
/// than ranks is refused, where it is looked at. `Team` has run().
template <typename Team>
class CallsOnBlockLists {
 public:
  template <typename Element>
  [[nodiscard]] torii_status all_gather(Input<Element> input, const BlockList<Element>& result) noexcept {
    return team().run(cpp::all_gather(input, result));
  }
  template <typename Element>
  [[nodiscard]] torii_status alltoall(const BlockList<const std::type_identity_t<Element>>& input,
                                      const BlockList<Element>& result) noexcept {
    return team().run(cpp::alltoall(input, result));
  }
  template <typename Element>
  [[nodiscard]] torii_status scatter(const BlockList<const std::type_identity_t<Element>>& input,
                                     std::span<Element> result, int root) noexcept {
    return team().run(cpp::scatter(input, result, root));
  }
  template <typename Element>
  [[nodiscard]] torii_status gather(Input<Element> input, const BlockList<Element>& result, int root) noexcept {
    return team().run(cpp::gather(input, result, root));
  }

 protected:
  CallsOnBlockLists() = default;
  ~CallsOnBlockLists() = default;

 private:
  Team& team() noexcept { return static_cast<Team&>(*this); }
};

}  // namespace cpp
}  // namespace torii
