// SPDX-License-Identifier: Apache-2.0
// A process group of PyTorch over a team of torii.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/pytorch/operations.hpp"
#include "plugins/pytorch/progress_thread.hpp"
#include "plugins/pytorch/team.hpp"
#include "plugins/pytorch/torch_version.hpp"
#include "plugins/pytorch/work.hpp"

namespace torii_torch {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;

/// Tags from here on are the group's own.
inline constexpr int kFirstOwnTag = 1 << 30;

/// Ranks issue the collectives of a group in the same order; sends and receives are in no order with them. Tensors that
/// do not fit make the call throw, and count as this rank's call, so that the other ranks do not wait for it.
class Group final : public GroupBase {
 public:
  /// Joins the other ranks over the store. Collective.
  Group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, std::chrono::milliseconds timeout,
        const GroupOptions& options);
  Group(std::shared_ptr<Team> team, std::chrono::milliseconds timeout);
  ~Group() override;

  const std::string getBackendName() const override { return "torii"; }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPointer scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                            std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int to, int tag) override;
  WorkPointer recv(Tensors& tensors, int from, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_for_all) override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_.load(); }
#if TORCH_VERSION_MAJOR >= 2
  WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override;
#endif

  // Beyond what PyTorch asks for.
  /// Ends every operation of the group on all ranks. From any thread.
  void abort_group(const std::string& reason);
  /// For questions.
  const Team& team() const noexcept { return *team_; }
  /// The ranks in the group that the job began with, in the order of this one.
  std::vector<int> members() const { return team_->members(); }
  /// Empty if the group works, otherwise why not.
  std::string ill() const;
  /// A group of the living ranks, in the old order, after an operation has failed. Collective over them.
  c10::intrusive_ptr<Group> survivors(const std::vector<int>& without, bool allow_minority) const;
  /// Ends the progress thread, before the interpreter ends. Operations that are started later have none.
  void rest();
  bool has_thread() const;

 private:
  template <typename CallOptions, typename Maker>
  WorkPointer issue(const CallOptions& options, const Maker& make);
  WorkPointer issue_operation(Operation operation, bool waits);
  WorkPointer hand_out(c10::intrusive_ptr<Work> work);
  std::shared_ptr<ProgressThread> progress();
  WorkPointer receive(Tensors& tensors, int from, int tag, c10d::OpType type, const char* title);
  Place place() const { return {getRank(), getSize()}; }

  std::shared_ptr<Team> team_;
  std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;  ///< guards progress_
  std::shared_ptr<ProgressThread> progress_;
  std::atomic<uint64_t> sequence_ = 0;
  uint64_t monitored_barriers_ = 0;
};

}  // namespace torii_torch
