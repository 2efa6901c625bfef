// SPDX-License-Identifier: Apache-2.0
// Sums over leaves for C++: what torii/leaves.h does, over spans. Included by torii.hpp.
#pragma once

#include <torii/call.hpp>
#include <torii/request.hpp>
#include <torii/sizes.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <utility>

namespace torii {
inline namespace cpp {

/// This rank's leaves among those of all ranks of a team. Made by Team::leaves(); not used after the team is gone.
class Leaves {
 public:
  Leaves(torii_team* team, torii_leaves* handle, std::size_t all, std::size_t first, std::size_t count)
      : team_(team), handle_(handle), all_(all), first_(first), count_(count) {}
  /// The number of leaves of all ranks.
  std::size_t all() const noexcept { return all_; }
  /// This rank has the leaves first() .. first() + count() - 1.
  std::size_t first() const noexcept { return first_; }
  std::size_t count() const noexcept { return count_; }
  const torii_leaves* handle() const noexcept { return handle_.get(); }

  /// `input` has the vectors of this rank's leaves, one behind the other.
  template <typename Element>
  [[nodiscard]] torii_status allreduce(Input<Element> input, std::span<Element> result,
                                       torii_op op = TORII_SUM) noexcept {
    const std::size_t needs = size_product(count_, result.size());
    if (input.size() != needs) return refuse(input.size(), needs);
    return torii_allreduce_leaves(handle(), input.data(), 0, result.data(), result.size(), type_of<Element>(), op);
  }
  /// `result` is the vector of `count` elements at the root, and is not looked at elsewhere.
  template <typename Element>
  [[nodiscard]] torii_status reduce(Input<Element> input, std::span<Element> result, std::size_t count, int root,
                                    torii_op op = TORII_SUM) noexcept {
    const std::size_t needs = size_product(count_, count);
    if (input.size() != needs) return refuse(input.size(), needs);
    if (torii_team_rank(team_) == root && result.size() != count) return refuse(result.size(), count, "result");
    return torii_reduce_leaves(handle(), input.data(), 0, result.data(), count, type_of<Element>(), op, root);
  }
  /// `result` is this rank's block; a leaf has one for each rank.
  template <typename Element>
  [[nodiscard]] torii_status reduce_scatter(Input<Element> input, std::span<Element> result,
                                            torii_op op = TORII_SUM) noexcept {
    const std::size_t needs =
        size_product(count_, size_product(result.size(), static_cast<std::size_t>(torii_team_ranks(team_))));
    if (input.size() != needs) return refuse(input.size(), needs);
    return torii_reduce_scatter_leaves(handle(), input.data(), 0, result.data(), result.size(), type_of<Element>(), op);
  }

  /// The same with leaves that come one by one. `write(leaf, vector)` fills the vector of a leaf, a span as long as
  /// `result`, in ascending order of this rank's leaves. If it throws, this rank refuses the call, and the exception
  /// goes on to the caller.
  template <typename Element, typename Write>
  [[nodiscard]] torii_status allreduce_written(Write&& write, std::span<Element> result, torii_op op = TORII_SUM) {
    return run_written<Element>(write, {TORII_ALLREDUCE, 0, op}, result, result.size(), result.size());
  }
  /// `count` is the number of elements of a leaf.
  template <typename Element, typename Write>
  [[nodiscard]] torii_status reduce_written(Write&& write, std::span<Element> result, std::size_t count, int root,
                                            torii_op op = TORII_SUM) {
    if (torii_team_rank(team_) == root && result.size() != count) return refuse(result.size(), count, "result");
    return run_written<Element>(write, {TORII_REDUCE, root, op}, result, count, count);
  }
  /// The vector of a leaf has a block as long as `result` for each rank.
  template <typename Element, typename Write>
  [[nodiscard]] torii_status reduce_scatter_written(Write&& write, std::span<Element> result, torii_op op = TORII_SUM) {
    const std::size_t vector = size_product(result.size(), static_cast<std::size_t>(torii_team_ranks(team_)));
    return run_written<Element>(write, {TORII_REDUCE_SCATTER, 0, op}, result, result.size(), vector);
  }

 private:
  template <typename Element, typename Write>
  struct Writing {
    Write& write;
    std::size_t elements;
    std::exception_ptr thrown;
    static int call(std::size_t leaf, void* out, void* data) noexcept {
      auto& self = *static_cast<Writing*>(data);
      try {
        self.write(leaf, std::span<Element>(static_cast<Element*>(out), self.elements));
        return 0;
      } catch (...) {
        self.thrown = std::current_exception();
        return 1;
      }
    }
  };
  struct Written {
    torii_collective collective;
    int root;
    torii_op op;
  };
  /// `elements` is the length of a leaf, `count` that of the call.
  template <typename Element, typename Write>
  torii_status run_written(Write& write, const Written& what, std::span<Element> result, std::size_t count,
                           std::size_t elements) {
    Writing<Element, Write> writing = {write, elements, nullptr};
    torii_call call = {};
    call.size = sizeof(call);
    call.collective = what.collective;
    call.result = result.data();
    call.count = count;
    call.type = type_of<Element>();
    call.op = what.op;
    call.root = what.root;
    call.leaves = handle();
    call.leaf = writing.call;
    call.leaf_data = &writing;
    const torii_status status = torii_run(team_, &call);
    if (writing.thrown != nullptr) std::rethrow_exception(writing.thrown);
    return status;
  }
  torii_status refuse(std::size_t has, std::size_t needs, const char* what = "input") noexcept {
    char reason[160];
    (void)std::snprintf(reason, sizeof(reason), "the %s has %zu elements and needs %s%zu, for %zu leaves of this rank",
                        what, has, at_least(needs), needs, count_);
    return torii_refuse(team_, reason);
  }
  struct Destroy {
    void operator()(torii_leaves* leaves) const noexcept { (void)torii_leaves_destroy(leaves); }
  };
  torii_team* team_;
  std::unique_ptr<torii_leaves, Destroy> handle_;
  std::size_t all_;
  std::size_t first_;
  std::size_t count_;
};

/// Makes Leaves of a `Team`.
template <typename Team>
class HasLeaves {
 public:
  /// This rank has `count` of `all` leaves, from `first` on. Collective; throws the same Failure on all ranks if
  /// intervals do not fit together.
  Leaves leaves(std::size_t all, std::size_t first, std::size_t count) const {
    torii_leaves* made = nullptr;
    check(torii_leaves_create(team().handle(), all, first, count, &made));
    return Leaves(team().handle(), made, all, first, count);
  }
  /// The same, dealt in order as torii_split does.
  Leaves leaves(std::size_t all) const {
    std::size_t first = 0;
    std::size_t count = 0;
    check(torii_split(all, team().ranks(), team().rank(), &first, &count));
    return leaves(all, first, count);
  }

 protected:
  HasLeaves() = default;
  ~HasLeaves() = default;

 private:
  const Team& team() const noexcept { return static_cast<const Team&>(*this); }
};

}  // namespace cpp
}  // namespace torii
