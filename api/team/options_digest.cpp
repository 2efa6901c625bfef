// SPDX-License-Identifier: Apache-2.0
// Digests of options and settings, and their first difference.
#include "api/team/options_digest.hpp"

#include <xxhash.h>

#include <algorithm>

namespace torii {
namespace {

/// The first line in which two digests differ, as "'A=1' against 'A=2'".
std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t begin = 0;
  while (begin < a.size() && begin < b.size()) {
    const std::size_t end_a = std::min(a.find('\n', begin), a.size());
    const std::size_t end_b = std::min(b.find('\n', begin), b.size());
    const std::string line_a = a.substr(begin, end_a - begin);
    const std::string line_b = b.substr(begin, end_b - begin);
    if (line_a != line_b) return "'" + line_a + "' against '" + line_b + "'";
    begin = end_a + 1;
  }
  return "settings of unequal number";
}

}  // namespace

std::uint64_t digest_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

std::string digest_text(Context& context, const TeamOptions& options) {
  std::string text = context.digest_text();
  text += "team topology=" + options.topology + "\nteam algorithm=" + options.algorithm +
          "\nteam determinism=" + options.determinism + "\nteam wire=" + options.wire +
          "\nteam segment=" + std::to_string(options.segment_bytes) + "\nteam tune_table digest=" +
          std::to_string(XXH3_64bits(options.tune_table.data(), options.tune_table.size())) +
          "\nteam rank_map digest=" + std::to_string(digest_of(options.rank_map)) +
          "\nteam channels=" + std::to_string(options.channels) + "\n";
  text += "team tree " +
          (options.tree_error.empty() ? "digest=" + std::to_string(digest_of(options.tree)) : options.tree_error) +
          "\n";
  return text;
}

std::string difference_text(int rank, const std::string& text, int other, const std::string& other_text) {
  return "rank " + std::to_string(rank) + " differs from rank " + std::to_string(other) + ": " +
         first_difference(text, other_text) + " (settings, topology and tune data must be equal on all ranks)";
}

void compare_digests(Bootstrap& bootstrap, const std::string& mine) {
  const std::vector<std::string> all = gather_texts(bootstrap, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw Error(Status::mismatch, difference_text(static_cast<int>(rank), all[rank], 0, all[0]),
                static_cast<int>(rank));
  }
}

std::optional<Error> compare_tickets(Bootstrap& bootstrap, const std::vector<SplitCard>& tickets,
                                     const std::string& mine) {
  const auto first_of = [&](int color) {
    return std::find_if(tickets.begin(), tickets.end(), [=](const SplitCard& one) { return one.color == color; });
  };
  const auto differs = [&](const SplitCard& one) {
    return one.color >= 0 && one.digest != first_of(one.color)->digest;
  };
  if (std::none_of(tickets.begin(), tickets.end(), differs)) return {};
  const std::vector<std::string> texts = gather_texts(bootstrap, mine);
  const int color = tickets[static_cast<std::size_t>(bootstrap.rank())].color;
  for (std::size_t rank = 0; rank < tickets.size(); ++rank) {
    if (tickets[rank].color != color || !differs(tickets[rank])) continue;
    const auto first = static_cast<std::size_t>(first_of(color) - tickets.begin());
    return Error(Status::mismatch,
                 "rank " + std::to_string(rank) + " differs from rank " + std::to_string(first) + ": " +
                     first_difference(texts[rank], texts[first]) + " (options must be equal on all ranks of a colour)",
                 static_cast<int>(rank));
  }
  return {};
}

}  // namespace torii
