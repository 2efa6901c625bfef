// SPDX-License-Identifier: Apache-2.0
// Making and leaving contexts and teams.
#include "plugins/pytorch/team.hpp"

#include <unistd.h>

#include <cstdlib>

#include "plugins/pytorch/failure.hpp"
#include "plugins/pytorch/store_exchange.hpp"

namespace torii_torch {
namespace {

/// PyTorch's own default. A group that has it gets the deadline of the environment, if that names one.
constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::minutes(30);

double deadline_seconds(std::chrono::milliseconds timeout) {
  if (timeout == kDefaultTimeout && std::getenv("TORII_TIMEOUT") != nullptr) return 0;
  return std::chrono::duration<double>(timeout).count();
}

std::string settings_text(std::chrono::milliseconds timeout, const GroupOptions& options) {
  std::string text;
  const double seconds = deadline_seconds(timeout);
  if (seconds > 0) text += "TIMEOUT=" + std::to_string(seconds) + "\n";
  // Each group has a context, and groups can be many: a smaller address space each than a job's only context has.
  if (std::getenv("TORII_ARENA") == nullptr) text += "ARENA=8G\n";
  // PyTorch's own threads, and workers that load data, use the CPUs too: a rank that spins would hold them up.
  if (std::getenv("TORII_WAIT") == nullptr) text += "WAIT=shared\n";
  return text + options.settings;
}

torii_team_options team_options(std::chrono::milliseconds timeout, const GroupOptions& options) {
  torii_team_options made = {};
  made.size = sizeof(made);
  made.algorithm = options.algorithm.empty() ? nullptr : options.algorithm.c_str();
  made.determinism = options.determinism.empty() ? nullptr : options.determinism.c_str();
  made.channels = options.channels;
  made.many_callers = 1;
  made.timeout_seconds = deadline_seconds(timeout);
  return made;
}

/// Programs look for "Timed out" in the errors of other backends.
std::string what_happened(torii_status status) {
  return status == TORII_TIMEOUT ? "Timed out" : std::string(torii_status_name(status));
}

[[noreturn]] void throw_setup(torii_status status, const std::string& what, const std::string& more) {
  std::string text = what + ": " + torii_status_name(status) + ": " + torii_last_error();
  if (!more.empty()) text += " (the store: " + more + ")";
  throw_failure(status, text);
}

}  // namespace

Context::Context(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, std::chrono::milliseconds timeout,
                 const GroupOptions& options)
    : exchange_(store, rank, ranks, timeout) {
  const std::string settings = settings_text(timeout, options);
  torii_context_options made = {};
  made.size = sizeof(made);
  made.rank = rank;
  made.ranks = ranks;
  made.exchange = StoreExchange::gather;
  made.exchange_data = &exchange_;
  made.settings = settings.c_str();
  const torii_status status = torii_context_create(&made, &context_);
  if (status != TORII_OK) {
    throw_setup(status, "torii: rank " + std::to_string(rank) + " cannot join the group", store_failure());
  }
}

Context::~Context() { (void)torii_context_destroy(context_); }

Team::Team(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, std::chrono::milliseconds timeout,
           const GroupOptions& options)
    : context_(std::make_shared<Context>(store, rank, ranks, timeout, options)),
      options_(options),
      rank_(rank),
      ranks_(ranks),
      owner_(getpid()) {
  const torii_team_options made = team_options(timeout, options);
  const torii_status status = torii_team_create(context_->get(), &made, &team_);
  if (status != TORII_OK) {
    throw_setup(status, "torii: rank " + std::to_string(rank) + " cannot make the group", context_->store_failure());
  }
}

Team::Team(const Team& failed, std::chrono::milliseconds timeout, const std::vector<int>& without, bool allow_minority)
    : context_(failed.context_), options_(failed.options_), owner_(getpid()) {
  torii_team_options made = team_options(timeout, options_);
  made.without = without.data();
  made.without_count = static_cast<int>(without.size());
  made.allow_minority = allow_minority ? 1 : 0;
  const torii_status status = torii_team_survivors(failed.team_, &made, &team_);
  if (status != TORII_OK) {
    throw_setup(status, "torii: rank " + std::to_string(failed.rank_) + " cannot make a group of the survivors", "");
  }
  rank_ = torii_team_rank(team_);
  ranks_ = torii_team_ranks(team_);
}

Team::~Team() {
  if (is_mine()) {
    (void)torii_team_destroy(team_);
  } else {
    // The parent's memory is mapped here too. The child must not give it back, so the context outlives this process.
    (void)new std::shared_ptr<Context>(context_);
  }
}

bool Team::is_mine() const noexcept { return owner_ == getpid(); }

void Team::check_owner() const {
  if (is_mine()) return;
  throw_failure(TORII_INVALID_ARGUMENT, "torii: invalid_argument on rank " + std::to_string(rank_) + " of " +
                                            std::to_string(ranks_) +
                                            ": this process was forked from the one that made the group: it may use"
                                            " only groups of its own");
}

bool Team::move() const {
  int moved = 0;
  (void)torii_progress(context_->get(), &moved);
  return moved != 0;
}

std::vector<int> Team::members() const {
  std::vector<int> made;
  for (int member = 0; member < ranks_; ++member) made.push_back(torii_team_context_rank(team_, member));
  return made;
}

static std::vector<int> list_of(int (*ask)(const torii_team*, int*, int), const torii_team* team) {
  std::vector<int> members(static_cast<std::size_t>(torii_team_ranks(team)));
  const int count = ask(team, members.data(), static_cast<int>(members.size()));
  members.resize(static_cast<std::size_t>(count > 0 ? count : 0));
  return members;
}

std::vector<int> Team::lost() const { return list_of(torii_team_lost, team_); }

std::vector<int> Team::absent() const { return list_of(torii_team_absent, team_); }

std::exception_ptr Team::failure(torii_status status, const char* operation) const {
  const std::string text = "torii: " + what_happened(status) + " in " + operation + " on rank " +
                           std::to_string(rank_) + " of " + std::to_string(ranks_) + ": " + torii_last_error();
  return make_failure(status, text);
}

}  // namespace torii_torch
