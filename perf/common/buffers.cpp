// SPDX-License-Identifier: Apache-2.0
// Memory, patterns and checks of one call.
#include "perf/common/buffers.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "perf/common/data.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/names.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

constexpr size_t kCheckedWholeBytes = size_t{1} << 20;
constexpr size_t kSampleBytes = 4096;
constexpr size_t kSamples = 128;

struct Pattern {
  uint64_t seed;
  torii_type type;
};

void make_operand(int rank, size_t first, size_t count, void* out, void* data) {
  const auto* pattern = static_cast<const Pattern*>(data);
  fill(pattern->seed, pattern->type, rank, first, count, out);
}

void require_memory(const Job& job, size_t bytes) {
  // All ranks of this machine ask at once; 4 vectors of the greatest size each.
  const size_t wanted = bytes * 4 * static_cast<size_t>(job.ranks());
  const size_t available = available_memory_bytes();
  if (wanted <= available) return;
  throw Failure(kNotPossible, "a size of " + bytes_text(bytes) + " needs " + std::to_string(wanted >> 20) + " MiB on " +
                                  std::to_string(job.ranks()) + " ranks; this machine has " +
                                  std::to_string(available >> 20) + " MiB available");
}

}  // namespace

std::vector<Range> checked_ranges(size_t count, size_t element_bytes) {
  if (count * element_bytes <= kCheckedWholeBytes) return {{0, count}};
  // Both ends, and in every 128th part a range whose place changes from part to part.
  std::vector<Range> ranges;
  const size_t sample = kSampleBytes / element_bytes;
  const size_t part = count / kSamples;
  for (size_t i = 0; i < kSamples; ++i) {
    const size_t room = part - std::min(part, sample);
    const size_t offset = i == 0 || room == 0 ? 0 : (i * 2654435761u) % room;
    ranges.push_back({i * part + offset, std::min(sample, part)});
  }
  ranges.push_back({count - sample, sample});
  return ranges;
}

Vector::Vector(const Job& job, Memory memory, size_t bytes) : job_(job), memory_(memory), bytes_(bytes) {
  if (bytes == 0) return;
  if (memory == Memory::allocated) {
    void* address = nullptr;
    perf::check(torii_allocate(job.context(), bytes, &address), "cannot allocate " + std::to_string(bytes) + " bytes");
    data_ = static_cast<std::byte*>(address);
    return;
  }
  if (memory == Memory::shared) {
    constexpr size_t kPageBytes = 4096;
    stride_ = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    shared_ = std::make_unique<SharedMemory>(job, stride_ * static_cast<size_t>(job.ranks()));
    if (shared_->data() == nullptr) throw Failure(kNotPossible, "no memory that all ranks map");
    data_ = shared_->data() + stride_ * static_cast<size_t>(job.rank());
    std::memset(data_, 0, bytes);
    return;
  }
  data_ = static_cast<std::byte*>(std::malloc(bytes));
  if (data_ == nullptr) throw Failure(kNotPossible, "malloc of " + std::to_string(bytes) + " bytes failed");
  std::memset(data_, 0, bytes);
  if (memory != Memory::adopted) return;
  const torii_status status = torii_register(job.context(), data_, bytes, TORII_REGISTER_ADOPT, &region_);
  if (status != TORII_OK) std::free(data_);
  perf::check(status, "cannot adopt " + std::to_string(bytes) + " bytes");
}

Vector::~Vector() {
  if (memory_ == Memory::shared) return;
  if (memory_ == Memory::allocated && data_ != nullptr) {
    torii_free(job_.context(), data_);
    return;
  }
  // Whatever it says, the contents are kept and the region is gone.
  if (region_ != nullptr) (void)torii_deregister(job_.context(), region_);
  std::free(data_);
}

Leaves::Leaves(const Job& job, size_t all) {
  perf::check(torii_split(all, job.ranks(), job.rank(), &first_, &count_), "cannot deal the leaves");
  perf::check(torii_leaves_create(job.team(), all, first_, count_, &handle_), "cannot agree on the leaves");
}

Leaves::~Leaves() { torii_leaves_destroy(handle_); }

CallData::CallData(const Job& job, const Options& options, Memory memory, size_t bytes, torii_type type, torii_op op,
                   const Leaves* leaves)
    : job_(job), seed_(options.seed), element_bytes_(info(type).size_bytes) {
  const auto ranks = static_cast<size_t>(job.ranks());
  const size_t parts = has_blocks(options.collective) ? ranks : 1;
  if (options.bytes_per_pair) bytes *= parts;
  const size_t count = options.collective == TORII_BARRIER ? 0 : std::max<size_t>(1, bytes / (parts * element_bytes_));
  elements_ = count * parts;
  bytes_ = elements_ * element_bytes_;
  const VectorLengths lengths = lengths_of(options.collective, count, job.ranks(), job.rank());
  input_elements_ = lengths.input;
  result_elements_ = lengths.result;
  const int root = has_root(options.collective) ? options.root : 0;
  call_ = make_call(options.collective, nullptr, nullptr, count, type, op, root);
  if (count == 0) return;
  const size_t vectors = leaves == nullptr ? 1 : leaves->count();
  const size_t first = leaves == nullptr ? static_cast<size_t>(job.rank()) : leaves->first();
  if (leaves != nullptr) call_.leaves = leaves->handle();
  require_memory(job, bytes_ * std::max<size_t>(1, vectors));
  first_ = std::make_unique<Vector>(job, memory, bytes_ * vectors);
  const bool in_place = options.in_place || options.collective == TORII_BROADCAST;
  if (!in_place) second_ = std::make_unique<Vector>(job, memory, bytes_);
  place(in_place);
  for (int i = 0; i < 2; ++i) {
    const size_t vector_bytes = input_elements_ * element_bytes_;
    patterns_[i].resize(vector_bytes * vectors);
    for (size_t v = 0; v < vectors; ++v) {
      fill(seed(i), type, static_cast<int>(first + v), 0, input_elements_, patterns_[i].data() + v * vector_bytes);
    }
  }
}

void CallData::place(bool in_place) {
  const VectorLengths lengths = lengths_of(call_.collective, call_.count, job_.ranks(), job_.rank());
  input_ = first_->data() + (in_place ? lengths.input_at * element_bytes_ : 0);
  result_ = in_place ? first_->data() + lengths.result_at * element_bytes_ : second_->data();
  call_.input = call_.collective == TORII_BROADCAST ? nullptr : input_;
  call_.result = result_;
  if (!has_result() && !in_place && !is_prefix(call_.collective)) call_.result = nullptr;
}

bool CallData::has_result() const { return torii::has_result(call_.collective, job_.rank(), call_.root); }

void CallData::refresh(int i) {
  if (call_.count == 0 || !has_input(call_.collective, job_.rank(), call_.root)) return;
  if (!patterns_[i % 2].empty()) std::memcpy(input_, patterns_[i % 2].data(), patterns_[i % 2].size());
}

void CallData::spoil_result() {
  const bool own_input = call_.collective == TORII_BROADCAST ? job_.rank() == call_.root : second_ == nullptr;
  if (call_.count == 0 || own_input) return;
  std::memset(result_, 0xa5, result_elements_ * element_bytes_);
}

size_t CallData::count_wrong(torii_team* team, int i) const {
  if (call_.count == 0 || !has_result()) return 0;
  Pattern pattern{seed(i), call_.type};
  size_t wrong = 0;
  std::vector<std::byte> expected;
  for (const Range& range : checked_ranges(result_elements_, element_bytes_)) {
    expected.resize(range.count * element_bytes_);
    perf::check(torii_expect(team, &call_, range.first, range.count, make_operand, &pattern, expected.data()),
                "cannot evaluate what the result should be");
    const std::byte* got = result_ + range.first * element_bytes_;
    wrong += perf::count_wrong(call_.type, got, expected.data(), range.count);
  }
  return wrong;
}

uint64_t CallData::hash_result() const {
  const bool is_own_part =
      call_.collective == TORII_REDUCE_SCATTER || is_prefix(call_.collective) || is_personalised(call_.collective);
  if (!is_own_part || call_.collective == TORII_GATHER)
    return has_result() ? hash(call_.type, result_, result_elements_) : 0;
  const size_t own_bytes = result_elements_ * element_bytes_;
  std::vector<std::byte> all(own_bytes * static_cast<size_t>(job_.ranks()));
  job_.gather_bytes(result_, all.data(), own_bytes);
  return hash(call_.type, all.data(), result_elements_ * static_cast<size_t>(job_.ranks()));
}

}  // namespace torii::perf
