// SPDX-License-Identifier: Apache-2.0
// Binds calls to the vectors and teams of a rank.
#include "perf/sequences/sequence_way.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"

namespace torii::perf {
namespace {

/// Elements behind a result that no call may write.
constexpr std::size_t kBehind = 64;

template <class T>
void fill_as(void* to, std::size_t elements, std::size_t step, std::size_t rank, std::size_t end) {
  auto* const out = static_cast<T*>(to);
  for (std::size_t i = 0; i < elements; ++i) out[i] = static_cast<T>((i * step + rank) % end);
}

void fill(torii_type type, void* to, std::size_t elements, std::size_t step, int rank, std::size_t end) {
  const auto first = static_cast<std::size_t>(rank);
  switch (type) {
    case TORII_F64:
      return fill_as<double>(to, elements, step, first, end);
    case TORII_F32:
      return fill_as<float>(to, elements, step, first, end);
    case TORII_I64:
    case TORII_U64:
      return fill_as<std::int64_t>(to, elements, step, first, end);
    case TORII_I32:
      return fill_as<std::int32_t>(to, elements, step, first, end);
    default:
      // Sums of 16 ranks stay below 256: those of Open MPI's vector instructions do not wrap, but end at 255.
      return fill_as<std::uint8_t>(to, elements * info(type).size_bytes, step, first, end / 4);
  }
}

std::size_t sum_of(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::vector<std::size_t> begins_of(const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), std::size_t{0});
  return begins;
}

std::ptrdiff_t member_of(const std::vector<int>& members, int rank) {
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : found - members.begin();
}

}  // namespace

TypedVectors::TypedVectors(torii_type type, int rank, Extent extent)
    : type_(type),
      rank_(rank),
      extent_(extent),
      input_(extent.input * info(type).size_bytes),
      result_(std::calloc(extent.result + kBehind, info(type).size_bytes)) {
  if (result_ == nullptr) throw std::bad_alloc();
  fill(type, input_.data(), extent.input, 7, rank, 61);
}

void TypedVectors::spoil(std::size_t elements) { fill(type_, result_.get(), elements + kBehind, 1, rank_, 53); }

void SequenceWay::next_pass() {
  if (passes_ > 0 && !source_.is_fresh) return;
  sequence_ = source_.pass(passes_++);
  if (passes_ == 1) make_teams();
  bound_.clear();
  at_.clear();
  for (const SequenceCall& call : sequence_.calls) bind(call);
  make_vectors();
  for (Bound& bound : bound_) set_addresses(bound);
}

/// Keeps vectors that are long enough.
void SequenceWay::make_vectors() {
  std::map<torii_type, Extent> most;
  for (const Bound& bound : bound_) {
    const std::size_t drawn = source_.bytes_most / info(bound.call.type).size_bytes;
    Extent& extent = most[bound.call.type];
    extent.input = std::max({extent.input, bound.extent.input, drawn});
    extent.result = std::max({extent.result, bound.extent.result, drawn});
  }
  for (const auto& [type, extent] : most) {
    const auto found = vectors_.find(type);
    if (found != vectors_.end()) {
      const Extent& has = found->second.extent();
      if (has.input >= extent.input && has.result >= extent.result) continue;
      vectors_.erase(found);
    }
    vectors_.emplace(type, TypedVectors(type, job_.rank(), extent));
  }
}

void SequenceWay::set_addresses(Bound& bound) {
  TypedVectors& vectors = vectors_.at(bound.call.type);
  torii_call& call = bound.call;
  const bool has_data = call.collective != TORII_BARRIER;
  call.result = has_data && bound.has_result ? vectors.result() : nullptr;
  call.input = !has_data || call.collective == TORII_BROADCAST ? nullptr
               : bound.in_place && bound.has_result            ? vectors.result()
                                                               : vectors.input();
  if (!bound.unequal) return;
  for (std::size_t part = 0; part < bound.lengths.size(); ++part) {
    bound.ints[part].assign(bound.lengths[part].begin(), bound.lengths[part].end());
  }
  const auto of = [&](std::size_t part) { return bound.lengths[part].empty() ? nullptr : bound.lengths[part].data(); };
  call.input_counts = of(0);
  call.input_displacements = of(1);
  call.result_counts = of(2);
  call.result_displacements = of(3);
  bound.counts = {bound.ints[0].data(), bound.ints[1].data(), bound.ints[2].data(), bound.ints[3].data()};
}

/// All but addresses.
void SequenceWay::bind(const SequenceCall& call) {
  const std::vector<int>& members = sequence_.teams[static_cast<std::size_t>(call.team)];
  const std::ptrdiff_t found = member_of(members, job_.rank());
  if (found < 0) {
    at_.push_back(-1);
    return;
  }
  const auto member = static_cast<int>(found);
  Bound bound;
  bound.team = static_cast<std::size_t>(call.team);
  bound.call = make_call(call.collective, nullptr, nullptr, call.count, call.type, call.op, call.root);
  bound.in_place = call.in_place;
  bound.is_checked = has_result(call.collective, member, call.root);
  bound.has_result = bound.is_checked || is_prefix(call.collective);
  bound.unequal = !call.counts.empty();
  if (bound.unequal) {
    bind_unequal(call, member, bound);
  } else {
    const VectorLengths lengths = lengths_of(call.collective, call.count, static_cast<int>(members.size()), member);
    bound.extent = {lengths.input, lengths.result};
  }
  at_.push_back(static_cast<std::ptrdiff_t>(bound_.size()));
  bound_.push_back(std::move(bound));
}

void SequenceWay::bind_unequal(const SequenceCall& call, int member, Bound& bound) {
  const std::size_t blocks = sequence_.teams[static_cast<std::size_t>(call.team)].size();
  const auto own = static_cast<std::size_t>(member);
  const auto count = [&](std::size_t i) { return static_cast<std::size_t>(call.counts[i]); };
  auto& [gives, gives_at, gets, gets_at] = bound.lengths;
  bound.call.unequal = 1;
  if (call.collective == TORII_ALLTOALL) {
    for (std::size_t peer = 0; peer < blocks; ++peer) {
      gives.push_back(count(own * blocks + peer));
      gets.push_back(count(peer * blocks + own));
    }
  } else {
    bound.call.count = count(own);
    std::vector<std::size_t> all;
    for (std::size_t peer = 0; peer < blocks; ++peer) all.push_back(count(peer));
    const bool is_root = member == call.root;
    const bool scatters = call.collective == TORII_SCATTER;
    if (scatters && is_root) gives = all;
    if (!scatters && bound.has_result) gets = all;
  }
  gives_at = begins_of(gives);
  gets_at = begins_of(gets);
  bound.extent = {gives.empty() ? bound.call.count : sum_of(gives), gets.empty() ? bound.call.count : sum_of(gets)};
}

torii_status SequenceWay::call() {
  for (const Bound& bound : bound_) {
    const torii_status status = run(bound);
    if (status != TORII_OK) return status;
  }
  return TORII_OK;
}

void SequenceWay::make_one(std::size_t i) {
  if (!takes_part(i)) return;
  Bound& bound = bound_[static_cast<std::size_t>(at_[i])];
  vectors_.at(bound.call.type).spoil(bound.extent.result);
  check(run(bound), "the checked call failed");
}

std::size_t SequenceWay::count_different(std::size_t i, const SequenceWay& other) const {
  if (!takes_part(i)) return 0;
  const Bound& bound = bound_[static_cast<std::size_t>(at_[i])];
  if (!bound.is_checked) return 0;
  const std::size_t bytes = (bound.extent.result + kBehind) * info(bound.call.type).size_bytes;
  const auto* const mine = static_cast<const std::byte*>(vectors_.at(bound.call.type).result());
  const auto* const theirs = static_cast<const std::byte*>(other.vectors_.at(bound.call.type).result());
  if (std::memcmp(mine, theirs, bytes) == 0) return 0;
  std::size_t different = 0;
  for (std::size_t at = 0; at < bytes; ++at) different += mine[at] != theirs[at] ? 1 : 0;
  return different;
}

ToriiWay::ToriiWay(const Job& job, SequenceSource& source) : SequenceWay(job, source) {
  torii_context_options options{};
  options.size = sizeof(options);
  options.rank = job.rank();
  options.ranks = job.ranks();
  options.exchange = Mpi::exchange;
  check(torii_context_create(&options, &context_), "cannot join the job");
}

ToriiWay::~ToriiWay() {
  for (torii_team* const team : teams_) torii_team_destroy(team);
  torii_context_destroy(context_);
}

void ToriiWay::make_teams() {
  torii_team* all = nullptr;
  for (const std::vector<int>& members : sequence().teams) {
    torii_team* team = nullptr;
    if (members.size() == static_cast<std::size_t>(job().ranks())) {
      check(torii_team_create(context_, nullptr, &team), "cannot make a team");
    } else {
      if (all == nullptr) check(torii_team_create(context_, nullptr, &all), "cannot make a team");
      const int color = member_of(members, job().rank()) < 0 ? -1 : 0;
      check(torii_team_split(all, color, 0, nullptr, &team), "cannot make a part of a team");
    }
    teams_.push_back(team);
  }
  if (all != nullptr) teams_.push_back(all);
}

MpiWay::~MpiWay() {
  for (const MpiGroup group : groups_) {
    if (group != nullptr) Mpi::module().free(group);
  }
}

void MpiWay::make_teams() {
  for (const std::vector<int>& members : sequence().teams) {
    groups_.push_back(Mpi::module().split(member_of(members, job().rank()) < 0 ? -1 : 0));
  }
}

}  // namespace torii::perf
