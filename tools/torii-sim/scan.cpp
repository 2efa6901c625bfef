// SPDX-License-Identifier: Apache-2.0
// Reads ranges and multiplies them out.
#include "tools/torii-sim/scan.hpp"

#include <utility>

#include "runtime/base/numbers.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/transport.hpp"
#include "tools/torii-sim/options.hpp"

namespace torii::tools {
namespace {

constexpr int kExtentMost = 1 << 20;
constexpr int kRanksMost = 1 << 14;
constexpr std::size_t kShapesMost = 100'000;

[[noreturn]] void bad(std::string_view text, const std::string& why) {
  throw Error(Status::invalid_argument, "--scan '" + std::string(text) + "': " + why);
}

/// The parts on both sides of `..`, or the whole twice.
std::pair<std::string_view, std::string_view> sides(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {text, text};
  return {text.substr(0, dots), text.substr(dots + 2)};
}

Range read_range(std::string_view text, int most, std::string_view whole) {
  const auto [low, high] = sides(text);
  const Range range = {parse_number<int>(low).value_or(0), parse_number<int>(high).value_or(0)};
  if (range.low < 1 || range.high > most || range.low > range.high) {
    bad(whole,
        "'" + std::string(text) + "' is no range; write a number or LOW..HIGH, from 1 to " + std::to_string(most));
  }
  return range;
}

std::vector<std::string> read_shapes(std::string_view text, std::string_view kind, std::string_view whole) {
  std::vector<std::string> shapes = {std::string(kind)};
  for (char before = ':';; before = 'x') {
    const std::size_t cross = text.find('x');
    std::string_view token = text.substr(0, cross);
    const bool ends = !token.empty() && token.back() == 'm';
    if (ends) token.remove_suffix(1);
    const Range range = read_range(token, kExtentMost, whole);
    std::vector<std::string> longer;
    if (shapes.size() * static_cast<std::size_t>(range.high - range.low + 1) > kShapesMost) {
      bad(whole, "more than " + std::to_string(kShapesMost) + " shapes");
    }
    for (const std::string& shape : shapes) {
      for (int extent = range.low; extent <= range.high; ++extent) {
        longer.push_back(shape + before + std::to_string(extent) + (ends ? "m" : ""));
      }
    }
    shapes = std::move(longer);
    if (cross == std::string_view::npos) return shapes;
    text.remove_prefix(cross + 1);
  }
  return shapes;
}

std::vector<std::size_t> read_sizes(std::string_view text, std::string_view whole) {
  const std::size_t star = text.find('*');
  const int factor = star == std::string_view::npos ? 4 : parse_number<int>(text.substr(star + 1)).value_or(0);
  if (factor < 2) {
    bad(whole, "'" + std::string(text.substr(star + 1)) + "' is no factor; it must be a number from 2 on");
  }
  const auto [low, high] = sides(text.substr(0, star));
  const std::size_t first = parse_bytes(low).value_or(0);
  const std::size_t last = parse_bytes(high).value_or(0);
  if (first < 1 || first > last || last > kBytesMost) {
    bad(whole, "'" + std::string(text) + "' is no range of sizes; write bytes or LOW..HIGH, with K, M or G");
  }
  std::vector<std::size_t> sizes;
  const auto step = static_cast<std::size_t>(factor);
  sizes.push_back(first);
  // A product could be beyond what a size can hold.
  while (sizes.back() <= last / step) sizes.push_back(sizes.back() * step);
  return sizes;
}

/// All numbers of ranges separated by commas.
std::vector<int> read_numbers(std::string_view text, int most, std::string_view whole) {
  std::vector<int> numbers;
  for (const std::string_view part : split(text, ',')) {
    const Range range = read_range(part, most, whole);
    for (int number = range.low; number <= range.high; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

Scan read_scan(const std::vector<std::string>& texts, std::string_view kind) {
  Scan scan;
  for (const std::string& whole : texts) {
    const std::size_t equals = whole.find('=');
    const std::string_view what = std::string_view(whole).substr(0, equals);
    const std::string_view value =
        equals == std::string::npos ? std::string_view() : std::string_view(whole).substr(equals + 1);
    if (what == "shapes") {
      for (const std::string_view part : split(value, ',')) {
        const std::vector<std::string> shapes = read_shapes(part, kind, whole);
        scan.topologies.insert(scan.topologies.end(), shapes.begin(), shapes.end());
      }
    } else if (what == "ranks") {
      scan.ranks = read_numbers(value, kRanksMost, whole);
    } else if (what == "engines") {
      scan.engines = read_numbers(value, kEnginesMax, whole);
    } else if (what == "bytes") {
      scan.bytes = read_sizes(value, whole);
    } else {
      bad(whole, "write shapes=2..8x2..8, ranks=2..64, engines=1..8 or bytes=1K..1M");
    }
  }
  return scan;
}

}  // namespace torii::tools
