// SPDX-License-Identifier: Apache-2.0
// libtorii_pmix.so: all-gathers by PMIx_Put, Commit, Fence and Get. The only file that uses libpmix.
#include <pmix.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/base/deadline.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/pmix.hpp"

namespace {

using torii::Status;

struct State {
  pmix_proc_t self{};
  int ranks = 0;
  int open = 0;              ///< open contexts; PMIx counts them too, but cannot be asked before it is initialised
  bool joins_again = false;  ///< has been closed before
  unsigned long rounds = 0;  ///< all-gathers so far, equal on all ranks; makes each key unique
  std::mutex mutex;
};
State state;

int say(char* text, std::size_t text_bytes, Status status, const std::string& sentence) {
  std::snprintf(text, text_bytes, "%s", sentence.c_str());
  return static_cast<int>(status);
}

std::string named(const char* call, pmix_status_t code) {
  return std::string(call) + " of PMIx says " + PMIx_Error_string(code);
}

pmix_proc_t proc_of(pmix_rank_t rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, state.self.nspace, rank);
  return proc;
}

int open_pmix(int* rank, int* ranks, char* text, std::size_t text_bytes) {
  const std::lock_guard lock(state.mutex);
  pmix_status_t code = PMIx_Init(&state.self, nullptr, 0);
  if (code != PMIX_SUCCESS) {
    return say(text, text_bytes, Status::transport,
               "a PMIx launcher has started this rank (PMIX_RANK is set), but " + named("PMIx_Init", code));
  }
  const pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);
  pmix_value_t* value = nullptr;
  code = PMIx_Get(&all, PMIX_JOB_SIZE, nullptr, 0, &value);
  if (code != PMIX_SUCCESS || value->type != PMIX_UINT32) {
    PMIx_Finalize(nullptr, 0);
    return say(text, text_bytes, Status::transport, "the number of ranks is not known: " + named("PMIx_Get", code));
  }
  state.ranks = static_cast<int>(value->data.uint32);
  PMIX_VALUE_RELEASE(value);
  ++state.open;
  *rank = static_cast<int>(state.self.rank);
  *ranks = state.ranks;
  return 0;
}

/// The result of a call that PMIx finishes on its own thread. Shared, because this rank may give up earlier.
struct Pending {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  pmix_status_t code = PMIX_SUCCESS;

  void finish(pmix_status_t result) {
    const std::lock_guard lock(mutex);
    code = result;
    done = true;
    changed.notify_all();
  }
  /// False if the deadline has passed before the call has finished.
  bool wait(torii::Deadline& deadline) {
    std::unique_lock lock(mutex);
    const auto is_done = [this] { return done; };
    while (!changed.wait_for(lock, std::chrono::milliseconds(deadline.nap_ms(1000)), is_done)) {
      if (deadline.is_over()) return false;
    }
    return true;
  }
};
using Shared = std::shared_ptr<Pending>;

/// The first rank whose part is missing, or -1. Called after a fence that did not end.
int first_missing(const std::string& key) {
  for (int rank = 0; rank < state.ranks; ++rank) {
    const pmix_proc_t proc = proc_of(static_cast<pmix_rank_t>(rank));
    const Shared pending = std::make_shared<Pending>();
    const auto finish = [](pmix_status_t code, pmix_value_t*, void* data) {
      const std::unique_ptr<Shared> owner(static_cast<Shared*>(data));
      (*owner)->finish(code);
    };
    auto* const handed = new Shared(pending);
    const pmix_status_t code = PMIx_Get_nb(&proc, key.c_str(), nullptr, 0, finish, handed);
    if (code != PMIX_SUCCESS) {
      delete handed;
      return rank;
    }
    constexpr double kAnswerS = 0.5;
    torii::Deadline deadline = torii::Deadline::after_s(kAnswerS);
    if (!pending->wait(deadline) || pending->code != PMIX_SUCCESS) return rank;
  }
  return -1;
}

struct Fenced {
  Status status;  ///< peer_lost: a rank ended; timeout; transport: the fence could not begin
  pmix_status_t code;
};

/// Waits until all ranks have committed their parts.
Fenced fence_once(torii::Deadline& deadline) {
  const Shared pending = std::make_shared<Pending>();
  const auto finish = [](pmix_status_t result, void* data) {
    const std::unique_ptr<Shared> owner(static_cast<Shared*>(data));
    (*owner)->finish(result);
  };
  pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);
  pmix_info_t collect;
  const bool yes = true;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  auto* const handed = new Shared(pending);
  const pmix_status_t code = PMIx_Fence_nb(&all, 1, &collect, 1, finish, handed);
  if (code != PMIX_SUCCESS) delete handed;
  if (code == PMIX_OPERATION_SUCCEEDED) return {Status::ok, code};
  if (code != PMIX_SUCCESS) return {Status::transport, code};
  if (!pending->wait(deadline)) return {Status::timeout, code};
  return {pending->code == PMIX_SUCCESS ? Status::ok : Status::peer_lost, pending->code};
}

/// Puts and commits the part, and waits until all ranks have.
int fence(const std::string& key, const void* mine, std::size_t bytes, double timeout_s, int* about, char* text,
          std::size_t text_bytes) {
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  value.type = PMIX_BYTE_OBJECT;
  // PMIx copies it; the library never writes through this pointer.
  value.data.bo.bytes = static_cast<char*>(const_cast<void*>(mine));
  value.data.bo.size = bytes;
  pmix_status_t code = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);
  if (code == PMIX_SUCCESS) code = PMIx_Commit();
  if (code != PMIX_SUCCESS) return say(text, text_bytes, Status::transport, named("PMIx_Commit", code));

  torii::Deadline deadline = torii::Deadline::after_s(timeout_s);
  do {
    const Fenced fenced = fence_once(deadline);
    if (fenced.status == Status::ok) return 0;
    code = fenced.code;
    if (fenced.status == Status::timeout) {
      *about = first_missing(key);
      const std::string who = *about < 0 ? "a rank" : "rank " + std::to_string(*about);
      return say(text, text_bytes, Status::timeout, who + " has not joined in time");
    }
    if (fenced.status == Status::transport) return say(text, text_bytes, Status::transport, named("PMIx_Fence", code));
    // If the ranks join for another time, a rank that is still closing looks like one that has ended. Try again.
    if (!state.joins_again) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (!deadline.is_over());
  return say(text, text_bytes, Status::peer_lost,
             "a rank ended before all had exchanged what they need to join: " + named("PMIx_Fence", code));
}

int all_gather(const void* mine, void* all, std::size_t bytes, double timeout_s, int* about, char* text,
               std::size_t text_bytes) {
  const std::lock_guard lock(state.mutex);
  const std::string key = "torii." + std::to_string(++state.rounds);
  const int code = fence(key, mine, bytes, timeout_s, about, text, text_bytes);
  if (code != 0) return code;
  for (int rank = 0; rank < state.ranks; ++rank) {
    const pmix_proc_t proc = proc_of(static_cast<pmix_rank_t>(rank));
    const std::string who = "rank " + std::to_string(rank);
    pmix_value_t* value = nullptr;
    const pmix_status_t result = PMIx_Get(&proc, key.c_str(), nullptr, 0, &value);
    *about = rank;
    if (result != PMIX_SUCCESS) {
      return say(text, text_bytes, Status::transport,
                 "the part of " + who + " is missing: " + named("PMIx_Get", result));
    }
    const std::size_t got = value->type == PMIX_BYTE_OBJECT ? value->data.bo.size : 0;
    if (got == bytes && bytes > 0) {
      std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes, value->data.bo.bytes, bytes);
    }
    PMIX_VALUE_RELEASE(value);
    if (got != bytes) {
      return say(text, text_bytes, Status::mismatch,
                 who + " exchanges " + std::to_string(got) + " bytes and rank " + std::to_string(state.self.rank) +
                     " " + std::to_string(bytes) + ": they do not run the same program or the same version");
    }
  }
  *about = -1;
  return 0;
}

void close_pmix() {
  const std::lock_guard lock(state.mutex);
  if (state.open-- > 0) PMIx_Finalize(nullptr, 0);
  state.joins_again = true;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const torii::PmixModule torii_pmix_module;
const torii::PmixModule torii_pmix_module = {torii::kPmixModuleVersion, open_pmix, all_gather, close_pmix};
