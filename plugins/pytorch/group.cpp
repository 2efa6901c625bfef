// SPDX-License-Identifier: Apache-2.0
// Issuing operations, the group's life, and what a failure leaves.
#include "plugins/pytorch/group.hpp"

#include <Python.h>

#include <utility>

#include "plugins/pytorch/caller.hpp"
#include "plugins/pytorch/issue.hpp"

namespace torii_torch {
namespace {

void check_peer(int peer, int ranks, int tag) {
  if (peer < 0 || peer >= ranks) throw std::invalid_argument("there is no rank " + std::to_string(peer));
  if (tag < 0 || tag >= kFirstOwnTag) {
    throw std::invalid_argument("tag is " + std::to_string(tag) + "; torii takes 0 to " +
                                std::to_string(kFirstOwnTag - 1));
  }
}

}  // namespace

Group::Group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, std::chrono::milliseconds timeout,
             const GroupOptions& options)
    : Group(std::make_shared<Team>(store, rank, ranks, timeout, options), timeout) {}

Group::Group(std::shared_ptr<Team> team, std::chrono::milliseconds timeout)
    : GroupBase(team->rank(), team->ranks()), team_(std::move(team)), timeout_(timeout) {}

Group::~Group() {
  if (!team_->is_mine()) {
    // In a forked child the thread does not exist, so it can neither be joined nor destroyed.
    (void)new std::shared_ptr<ProgressThread>(progress_);
    return;
  }
  // Python destroys groups with the GIL held. A callback of the progress thread may wait for it, or be what runs here.
  const bool has_gil = Py_IsInitialized() != 0 && PyGILState_Check() != 0;
  PyThreadState* const state = has_gil ? PyEval_SaveThread() : nullptr;
  if (progress_) progress_->stop();
  progress_.reset();
  team_.reset();
  if (has_gil) PyEval_RestoreThread(state);
}

WorkPointer Group::issue_operation(Operation operation, bool waits) {
  sequence_.fetch_add(1, std::memory_order_relaxed);
  const bool is_barrier = operation.type == c10d::OpType::BARRIER;
  auto work = c10::make_intrusive<Work>(team_, std::move(operation));
  if (is_barrier && has_thread()) {
    auto earlier = progress()->pending();
    // The other end of a send or receive may come after the barrier. Gloo's barrier waits for collectives alone, too.
    std::erase_if(earlier, [](const auto& one) { return one->has_one_peer(); });
    if (!earlier.empty()) {
      work->end_after(std::move(earlier));
      waits = false;
    }
  }
  if (waits) {
    work->run();
    return work;
  }
  work->start();
  return hand_out(std::move(work));
}

WorkPointer Group::hand_out(c10::intrusive_ptr<Work> work) {
  if (!work->has_ended()) {
    const std::shared_ptr<ProgressThread> thread = progress();
    work->set_progress(thread);
    thread->add(work);
  }
  return work;
}

std::shared_ptr<ProgressThread> Group::progress() {
  const std::lock_guard lock(mutex_);
  if (!progress_) progress_ = std::make_shared<ProgressThread>(team_);
  return progress_;
}

void Group::abort_group(const std::string& reason) {
  team_->check_owner();
  (void)torii_team_abort(team_->get(), reason.c_str());
}

std::string Group::ill() const {
  const torii_status status = torii_team_health(team_->get());
  return status == TORII_OK ? "" : std::string(torii_status_name(status)) + ": " + torii_last_error();
}

c10::intrusive_ptr<Group> Group::survivors(const std::vector<int>& without, bool allow_minority) const {
  team_->check_owner();
  return c10::make_intrusive<Group>(std::make_shared<Team>(*team_, timeout_, without, allow_minority), timeout_);
}

void Group::rest() {
  if (!team_->is_mine()) return;
  const auto take = [this] {
    const std::lock_guard lock(mutex_);
    return std::exchange(progress_, nullptr);
  };
  // A callback that still runs may start operations, which have another thread.
  while (const std::shared_ptr<ProgressThread> thread = take()) thread->stop();
}

bool Group::has_thread() const {
  if (!team_->is_mine()) return false;
  const std::lock_guard lock(mutex_);
  return progress_ != nullptr;
}

// ---- sends and receives

WorkPointer Group::send(Tensors& tensors, int to, int tag) {
  team_->check_owner();
  const at::Tensor& tensor = only_tensor(tensors);
  check_peer(to, getSize(), tag);
  Operation made{.type = c10d::OpType::SEND, .title = "torii:send", .inputs = tensors};
  const at::Tensor memory = packed_input(made, tensor);
  const Elements elements = elements_to_move(tensor);
  const size_t count = static_cast<size_t>(tensor.numel()) * elements.per_element;
  auto work = c10::make_intrusive<Work>(team_, std::move(made));
  if (python_caller_waits()) {
    work->end(torii_send(team_->get(), memory.data_ptr(), count, elements.type, to, tag));
    return work;
  }
  work->start_send(memory.data_ptr(), count, elements.type, to, tag);
  return hand_out(std::move(work));
}

WorkPointer Group::recv(Tensors& tensors, int from, int tag) {
  check_peer(from, getSize(), tag);
  return receive(tensors, from, tag, c10d::OpType::RECV, "torii:recv");
}

WorkPointer Group::recvAnysource(Tensors& tensors, int tag) {
  check_peer(getRank(), getSize(), tag);
  return receive(tensors, TORII_ANY_RANK, tag, c10d::OpType::RECVANYSOURCE, "torii:recvAnySource");
}

WorkPointer Group::receive(Tensors& tensors, int from, int tag, c10d::OpType type, const char* title) {
  team_->check_owner();
  const at::Tensor& tensor = only_tensor(tensors);
  Operation made{.type = type, .title = title, .inputs = tensors, .results = tensors};
  const at::Tensor memory = packed_output(made, tensor, false);
  const Elements elements = elements_to_move(tensor);
  const size_t count = static_cast<size_t>(tensor.numel()) * elements.per_element;
  auto work = c10::make_intrusive<Work>(team_, std::move(made));
  if (python_caller_waits()) {
    work->end(torii_recv(team_->get(), memory.data_ptr(), count, elements.type, from, tag, work->received()));
    return work;
  }
  work->start_receive(memory.data_ptr(), count, elements.type, from, tag);
  return hand_out(std::move(work));
}

}  // namespace torii_torch
