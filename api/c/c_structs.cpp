// SPDX-License-Identifier: Apache-2.0
// Turns a torii_call into what a team runs.
#include "api/c/c_structs.hpp"

#include <cstring>
#include <string>

namespace torii::c {
namespace {

bool read_unequal(const torii_call& call, CallArguments& arguments, torii_status& status) {
  if (!may_be_unequal(arguments.collective)) {
    status = invalid("unequal is " + std::to_string(call.unequal) + ", but blocks of " +
                     std::string(name(arguments.collective)) +
                     " are equal; use it with alltoall, scatter, gather, all_gather or reduce_scatter");
    return false;
  }
  if (arguments.collective == Collective::reduce_scatter) {
    if (call.input_counts == nullptr || call.input_displacements != nullptr) {
      status = invalid(call.input_counts == nullptr
                           ? "input_counts is NULL, but blocks are unequal"
                           : "input_displacements is not NULL, but blocks of a reduce_scatter follow each other");
      return false;
    }
    arguments.block_counts = call.input_counts;
    return true;
  }
  arguments.unequal = true;
  const bool has_counts = call.input_counts != nullptr && call.result_counts != nullptr;
  if (arguments.collective == Collective::alltoall && has_counts) arguments.count = 0;
  arguments.input_counts = call.input_counts;
  arguments.input_displacements = call.input_displacements;
  arguments.result_counts = call.result_counts;
  arguments.result_displacements = call.result_displacements;
  arguments.input_blocks = call.input_blocks;
  arguments.result_blocks = call.result_blocks;
  return true;
}

/// Lists of addresses go with unequal blocks only, and only where the collective has blocks.
bool check_lists(const torii_call& call, const CallArguments& arguments, torii_status& status) {
  const char* const name_of_list = call.input_blocks != nullptr ? "input_blocks" : "result_blocks";
  const bool takes_input = arguments.collective == Collective::alltoall || arguments.collective == Collective::scatter;
  const bool takes_result = arguments.collective == Collective::alltoall ||
                            arguments.collective == Collective::gather ||
                            arguments.collective == Collective::all_gather;
  if ((call.input_blocks != nullptr && !takes_input) || (call.result_blocks != nullptr && !takes_result)) {
    status = invalid(std::string(call.input_blocks != nullptr && takes_input ? "result_blocks" : name_of_list) +
                     " is set, but " + std::string(name(arguments.collective)) + " takes no such list");
    return false;
  }
  if (call.unequal != 0) return true;
  status = invalid(std::string(name_of_list) + " is set, but unequal is 0; set unequal, on all ranks");
  return false;
}

bool read_access(const torii_call& call, CallArguments& arguments, torii_status& status) {
  if (arguments.collective != Collective::broadcast) {
    status = invalid("load or store is set, but a call of " + std::string(name(arguments.collective)) +
                     " reaches its vectors itself; use them with broadcast");
    return false;
  }
  if (call.load == nullptr || call.store == nullptr) {
    status = invalid(std::string(call.load == nullptr ? "load" : "store") +
                     " is NULL, but the other is not; a broadcast needs both or none");
    return false;
  }
  arguments.access = {call.load, call.store, call.access_data};
  return true;
}

bool read_leaves(const torii_team* team, const torii_call& call, CallArguments& arguments, torii_status& status) {
  if (call.leaves == nullptr) {
    if (call.leaf == nullptr) return true;
    status = invalid("leaf is set, but leaves is NULL; torii_leaves_create makes it");
    return false;
  }
  if (call.leaves->team() != team) {
    status = invalid("leaves were made for another team; torii_leaves_create makes them for this one");
    return false;
  }
  arguments.leaves = call.leaves->intervals;
  arguments.leaf_stride = call.leaf_stride;
  arguments.leaf = {call.leaf, call.leaf_data};
  return true;
}

bool read_timeout(const torii_call& call, CallArguments& arguments, torii_status& status) {
  if (!is_timeout(call.timeout_seconds)) {
    status = invalid(timeout_text(call.timeout_seconds, "that of the team"));
    return false;
  }
  arguments.timeout_ns = timeout_ns_of(call.timeout_seconds);
  return true;
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

bool read_call(const torii_team* team, const torii_call* given, CallArguments& arguments, torii_status& status) {
  if (given == nullptr) {
    status = invalid("call is NULL");
    return false;
  }
  torii_call call;
  if (!read_struct(given, call, "torii_call", status)) return false;
  if (const int number = number_in(call.collective); !is_from_0_to(number, TORII_EXSCAN)) {
    status = invalid("collective is " + std::to_string(number) + ", which is none");
    return false;
  }
  if (const int type = number_in(call.type), op = number_in(call.op); !are_known(type, op)) {
    status = unknown(type, op);
    return false;
  }
  arguments.collective = static_cast<Collective>(call.collective);
  if (call.timeout_seconds != 0 && !read_timeout(call, arguments, status)) return false;
  if (arguments.collective == Collective::barrier) return true;
  arguments.input = call.input;
  arguments.result = call.result;
  arguments.count = call.count;
  arguments.type = static_cast<Type>(call.type);
  set_op(arguments, static_cast<int>(call.op));
  arguments.root = has_root(arguments.collective) ? call.root : 0;
  const bool has_lists = call.input_blocks != nullptr || call.result_blocks != nullptr;
  if (has_lists && !check_lists(call, arguments, status)) return false;
  if (call.unequal != 0 && !read_unequal(call, arguments, status)) return false;
  if ((call.load != nullptr || call.store != nullptr) && !read_access(call, arguments, status)) return false;
  if (!read_leaves(team, call, arguments, status)) return false;
  if (combines(arguments.collective) && arguments.multiplies) {
    if (call.factor == nullptr) {
      status = invalid("op is premul_sum, but factor is NULL; it must be one element of the call's type");
      return false;
    }
    std::memcpy(arguments.factor.data(), call.factor, size_of(arguments.type));
  }
  if (combines_by_user(arguments)) {
    arguments.user = {call.user, call.user_data, call.user_bytes};
    arguments.commutes = call.commutes != 0;
    arguments.type = Type::u8;
  }
  return true;
}

bool read_blocks_call(const torii_call& call, CallArguments& arguments) noexcept {
  const int collective = number_in(call.collective);
  if (!is_from_0_to(collective, TORII_EXSCAN) || !is_from_0_to(number_in(call.type), kTypeLast)) return false;
  if (number_in(call.op) != TORII_SUM || call.timeout_seconds != 0) return false;
  if (call.load != nullptr || call.store != nullptr || call.leaves != nullptr || call.leaf != nullptr) return false;
  if (call.input_blocks != nullptr || call.result_blocks != nullptr) return false;
  arguments.collective = static_cast<Collective>(collective);
  if (!may_be_unequal(arguments.collective) || arguments.collective == Collective::reduce_scatter) return false;
  const bool has_counts = call.input_counts != nullptr && call.result_counts != nullptr;
  arguments.count = arguments.collective == Collective::alltoall && has_counts ? 0 : call.count;
  arguments.input = call.input;
  arguments.result = call.result;
  arguments.type = static_cast<Type>(call.type);
  arguments.root = has_root(arguments.collective) ? call.root : 0;
  arguments.unequal = true;
  arguments.input_counts = call.input_counts;
  arguments.input_displacements = call.input_displacements;
  arguments.result_counts = call.result_counts;
  arguments.result_displacements = call.result_displacements;
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
