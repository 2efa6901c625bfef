// SPDX-License-Identifier: Apache-2.0
// C++20 over the C interface, header only. Setup throws torii::Failure; operations return a torii_status one must look
// at.
#pragma once

#if __cplusplus < 202002L
#error "torii/torii.hpp needs C++20: compile with -std=c++20"
#endif

#include <torii/torii.h>
#include <torii/allocator.hpp>
#include <torii/block_lists.hpp>
#include <torii/call.hpp>
#include <torii/leaves.hpp>
#include <torii/request.hpp>
#include <torii/send_recv.hpp>
#include <torii/sizes.hpp>
#include <torii/survivors.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace torii {
inline namespace cpp {

class Context;

/// An ordered set of ranks. One caller at a time, unless the team was made with `many_callers`; different teams may be
/// used by different threads at once.
class Team : public SendsAndReceives<Team>,
             public CallsOnBlockLists<Team>,
             public HasLeaves<Team>,
             public HasSurvivors<Team> {
 public:
  using CallsOnBlockLists<Team>::all_gather;
  using CallsOnBlockLists<Team>::alltoall;
  using CallsOnBlockLists<Team>::gather;
  using CallsOnBlockLists<Team>::scatter;

  explicit Team(torii_team* handle, SharedContext context = {}) : handle_(handle, Destroy{std::move(context)}) {}
  int rank() const noexcept { return torii_team_rank(handle_.get()); }
  int ranks() const noexcept { return torii_team_ranks(handle_.get()); }
  torii_team* handle() const noexcept { return handle_.get(); }
  /// TORII_OK, or why the team fails; torii_last_error() has the reason. From any thread.
  [[nodiscard]] torii_status health() const noexcept { return torii_team_health(handle_.get()); }
  /// The rank in the context of a member; -1 if there is no such member.
  int context_rank(int member) const noexcept { return torii_team_context_rank(handle_.get(), member); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// Ranks of equal colour form a team; an empty one for colour -1. Collective.
  Team split(int color, int key, const torii_team_options* options = nullptr) const {
    torii_team* part = nullptr;
    check(torii_team_split(handle_.get(), color, key, options, &part));
    return Team(part, handle_.get_deleter().context);
  }
  /// Runs a call to its end; its forms are in call.hpp, and the functions below are short for them. Buffers of wrong
  /// lengths are refused with TORII_INVALID_ARGUMENT, which counts as this rank's call.
  [[nodiscard]] torii_status run(const Call& call) noexcept {
    return is_refused(call) ? TORII_INVALID_ARGUMENT : torii_run(handle_.get(), &call.raw());
  }
  /// Starts a call: the request says when it has ended. Throws Failure.
  Request start(const Call& call) {
    if (is_refused(call)) throw Failure(TORII_INVALID_ARGUMENT);
    return start(call.raw());
  }
  /// A persistent operation. Throws Failure.
  Request prepare(const Call& call) {
    if (is_refused(call)) throw Failure(TORII_INVALID_ARGUMENT);
    return prepare(call.raw());
  }

  [[nodiscard]] torii_status barrier() noexcept { return torii_barrier(handle_.get()); }
  template <typename Element>
  [[nodiscard]] torii_status allreduce(Input<Element> input, std::span<Element> result,
                                       torii_op op = TORII_SUM) noexcept {
    if (input.size() != result.size()) return run(cpp::allreduce(input, result, op));  // which refuses it
    return torii_allreduce(handle_.get(), input.data(), result.data(), result.size(), type_of<Element>(), op);
  }
  /// In place.
  template <typename Element>
  [[nodiscard]] torii_status allreduce(std::span<Element> data, torii_op op = TORII_SUM) noexcept {
    return torii_allreduce(handle_.get(), data.data(), data.data(), data.size(), type_of<Element>(), op);
  }
  template <typename Element>
  [[nodiscard]] torii_status broadcast(std::span<Element> data, int root) noexcept {
    return torii_broadcast(handle_.get(), data.data(), data.size(), type_of<Element>(), root);
  }
  template <typename Element>
  [[nodiscard]] torii_status reduce(Input<Element> input, std::span<Element> result, int root,
                                    torii_op op = TORII_SUM) noexcept {
    return run(cpp::reduce(input, result, root, op));
  }
  template <typename Element>
  [[nodiscard]] torii_status scan(Input<Element> input, std::span<Element> result, torii_op op = TORII_SUM) noexcept {
    return run(cpp::scan(input, result, op));
  }
  template <typename Element>
  [[nodiscard]] torii_status exscan(Input<Element> input, std::span<Element> result, torii_op op = TORII_SUM) noexcept {
    return run(cpp::exscan(input, result, op));
  }
  template <typename Element>
  [[nodiscard]] torii_status all_gather(Input<Element> input, std::span<Element> result) noexcept {
    return run(cpp::all_gather(input, result));
  }
  template <typename Element>
  [[nodiscard]] torii_status all_gather(Input<Element> input, const Blocks<Element>& result) noexcept {
    return run(cpp::all_gather(input, result));
  }
  template <typename Element>
  [[nodiscard]] torii_status reduce_scatter(Input<Element> input, std::span<Element> result,
                                            torii_op op = TORII_SUM) noexcept {
    return run(cpp::reduce_scatter(input, result, op));
  }
  template <typename Element>
  [[nodiscard]] torii_status reduce_scatter(Input<Element> input, std::span<Element> result,
                                            std::span<const std::size_t> counts, torii_op op = TORII_SUM) noexcept {
    return run(cpp::reduce_scatter(input, result, counts, op));
  }
  template <typename Element>
  [[nodiscard]] torii_status alltoall(Input<Element> input, std::span<Element> result) noexcept {
    return run(cpp::alltoall(input, result, ranks()));
  }
  template <typename Element>
  [[nodiscard]] torii_status alltoall(const Blocks<const std::type_identity_t<Element>>& input,
                                      const Blocks<Element>& result) noexcept {
    return run(cpp::alltoall(input, result));
  }
  template <typename Element>
  [[nodiscard]] torii_status scatter(Input<Element> input, std::span<Element> result, int root) noexcept {
    return run(cpp::scatter(input, result, root));
  }
  template <typename Element>
  [[nodiscard]] torii_status scatter(const Blocks<const std::type_identity_t<Element>>& input,
                                     std::span<Element> result, int root) noexcept {
    return run(cpp::scatter(input, result, root));
  }
  template <typename Element>
  [[nodiscard]] torii_status gather(Input<Element> input, std::span<Element> result, int root) noexcept {
    return run(cpp::gather(input, result, root));
  }
  template <typename Element>
  [[nodiscard]] torii_status gather(Input<Element> input, const Blocks<Element>& result, int root) noexcept {
    return run(cpp::gather(input, result, root));
  }
  /// This rank's rows of a rows x columns matrix become its rows of the columns x rows matrix. Both are dealt by rows
  /// as torii_split says.
  template <typename Element>
  [[nodiscard]] torii_status transpose(std::span<const std::type_identity_t<Element>> input, std::span<Element> result,
                                       std::size_t rows, std::size_t columns) noexcept {
    static_assert(sizeof(Element) <= 16 && std::is_trivially_copyable_v<Element>);
    const std::size_t input_needs = size_product(own_part(rows), columns);
    if (input.size() != input_needs) return refuse("the input of the transpose", input.size(), input_needs);
    const std::size_t result_needs = size_product(own_part(columns), rows);
    if (result.size() != result_needs) return refuse("the result of the transpose", result.size(), result_needs);
    return torii_transpose(handle_.get(), input.data(), result.data(), rows, columns, sizeof(Element));
  }
  /// Dimension d of the result is dimension axes[d] of the input, whose extents are `extents`.
  template <typename Element>
  [[nodiscard]] torii_status transpose(std::span<const std::type_identity_t<Element>> input, std::span<Element> result,
                                       std::span<const std::size_t> extents, std::span<const int> axes) noexcept {
    static_assert(sizeof(Element) <= 16 && std::is_trivially_copyable_v<Element>);
    if (axes.size() != extents.size()) return refuse("the list of axes", axes.size(), extents.size());
    bool is_known = !extents.empty() && axes[0] >= 0 && static_cast<std::size_t>(axes[0]) < extents.size();
    for (const std::size_t extent : extents) is_known = is_known && extent != 0;
    if (is_known) {
      const std::size_t input_needs = part_of(extents, 0);
      if (input.size() != input_needs) return refuse("the input of the transpose", input.size(), input_needs);
      const std::size_t result_needs = part_of(extents, static_cast<std::size_t>(axes[0]));
      if (result.size() != result_needs) return refuse("the result of the transpose", result.size(), result_needs);
    }
    const int dimensions = static_cast<int>(extents.size());
    return torii_transpose_array(handle_.get(), input.data(), result.data(), extents.data(), axes.data(), dimensions,
                                 sizeof(Element));
  }
  /// Item i becomes item destinations[i] of the results of all ranks, one rank's after the other's.
  template <typename Item>
  [[nodiscard]] torii_status permute(std::span<const std::type_identity_t<Item>> input,
                                     std::span<const std::uint64_t> destinations, std::span<Item> result) noexcept {
    static_assert(std::is_trivially_copyable_v<Item>);
    if (destinations.size() != input.size()) {
      return refuse("the list of destinations", destinations.size(), input.size());
    }
    return torii_permute(handle_.get(), input.data(), input.size(), destinations.data(), result.data(), result.size(),
                         sizeof(Item));
  }
  [[nodiscard]] torii_status run(const torii_call& call) noexcept { return torii_run(handle_.get(), &call); }
  Request start(const torii_call& call) {
    torii_request* request = nullptr;
    check(torii_start(handle_.get(), &call, &request));
    return Request(request);
  }
  Request prepare(const torii_call& call) {
    torii_request* request = nullptr;
    check(torii_prepare(handle_.get(), &call, &request));
    return Request(request);
  }

 private:
  friend class HasSurvivors<Team>;
  torii_status refuse(const char* what, std::size_t has, std::size_t needs) noexcept {
    char reason[160];
    (void)std::snprintf(reason, sizeof(reason), "%s has %zu elements and needs %s%zu", what, has, at_least(needs),
                        needs);
    return torii_refuse(handle_.get(), reason);
  }
  bool is_refused(const Call& call) noexcept {
    try {
      const std::string problem = call.problem(rank(), ranks());
      if (problem.empty()) return false;
      (void)torii_refuse(handle_.get(), problem.c_str());
    } catch (const std::exception&) {
      (void)torii_refuse(handle_.get(), "a buffer has a wrong length");  // and there is no memory to say which
    }
    return true;
  }
  /// As torii_split deals `items`.
  std::size_t own_part(std::size_t items) const noexcept {
    std::size_t first = 0;
    std::size_t count = 0;
    (void)torii_split(items, ranks(), rank(), &first, &count);
    return count;
  }
  /// Elements of this rank of an array that is dealt by its dimension `first`.
  std::size_t part_of(std::span<const std::size_t> extents, std::size_t first) const noexcept {
    std::size_t elements = own_part(extents[first]);
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (i != first) elements = size_product(elements, extents[i]);
    }
    return elements;
  }
  /// Has the context too, which so goes after its team, also when another team is assigned.
  struct Destroy {
    SharedContext context;
    void operator()(torii_team* team) const noexcept { (void)torii_team_destroy(team); }
  };
  std::unique_ptr<torii_team, Destroy> handle_;
};

/// Memory that peers map, as a span of elements. It may have none. Throws Failure.
template <typename Element>
class Buffer {
 public:
  Buffer(SharedContext context, std::size_t count) : context_(std::move(context)) {
    void* address = nullptr;
    check(torii_allocate(context_.get(), count == 0 ? 1 : size_product(count, sizeof(Element)), &address));
    span_ = {static_cast<Element*>(address), count};
  }
  Buffer(Buffer&& other) noexcept : context_(std::move(other.context_)), span_(std::exchange(other.span_, {})) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (span_.data() != nullptr) (void)torii_free(context_.get(), span_.data());
  }
  std::span<Element> span() const noexcept { return span_; }
  operator std::span<Element>() const noexcept { return span_; }

 private:
  SharedContext context_;
  std::span<Element> span_;
};

/// Memory of the caller, known to a context while this lives. Must not outlive the memory.
class Region {
 public:
  /// `flags`: 0 or TORII_REGISTER_ADOPT.
  Region(SharedContext context, void* address, std::size_t bytes, unsigned flags) : context_(std::move(context)) {
    check(torii_register(context_.get(), address, bytes, flags, &handle_));
  }
  Region(Region&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Region& operator=(Region&&) = delete;
  ~Region() {
    if (handle_ != nullptr) (void)torii_deregister(context_.get(), handle_);
  }

 private:
  SharedContext context_;
  torii_region* handle_ = nullptr;
};

/// One per process and job. Its teams, buffers, regions and containers keep what they need of it, so it may go before
/// them; requests may not outlive their teams.
class Context {
 public:
  explicit Context(const torii_context_options* options = nullptr) {
    torii_context* context = nullptr;
    check(torii_context_create(options, &context));
    handle_ = SharedContext(context, [](torii_context* last) { (void)torii_context_destroy(last); });
  }
  int rank() const noexcept { return torii_context_rank(handle_.get()); }
  int ranks() const noexcept { return torii_context_ranks(handle_.get()); }
  int nodes() const noexcept { return torii_context_nodes(handle_.get()); }
  int node(int rank) const noexcept { return torii_context_node(handle_.get(), rank); }
  int local_rank() const noexcept { return torii_context_local_rank(handle_.get()); }
  int local_ranks() const noexcept { return torii_context_local_ranks(handle_.get()); }
  torii_context* handle() const noexcept { return handle_.get(); }
  const SharedContext& shared() const noexcept { return handle_; }
  /// The team of all ranks. Collective.
  Team team(const torii_team_options* options = nullptr) const {
    torii_team* team = nullptr;
    check(torii_team_create(handle_.get(), options, &team));
    return Team(team, handle_);
  }
  /// Moves the started operations of all teams once, without waiting; true if one moved. From any thread.
  bool progress() const {
    int moved = 0;
    check(torii_progress(handle_.get(), &moved));
    return moved != 0;
  }
  /// A descriptor for poll() that is readable after started operations have ended. It is the context's: read its 8
  /// bytes, and do not close it. Throws Failure.
  int event_fd() const {
    const int descriptor = torii_context_event_fd(handle_.get());
    if (descriptor < 0) throw Failure(TORII_NO_RESOURCE);
    return descriptor;
  }
  template <typename Element>
  Buffer<Element> allocate(std::size_t count) const {
    return Buffer<Element>(handle_, count);
  }
  /// Makes peers on the node reach the caller's memory in place, until the Region is destroyed.
  template <typename Element>
  Region adopt(std::span<Element> memory) const {
    return Region(handle_, memory.data(), memory.size_bytes(), TORII_REGISTER_ADOPT);
  }

 private:
  SharedContext handle_;
};

}  // namespace cpp
}  // namespace torii
