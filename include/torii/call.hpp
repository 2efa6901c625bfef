// SPDX-License-Identifier: Apache-2.0
// Collective calls over spans: what a torii_call says, with the lengths of its buffers, which Team checks before it
// runs, starts or prepares the call.
#pragma once

#include <torii/torii.h>
#include <torii/sizes.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace torii {
inline namespace cpp {

/// The 16 bits of an IEEE 754 half, or of a bfloat16, for programs without a type of their own for them.
struct float16 {
  std::uint16_t bits;
};
struct bfloat16 {
  std::uint16_t bits;
};
/// The 8 bits of the two floats of the Open Compute Project.
struct float8_e4m3 {
  std::uint8_t bits;
};
struct float8_e5m2 {
  std::uint8_t bits;
};

/// The torii_type of a C++ type. Specialise it for a type of yours that is laid out like one of torii's:
/// `template <> struct torii::TypeOf<my::half> : std::integral_constant<torii_type, TORII_F16> {};`
template <typename Element>
struct TypeOf {
  static_assert(std::is_integral_v<Element> && sizeof(Element) <= 8,
                "torii has no type for this element; specialise torii::TypeOf, or use run() with a torii_call");
  static constexpr torii_type of_size(bool is_signed) {
    if (sizeof(Element) == 1) return is_signed ? TORII_I8 : TORII_U8;
    if (sizeof(Element) == 2) return is_signed ? TORII_I16 : TORII_U16;
    if (sizeof(Element) == 4) return is_signed ? TORII_I32 : TORII_U32;
    return is_signed ? TORII_I64 : TORII_U64;
  }
  static constexpr torii_type value = of_size(std::is_signed_v<Element>);
};
template <>
struct TypeOf<float16> : std::integral_constant<torii_type, TORII_F16> {};
template <>
struct TypeOf<bfloat16> : std::integral_constant<torii_type, TORII_BF16> {};
template <>
struct TypeOf<float8_e4m3> : std::integral_constant<torii_type, TORII_FLOAT8_E4M3> {};
template <>
struct TypeOf<float8_e5m2> : std::integral_constant<torii_type, TORII_FLOAT8_E5M2> {};
template <>
struct TypeOf<bool> : std::integral_constant<torii_type, TORII_BOOL> {};
template <>
struct TypeOf<float> : std::integral_constant<torii_type, TORII_F32> {};
template <>
struct TypeOf<double> : std::integral_constant<torii_type, TORII_F64> {};
template <>
struct TypeOf<std::complex<float>> : std::integral_constant<torii_type, TORII_CF32> {};
template <>
struct TypeOf<std::complex<double>> : std::integral_constant<torii_type, TORII_CF64> {};

template <typename Element>
constexpr torii_type type_of() {
  return TypeOf<std::remove_cv_t<Element>>::value;
}

/// Blocks of unequal lengths, one for each rank: counts[i] elements from displacements[i] on. Without displacements one
/// block follows the other.
template <typename Element>
struct Blocks {
  std::span<Element> data;
  std::span<const std::size_t> counts;
  std::span<const std::size_t> displacements = {};
};

/// Blocks in places of their own, one for each rank, from a range of spans, vectors or the like. Empty blocks need no
/// memory. It keeps the addresses and lengths, not the blocks.
template <typename Element>
class BlockList {
 public:
  using Address = std::conditional_t<std::is_const_v<Element>, const void*, void*>;
  template <typename Range>
  requires(!std::is_same_v<std::remove_cvref_t<Range>, BlockList>) explicit BlockList(Range&& blocks) {
    const auto list = std::make_shared<List>();
    for (auto&& one : blocks) {
      const std::span<Element> block(one);
      list->addresses.push_back(block.data());
      list->counts.push_back(block.size());
    }
    list_ = list;
  }
  const Address* addresses() const noexcept { return list_->addresses.data(); }
  std::span<const std::size_t> counts() const noexcept { return list_->counts; }
  /// Whoever has it may use addresses() and counts() when the list is gone.
  std::shared_ptr<const void> owner() const noexcept { return list_; }

 private:
  struct List {
    std::vector<Address> addresses;
    std::vector<std::size_t> counts;
  };
  std::shared_ptr<const List> list_;
};

/// One call. The buffers, counts and displacements are the caller's and must live until the call has been started;
/// the buffers, until it has ended. A BlockList may go before.
class Call {
 public:
  template <typename Element>
  Call(torii_collective collective, std::span<const Element> input, std::span<Element> result) noexcept
      : input_size_(input.size()), result_size_(result.size()) {
    call_.size = sizeof(call_);
    call_.collective = collective;
    call_.input = input.data();
    call_.result = result.data();
    call_.type = type_of<Element>();
  }

  Call& count(std::size_t count) noexcept {
    call_.count = count;
    return *this;
  }
  Call& op(torii_op op) noexcept {
    call_.op = op;
    return *this;
  }
  Call& root(int root) noexcept {
    call_.root = root;
    return *this;
  }
  template <typename Element>
  Call& input_blocks(const Blocks<Element>& blocks) noexcept {
    input_ = {true, blocks.counts, blocks.displacements};
    call_.unequal = 1;
    call_.input_counts = blocks.counts.data();
    call_.input_displacements = blocks.displacements.empty() ? nullptr : blocks.displacements.data();
    return *this;
  }
  template <typename Element>
  Call& result_blocks(const Blocks<Element>& blocks) noexcept {
    result_ = {true, blocks.counts, blocks.displacements};
    call_.unequal = 1;
    call_.result_counts = blocks.counts.data();
    call_.result_displacements = blocks.displacements.empty() ? nullptr : blocks.displacements.data();
    return *this;
  }

  template <typename Element>
  Call& input_blocks(const BlockList<const Element>& blocks) noexcept {
    input_ = {true, blocks.counts(), {}, true};
    input_list_ = blocks.owner();
    call_.unequal = 1;
    call_.input_counts = blocks.counts().data();
    call_.input_blocks = blocks.addresses();
    call_.input = nullptr;
    return *this;
  }
  template <typename Element>
  Call& result_blocks(const BlockList<Element>& blocks) noexcept {
    result_ = {true, blocks.counts(), {}, true};
    result_list_ = blocks.owner();
    call_.unequal = 1;
    call_.result_counts = blocks.counts().data();
    call_.result_blocks = blocks.addresses();
    call_.result = nullptr;
    return *this;
  }
  /// The factor of TORII_PREMUL_SUM. It is copied when the call starts or is prepared, and must live until then.
  template <typename Element>
  Call& factor(const Element& factor) noexcept {
    call_.factor = &factor;
    factor_type_ = type_of<Element>();
    return *this;
  }
  template <typename Element>
  Call& factor(const Element&& factor) = delete;

  /// As of torii_call.
  Call& timeout_seconds(double seconds) noexcept {
    call_.timeout_seconds = seconds;
    return *this;
  }

  const torii_call& raw() const noexcept { return call_; }
  /// Says which buffer has a wrong length for member `rank` of a team of `ranks`; empty if all are right.
  std::string problem(int rank, int ranks) const;

 private:
  struct Lengths {
    bool are_given = false;
    std::span<const std::size_t> counts = {};
    std::span<const std::size_t> displacements = {};
    bool is_list = false;
  };
  static std::string short_of(const char* what, std::size_t has, std::size_t needs) {
    if (has == needs) return {};
    return std::string("the ") + what + " has " + std::to_string(has) + " elements and needs " + at_least(needs) +
           std::to_string(needs);
  }
  static std::string outside(const char* what, const Lengths& blocks, std::size_t size, int ranks);

  torii_call call_ = {};
  std::shared_ptr<const void> input_list_;
  std::shared_ptr<const void> result_list_;
  std::size_t input_size_;
  std::size_t result_size_;
  Lengths input_;
  Lengths result_;
  torii_type factor_type_ = TORII_F32;
};

inline std::string Call::outside(const char* what, const Lengths& blocks, std::size_t size, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  if (blocks.is_list && blocks.counts.size() != all) {
    return std::string("the list of blocks of the ") + what + " has " + std::to_string(blocks.counts.size()) +
           " entries for " + std::to_string(ranks) + " ranks";
  }
  if (blocks.counts.size() != all || (!blocks.displacements.empty() && blocks.displacements.size() != all)) {
    return std::string("the ") + what + " has " + std::to_string(blocks.counts.size()) + " counts and " +
           std::to_string(blocks.displacements.size()) + " displacements for " + std::to_string(ranks) + " ranks";
  }
  if (blocks.is_list) return {};
  std::size_t next = 0;
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t begin = blocks.displacements.empty() ? next : blocks.displacements[i];
    if (begin > size || blocks.counts[i] > size - begin) {
      return std::string("block ") + std::to_string(i) + " of the " + what + ", " + std::to_string(blocks.counts[i]) +
             " elements from " + std::to_string(begin) + " on, is not within its " + std::to_string(size) + " elements";
    }
    next = begin + blocks.counts[i];
  }
  return {};
}

inline std::string Call::problem(int rank, int ranks) const {
  const bool is_root = rank == call_.root;
  const std::size_t all = size_product(call_.count, static_cast<std::size_t>(ranks));
  std::string text;
  const auto also = [&text](std::string more) {
    if (text.empty()) text = std::move(more);
  };
  if (call_.factor != nullptr && factor_type_ != call_.type) {
    also(std::string("the factor is of type ") + torii_type_name(factor_type_) + ", the vectors of " +
         torii_type_name(call_.type));
  }
  switch (call_.collective) {
    case TORII_BARRIER:
      break;
    case TORII_BROADCAST:
      also(short_of("buffer", result_size_, call_.count));
      break;
    case TORII_ALLREDUCE:
    case TORII_SCAN:
    case TORII_EXSCAN:
    case TORII_REDUCE:
      also(short_of("input", input_size_, call_.count));
      if (call_.collective != TORII_REDUCE || is_root) also(short_of("result", result_size_, call_.count));
      break;
    case TORII_ALL_GATHER:
    case TORII_GATHER:
      also(short_of("input", input_size_, call_.count));
      if (call_.collective == TORII_GATHER && !is_root) break;
      also(call_.unequal != 0 ? outside("result", result_, result_size_, ranks)
                              : short_of("result", result_size_, all));
      break;
    case TORII_SCATTER:
    case TORII_REDUCE_SCATTER:
      if (call_.collective == TORII_REDUCE_SCATTER || is_root) {
        also(call_.unequal != 0 ? outside("input", input_, input_size_, ranks) : short_of("input", input_size_, all));
      }
      if (call_.collective == TORII_REDUCE_SCATTER && call_.unequal != 0 && text.empty()) {
        also(short_of("result", result_size_, input_.counts[static_cast<std::size_t>(rank)]));
      } else {
        also(short_of("result", result_size_, call_.count));
      }
      break;
    case TORII_ALLTOALL:
      if (call_.unequal != 0) {
        also(outside("input", input_, input_size_, ranks));
        also(outside("result", result_, result_size_, ranks));
      } else {
        also(short_of("input", input_size_, all));
        also(short_of("result", result_size_, all));
      }
      break;
  }
  return text.empty() ? text : std::string(torii_collective_name(call_.collective)) + ": " + text;
}

/// The element of a result, from which that of the input follows.
template <typename Element>
using Input = std::span<const std::type_identity_t<Element>>;

template <typename Element>
Call allreduce(Input<Element> input, std::span<Element> result, torii_op op = TORII_SUM) noexcept {
  return Call(TORII_ALLREDUCE, input, result).count(result.size()).op(op);
}
template <typename Element>
Call broadcast(std::span<Element> data, int root) noexcept {
  return Call(TORII_BROADCAST, std::span<const Element>(), data).count(data.size()).root(root);
}
/// `result` is not looked at but at the root.
template <typename Element>
Call reduce(Input<Element> input, std::span<Element> result, int root, torii_op op = TORII_SUM) noexcept {
  return Call(TORII_REDUCE, input, result).count(input.size()).root(root).op(op);
}
/// Rank r gets what ranks 0 to r have, combined in rank order.
template <typename Element>
Call scan(Input<Element> input, std::span<Element> result, torii_op op = TORII_SUM) noexcept {
  return Call(TORII_SCAN, input, result).count(input.size()).op(op);
}
/// Rank r gets what ranks 0 to r - 1 have; rank 0's `result` is left as it is.
template <typename Element>
Call exscan(Input<Element> input, std::span<Element> result, torii_op op = TORII_SUM) noexcept {
  return Call(TORII_EXSCAN, input, result).count(input.size()).op(op);
}
/// `input` is this rank's block of everybody's `result`.
template <typename Element>
Call all_gather(Input<Element> input, std::span<Element> result) noexcept {
  return Call(TORII_ALL_GATHER, input, result).count(input.size());
}
template <typename Element>
Call all_gather(Input<Element> input, const Blocks<Element>& result) noexcept {
  return Call(TORII_ALL_GATHER, input, result.data).count(input.size()).result_blocks(result);
}
/// Block i of rank i, each in a place of its own.
template <typename Element>
Call all_gather(Input<Element> input, const BlockList<Element>& result) noexcept {
  return Call(TORII_ALL_GATHER, input, std::span<Element>()).count(input.size()).result_blocks(result);
}
/// `result` is this rank's block of the combined inputs.
template <typename Element>
Call reduce_scatter(Input<Element> input, std::span<Element> result, torii_op op = TORII_SUM) noexcept {
  return Call(TORII_REDUCE_SCATTER, input, result).count(result.size()).op(op);
}
/// counts[i] is the length of rank i's block, the same on all ranks.
template <typename Element>
Call reduce_scatter(Input<Element> input, std::span<Element> result, std::span<const std::size_t> counts,
                    torii_op op = TORII_SUM) noexcept {
  return Call(TORII_REDUCE_SCATTER, input, result)
      .count(result.size())
      .op(op)
      .input_blocks(Blocks<const Element>{input, counts});
}
/// Block i of `input` goes to rank i, block i of `result` comes from there.
template <typename Element>
Call alltoall(Input<Element> input, std::span<Element> result, int ranks) noexcept {
  return Call(TORII_ALLTOALL, input, result).count(ranks > 0 ? result.size() / static_cast<std::size_t>(ranks) : 0);
}
template <typename Element>
Call alltoall(const Blocks<const std::type_identity_t<Element>>& input, const Blocks<Element>& result) noexcept {
  return Call(TORII_ALLTOALL, input.data, result.data).input_blocks(input).result_blocks(result);
}
template <typename Element>
Call alltoall(const BlockList<const std::type_identity_t<Element>>& input, const BlockList<Element>& result) noexcept {
  return Call(TORII_ALLTOALL, std::span<const Element>(), std::span<Element>())
      .input_blocks(input)
      .result_blocks(result);
}
/// `result` is this rank's block; `input` holds all of them at the root and is not looked at elsewhere.
template <typename Element>
Call scatter(Input<Element> input, std::span<Element> result, int root) noexcept {
  return Call(TORII_SCATTER, input, result).count(result.size()).root(root);
}
template <typename Element>
Call scatter(const Blocks<const std::type_identity_t<Element>>& input, std::span<Element> result, int root) noexcept {
  return Call(TORII_SCATTER, input.data, result).count(result.size()).root(root).input_blocks(input);
}
template <typename Element>
Call scatter(const BlockList<const std::type_identity_t<Element>>& input, std::span<Element> result,
             int root) noexcept {
  return Call(TORII_SCATTER, std::span<const Element>(), result).count(result.size()).root(root).input_blocks(input);
}
/// `input` is this rank's block; `result` takes all of them at the root and is not looked at elsewhere.
template <typename Element>
Call gather(Input<Element> input, std::span<Element> result, int root) noexcept {
  return Call(TORII_GATHER, input, result).count(input.size()).root(root);
}
template <typename Element>
Call gather(Input<Element> input, const Blocks<Element>& result, int root) noexcept {
  return Call(TORII_GATHER, input, result.data).count(input.size()).root(root).result_blocks(result);
}
template <typename Element>
Call gather(Input<Element> input, const BlockList<Element>& result, int root) noexcept {
  return Call(TORII_GATHER, input, std::span<Element>()).count(input.size()).root(root).result_blocks(result);
}

}  // namespace cpp
}  // namespace torii
