// SPDX-License-Identifier: Apache-2.0
// Turns a torii_call into what a team runs.
#include "api/c/c_structs.hpp"

#include <cstring>
#include <string>

namespace torii::c {
namespace {

bool read_unequal(const torii_call& given, CallDescription& call, torii_status& status) {
  const Collective collective = call.spec.collective;
  if (!may_be_unequal(collective)) {
    status =
        invalid("unequal is " + std::to_string(given.unequal) + ", but blocks of " + std::string(name(collective)) +
                " are equal; use it with alltoall, scatter, gather, all_gather or reduce_scatter");
    return false;
  }
  call.spec.count = 0;
  if (collective == Collective::reduce_scatter) {
    if (given.input_counts == nullptr || given.input_displacements != nullptr) {
      status = invalid(given.input_counts == nullptr
                           ? "input_counts is NULL, but blocks are unequal"
                           : "input_displacements is not NULL, but blocks of a reduce_scatter follow each other");
      return false;
    }
    call.set_block_counts(given.input_counts);
    return true;
  }
  const bool has_counts = given.input_counts != nullptr && given.result_counts != nullptr;
  call.set_blocks({.input_counts = given.input_counts,
                   .input_displacements = given.input_displacements,
                   .result_counts = given.result_counts,
                   .result_displacements = given.result_displacements,
                   .input_blocks = given.input_blocks,
                   .result_blocks = given.result_blocks,
                   .count = collective == Collective::alltoall && has_counts ? 0 : given.count});
  return true;
}

/// Lists of addresses go with unequal blocks only, and only where the collective has blocks.
bool check_lists(const torii_call& given, Collective collective, torii_status& status) {
  const char* const name_of_list = given.input_blocks != nullptr ? "input_blocks" : "result_blocks";
  const bool takes_input = collective == Collective::alltoall || collective == Collective::scatter;
  const bool takes_result =
      collective == Collective::alltoall || collective == Collective::gather || collective == Collective::all_gather;
  if ((given.input_blocks != nullptr && !takes_input) || (given.result_blocks != nullptr && !takes_result)) {
    status = invalid(std::string(given.input_blocks != nullptr && takes_input ? "result_blocks" : name_of_list) +
                     " is set, but " + std::string(name(collective)) + " takes no such list");
    return false;
  }
  if (given.unequal != 0) return true;
  status = invalid(std::string(name_of_list) + " is set, but unequal is 0; set unequal, on all ranks");
  return false;
}

bool read_access(const torii_call& given, CallDescription& call, torii_status& status) {
  if (call.spec.collective != Collective::broadcast) {
    status = invalid("load or store is set, but a call of " + std::string(name(call.spec.collective)) +
                     " reaches its vectors itself; use them with broadcast");
    return false;
  }
  if (given.load == nullptr || given.store == nullptr) {
    status = invalid(std::string(given.load == nullptr ? "load" : "store") +
                     " is NULL, but the other is not; a broadcast needs both or none");
    return false;
  }
  call.extras.vectors = Access{given.load, given.store, given.access_data};
  return true;
}

bool read_leaves(const torii_team* team, const torii_call& given, CallDescription& call, torii_status& status) {
  if (given.leaves == nullptr) {
    status = invalid("leaf is set, but leaves is NULL; torii_leaves_create makes it");
    return false;
  }
  if (given.leaves->team() != team) {
    status = invalid("leaves were made for another team; torii_leaves_create makes them for this one");
    return false;
  }
  const Collective collective = call.spec.collective;
  if (!combines(collective) || is_prefix(collective)) {
    status = invalid("leaves are set, but " + std::string(name(collective)) +
                     " has none; use them with allreduce, reduce or reduce_scatter");
    return false;
  }
  if (given.unequal != 0) {
    status = invalid("leaves are set, but blocks are unequal; use equal blocks");
    return false;
  }
  call.set_leaves({given.leaves->intervals, given.leaf_stride, {given.leaf, given.leaf_data}});
  return true;
}

bool read_timeout(const torii_call& given, CallDescription& call, torii_status& status) {
  if (!is_timeout(given.timeout_seconds)) {
    status = invalid(timeout_text(given.timeout_seconds, "that of the team"));
    return false;
  }
  call.extras.timeout_ns = timeout_ns_of(given.timeout_seconds);
  return true;
}

bool read_factor(const torii_call& given, CallDescription& call, torii_status& status) {
  if (given.factor == nullptr) {
    status = invalid("op is premul_sum, but factor is NULL; it must be one element of the call's type");
    return false;
  }
  Factor factor = {};
  std::memcpy(factor.data(), given.factor, size_of(call.spec.type));
  call.extras.arithmetic = factor;
  return true;
}

/// A size beyond all limits is refused where plans are made.
void read_user(const torii_call& given, CallDescription& call) {
  call.extras.arithmetic = kernels::UserFunction{given.user, given.user_data, given.user_bytes};
  call.spec.user_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(given.user_bytes, UINT32_MAX));
  call.spec.type = Type::u8;
  if (given.commutes == 0) call.spec.set(CallMark::ordered);
}

}  // namespace

bool is_size(std::size_t size, const char* what, torii_status& status) {
  if (size >= sizeof(size) && size <= 4096) return true;
  status = invalid(std::string(what) + ".size is " + std::to_string(size) + "; set it to sizeof(" + what + ")");
  return false;
}

bool is_zero_beyond(const void* given, std::size_t known, std::size_t bytes, const char* what, torii_status& status) {
  const auto* const values = static_cast<const char*>(given);
  for (std::size_t i = known; i < bytes; ++i) {
    if (values[i] == 0) continue;
    status = refuse(Status::unsupported, std::string(what) + " is set at byte " + std::to_string(i) +
                                             ", which torii " TORII_VERSION " does not know; use a newer library");
    return false;
  }
  return true;
}

bool read_call(const torii_team* team, const torii_call* given, CallDescription& call, torii_status& status) {
  if (given == nullptr) {
    status = invalid("call is NULL");
    return false;
  }
  torii_call own;
  if (!read_struct(given, own, "torii_call", status)) return false;
  if (const int number = number_in(own.collective); !is_from_0_to(number, TORII_EXSCAN)) {
    status = invalid("collective is " + std::to_string(number) + ", which is none");
    return false;
  }
  if (const int type = number_in(own.type), op = number_in(own.op); !are_known(type, op)) {
    status = unknown(type, op);
    return false;
  }
  read_plain(own, call);
  if (own.timeout_seconds != 0 && !read_timeout(own, call, status)) return false;
  if (call.spec.collective == Collective::barrier) return true;
  const bool has_lists = own.input_blocks != nullptr || own.result_blocks != nullptr;
  if (has_lists && !check_lists(own, call.spec.collective, status)) return false;
  if (own.unequal != 0 && !read_unequal(own, call, status)) return false;
  if ((own.load != nullptr || own.store != nullptr) && !read_access(own, call, status)) return false;
  if ((own.leaves != nullptr || own.leaf != nullptr) && !read_leaves(team, own, call, status)) return false;
  if (multiplies(call.spec) && !read_factor(own, call, status)) return false;
  if (call.spec.op == OpNumber::user) read_user(own, call);
  return true;
}

torii_call unequal_call(torii_collective collective, const void* input, void* result, std::size_t count,
                        torii_type type, int root) noexcept {
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = collective;
  call.input = input;
  call.result = result;
  call.count = count;
  call.type = type;
  call.root = root;
  call.unequal = 1;
  return call;
}

}  // namespace torii::c
