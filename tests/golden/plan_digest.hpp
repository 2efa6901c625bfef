// SPDX-License-Identifier: Apache-2.0
// Digests of plans and of declared orders. A digest is XXH3-64 of every field, each written with a fixed width, so that
// it does not depend on names, on the layout of a struct, or on the machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/selection/catalogue.hpp"
#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii::golden {

/// Bytes to digest. A number has 8 bytes, and a text follows its length, so that no two sequences give equal bytes.
class Bytes {
 public:
  void number(std::int64_t value);
  void text(std::string_view value);
  std::uint64_t digest() const;

 private:
  std::string bytes_;
};

/// All fields of all plans, with the whole order of a pairwise exchange.
std::uint64_t digest_of(std::span<const Plan> plans);

/// As above, then the order that the algorithm declares for each block (scan and exscan: for each rank), if the
/// collective combines.
std::uint64_t digest_of(const Algorithm& algorithm, const PlanRequest& request);

/// Appends one expression: a leaf with its rank, or a fold with whether it is rounded and its two operands.
void append(const ExpressionPool& pool, ExpressionId id, Bytes& bytes);

/// 16 hexadecimal digits.
std::string hexadecimal(std::uint64_t digest);

}  // namespace torii::golden
