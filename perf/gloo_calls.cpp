// SPDX-License-Identifier: Apache-2.0
// Gloo has two generations of collectives. The newer ones are functions, which PyTorch calls. The older ones are
// objects made for fixed operands, and reduce in place; reduce_scatter exists among the older ones only.
#include "perf/gloo_calls.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <linux/limits.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include "perf/common/failure.hpp"

namespace torii::perf {
namespace {

using ContextPointer = std::shared_ptr<gloo::Context>;

constexpr std::chrono::seconds kGlooTimeout{60};

/// A directory that all ranks see. Rank 0 makes it, and removes it at the end.
class SharedFolder {
 public:
  explicit SharedFolder(const Job& job) : is_mine_(job.rank() == 0) {
    std::array<char, PATH_MAX> path{};
    if (is_mine_) {
      const std::string pattern = std::filesystem::temp_directory_path() / "torii-gloo-XXXXXX";
      pattern.copy(path.data(), path.size() - 1);
      if (mkdtemp(path.data()) == nullptr) {
        throw Failure(kNotPossible, "cannot make a directory like " + pattern + ": " + std::strerror(errno));
      }
    }
    job.broadcast(path.data(), path.size());
    path_ = path.data();
  }
  ~SharedFolder() {
    std::error_code ignored;
    if (is_mine_) std::filesystem::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  bool is_mine_;
  std::string path_;
};

const float* input_of(const torii_call& call) { return static_cast<const float*>(call.input); }
/// Gloo's options take no pointers to const, though the operand is only read.
float* operand_of(const torii_call& call) { return const_cast<float*>(input_of(call)); }
float* result_of(const torii_call& call) { return static_cast<float*>(call.result); }

class NewerCall final : public GlooCall {
 public:
  NewerCall(std::string name, std::function<void()> function)
      : GlooCall(std::move(name)), function_(std::move(function)) {}
  void run() override { function_(); }

 private:
  std::function<void()> function_;
};

/// An algorithm that works on a copy of the operand.
class OlderCall final : public GlooCall {
 public:
  OlderCall(std::string name, const torii_call& call, size_t operands, size_t results)
      : GlooCall(std::move(name)), call_(call), results_(results), memory_(operands) {}
  void set(std::unique_ptr<gloo::Algorithm> algorithm) { algorithm_ = std::move(algorithm); }
  std::vector<float*> pointers() { return {memory_.data()}; }
  int operands() const { return static_cast<int>(memory_.size()); }
  void prepare() override { std::copy_n(input_of(call_), memory_.size(), memory_.data()); }
  void run() override { algorithm_->run(); }
  void settle() override { std::copy_n(memory_.data(), results_, result_of(call_)); }

 private:
  const torii_call& call_;
  size_t results_;
  std::vector<float> memory_;
  std::unique_ptr<gloo::Algorithm> algorithm_;
};

using Ways = std::vector<std::unique_ptr<GlooCall>>;

void add(Ways& ways, std::string name, std::function<void()> function) {
  ways.push_back(std::make_unique<NewerCall>(std::move(name), std::move(function)));
}

using Function = void (*)(void*, const void*, const void*, size_t);
constexpr Function kSum = &gloo::sum<float>;

void add_allreduces(Ways& ways, const ContextPointer& context, const torii_call& call) {
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  for (const Algorithm algorithm : {Algorithm::RING, Algorithm::BCUBE}) {
    add(ways, algorithm == Algorithm::RING ? "ring" : "bcube", [context, &call, algorithm] {
      gloo::AllreduceOptions options(context);
      options.setAlgorithm(algorithm);
      options.setInput(operand_of(call), call.count);
      options.setOutput(result_of(call), call.count);
      options.setReduceFunction(kSum);
      gloo::allreduce(options);
    });
  }
  auto older = std::make_unique<OlderCall>("halving_doubling", call, call.count, call.count);
  older->set(std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, older->pointers(), older->operands()));
  ways.push_back(std::move(older));
}

void add_reduce_scatter(Ways& ways, const ContextPointer& context, const torii_call& call) {
  const auto ranks = static_cast<size_t>(context->size);
  auto older = std::make_unique<OlderCall>("halving_doubling", call, call.count * ranks, call.count);
  const std::vector<int> counts(ranks, static_cast<int>(call.count));
  older->set(std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(context, older->pointers(), older->operands(),
                                                                         counts));
  ways.push_back(std::move(older));
}

void run_broadcast(const ContextPointer& context, const torii_call& call) {
  gloo::BroadcastOptions options(context);
  options.setOutput(result_of(call), call.count);
  options.setRoot(call.root);
  gloo::broadcast(options);
}

void run_reduce(const ContextPointer& context, const torii_call& call, std::vector<float>& scratch) {
  gloo::ReduceOptions options(context);
  options.setInput(operand_of(call), call.count);
  options.setOutput(context->rank == call.root ? result_of(call) : scratch.data(), call.count);
  options.setRoot(call.root);
  options.setReduceFunction(kSum);
  gloo::reduce(options);
}

void run_scatter(const ContextPointer& context, const torii_call& call) {
  gloo::ScatterOptions options(context);
  if (context->rank == call.root) {
    std::vector<float*> blocks;
    for (int rank = 0; rank < context->size; ++rank) {
      blocks.push_back(operand_of(call) + static_cast<size_t>(rank) * call.count);
    }
    options.setInputs(blocks, call.count);
  }
  options.setOutput(result_of(call), call.count);
  options.setRoot(call.root);
  gloo::scatter(options);
}

void run_gather(const ContextPointer& context, const torii_call& call) {
  gloo::GatherOptions options(context);
  options.setInput(operand_of(call), call.count);
  if (context->rank == call.root) {
    options.setOutput(result_of(call), call.count * static_cast<size_t>(context->size));
  }
  options.setRoot(call.root);
  gloo::gather(options);
}

/// Arguments of allgather and alltoall, whose options have the same functions.
template <typename Options>
Options options_of_blocks(const ContextPointer& context, size_t inputs, const torii_call& call) {
  Options options(context);
  options.setInput(operand_of(call), inputs);
  options.setOutput(result_of(call), call.count * static_cast<size_t>(context->size));
  return options;
}

}  // namespace

struct Gloo::State {
  ContextPointer context;
};

Gloo::Gloo(const Job& job) : state_(std::make_unique<State>()) {
  const SharedFolder folder(job);
  gloo::rendezvous::FileStore store(folder.path());
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  auto context = std::make_shared<gloo::rendezvous::Context>(job.rank(), job.ranks());
  context->setTimeout(kGlooTimeout);
  context->connectFullMesh(store, device);
  state_->context = context;
  job.barrier();
}

Gloo::~Gloo() = default;

std::string Gloo::version() {
  return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
         std::to_string(GLOO_VERSION_PATCH);
}

Ways Gloo::ways(const torii_call& call) const {
  const ContextPointer& context = state_->context;
  Ways made;
  switch (call.collective) {
    case TORII_BARRIER:
      add(made, "barrier", [context] {
        gloo::BarrierOptions options(context);
        gloo::barrier(options);
      });
      break;
    case TORII_BROADCAST:
      add(made, "broadcast", [context, &call] { run_broadcast(context, call); });
      break;
    case TORII_REDUCE:
      add(made, "reduce",
          [context, &call, scratch = std::vector<float>(call.count)]() mutable { run_reduce(context, call, scratch); });
      break;
    case TORII_ALLREDUCE:
      add_allreduces(made, context, call);
      break;
    case TORII_ALL_GATHER:
      add(made, "allgather", [context, &call] {
        auto options = options_of_blocks<gloo::AllgatherOptions>(context, call.count, call);
        gloo::allgather(options);
      });
      break;
    case TORII_REDUCE_SCATTER:
      add_reduce_scatter(made, context, call);
      break;
    case TORII_ALLTOALL:
      add(made, "alltoall", [context, &call] {
        const size_t inputs = call.count * static_cast<size_t>(context->size);
        auto options = options_of_blocks<gloo::AlltoallOptions>(context, inputs, call);
        gloo::alltoall(options);
      });
      break;
    case TORII_SCATTER:
      add(made, "scatter", [context, &call] { run_scatter(context, call); });
      break;
    case TORII_GATHER:
      add(made, "gather", [context, &call] { run_gather(context, call); });
      break;
    case TORII_SCAN:
    case TORII_EXSCAN:
      break;
  }
  return made;
}

}  // namespace torii::perf
