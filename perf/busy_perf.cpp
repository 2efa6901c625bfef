// SPDX-License-Identifier: Apache-2.0
// Calls of torii in a row, 8 bytes each, for machines on which foreign processes run too: perf/busy starts it. See
// busy_perf --help.
#include <cstdlib>
#include <memory>

#include "perf/busy_calls.hpp"
#include "perf/common/failure.hpp"

namespace torii::perf {
namespace {

class ToriiCall : public BusyCall {
 public:
  explicit ToriiCall(const Job& job) : job_(job) {}
  int64_t hops() const override {
    torii_counters counters{};
    counters.size = sizeof(counters);
    check(torii_context_counters(job_.context(), &counters), "cannot read the counters");
    return static_cast<int64_t>(counters.hops);
  }

 protected:
  const Job& job_;
};

class AllreduceCall final : public ToriiCall {
 public:
  using ToriiCall::ToriiCall;
  int64_t run(int64_t mine) override {
    check(torii_allreduce(job_.team(), &mine, &mine, 1, TORII_I64, TORII_SUM), "an allreduce failed");
    return mine;
  }
};

torii_call sum_in_place(int64_t& value) {
  torii_call call{};
  call.size = sizeof(call);
  call.collective = TORII_ALLREDUCE;
  call.input = call.result = &value;
  call.count = 1;
  call.type = TORII_I64;
  call.op = TORII_SUM;
  return call;
}

class StartedCall final : public ToriiCall {
 public:
  using ToriiCall::ToriiCall;
  int64_t run(int64_t mine) override {
    const torii_call call = sum_in_place(mine);
    torii_request* request = nullptr;
    check(torii_start(job_.team(), &call, &request), "an operation did not start");
    check(torii_wait(&request), "an operation failed");
    return mine;
  }
};

class PersistentCall final : public ToriiCall {
 public:
  explicit PersistentCall(const Job& job) : ToriiCall(job) {
    const torii_call call = sum_in_place(value_);
    check(torii_prepare(job.team(), &call, &request_), "no persistent operation");
  }
  ~PersistentCall() override { torii_request_free(&request_); }
  int64_t run(int64_t mine) override {
    value_ = mine;
    check(torii_restart(request_), "a persistent operation did not start");
    check(torii_wait(&request_), "a persistent operation failed");
    return value_;
  }

 private:
  int64_t value_ = 0;
  torii_request* request_ = nullptr;
};

/// From rank 0 to rank 1 and back.
class SendCall final : public ToriiCall {
 public:
  explicit SendCall(const Job& job) : ToriiCall(job) {
    if (job.ranks() != 2) throw Failure(kBadCommandLine, "--kind send needs 2 ranks");
  }
  int64_t run(int64_t mine) override {
    if (job_.rank() == 0) check(torii_send(job_.team(), &mine, 1, TORII_I64, 1, 1), "a send failed");
    check(torii_recv(job_.team(), &mine, 1, TORII_I64, 1 - job_.rank(), 1, nullptr), "a receive failed");
    if (job_.rank() == 1) check(torii_send(job_.team(), &mine, 1, TORII_I64, 0, 1), "a send failed");
    return mine;
  }
};

std::unique_ptr<BusyCall> make_call(const Job& job, const std::string& kind) {
  if (kind == "start") return std::make_unique<StartedCall>(job);
  if (kind == "persistent") return std::make_unique<PersistentCall>(job);
  if (kind == "send") return std::make_unique<SendCall>(job);
  return std::make_unique<AllreduceCall>(job);
}

/// What torii-run has told this rank.
int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

int run_busy(int argc, char** argv) {
  BusyOptions options;
  int ranks = 0;
  std::vector<std::string> settings;
  const CommandLine app("Times calls of 8 bytes in a row, and says where the ranks were in the slow ones.");
  app.add_option("--ranks", ranks, "start so many ranks here").range(1, 1024);
  app.add_option("--set", settings, "a setting of the library, NAME=value; may be given several times");
  add_busy_flags(app, options, {"allreduce", "start", "persistent", "send"});
  if (!parse_command_line(app, argc, argv, "busy_perf --ranks 2 --seconds 5", speaks())) return kOk;
  start_asked_ranks(ranks, argc, argv);
  bind_rank(options, number_of("TORII_RANK", 0), number_of("TORII_RANKS", 1));
  std::string lines;
  for (const std::string& line : settings) lines += line + "\n";
  const Job job(lines);
  measure_busy(job, options, *make_call(job, options.kind));
  return kOk;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  return torii::perf::run_program(argv, [&] { return torii::perf::run_busy(argc, argv); });
}
