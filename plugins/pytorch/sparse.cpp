// SPDX-License-Identifier: Apache-2.0
// A sparse allreduce: how many values each rank has, then their coordinates, then the values.
#include "plugins/pytorch/sparse.hpp"

#include <stdexcept>
#include <string>

#include "plugins/pytorch/packing.hpp"

namespace torii_torch {
namespace {

void run(const Team& team, const torii_call& call) {
  const torii_status status = torii_run(team.get(), &call);
  if (status != TORII_OK) std::rethrow_exception(team.failure(status, "sparse_all_reduce"));
}

/// What must be equal on all ranks, and how many values this rank has, in a fixed number of integers.
constexpr int64_t kShapeNumbers = 18;

at::Tensor describe(const at::Tensor& tensor) {
  at::Tensor made = at::zeros({kShapeNumbers}, at::kLong);
  auto numbers = made.accessor<int64_t, 1>();
  if (tensor.dim() > kShapeNumbers - 3) throw std::invalid_argument("a sparse tensor of more than 15 dimensions");
  numbers[0] = tensor._nnz();
  numbers[1] = tensor.sparse_dim();
  numbers[2] = tensor.dim();
  for (int64_t i = 0; i < tensor.dim(); ++i) numbers[3 + i] = tensor.size(i);
  return made;
}

/// The blocks of all ranks along dimension 0; rank r has rows[r] rows.
at::Tensor gather_rows(const Team& team, const at::Tensor& mine, const std::vector<int64_t>& rows,
                       std::chrono::milliseconds timeout) {
  int64_t all_rows = 0;
  for (const int64_t count : rows) all_rows += count;
  auto sizes = mine.sizes().vec();
  sizes[0] = all_rows;
  at::Tensor all = at::empty(sizes, mine.options());
  int64_t row_elements = 1;
  for (size_t i = 1; i < sizes.size(); ++i) row_elements *= sizes[i];
  torii_call call = new_call(TORII_ALL_GATHER, timeout);
  const Elements elements = elements_to_move(mine);
  std::vector<size_t> counts;
  for (const int64_t count : rows) counts.push_back(static_cast<size_t>(count * row_elements) * elements.per_element);
  call.type = elements.type;
  call.count = counts[static_cast<size_t>(team.rank())];
  call.unequal = 1;
  call.result_counts = counts.data();
  call.input = mine.data_ptr();
  call.result = all.data_ptr();
  run(team, call);
  return all;
}

}  // namespace

Operation reduce_sparse(const Team& team, const at::Tensor& tensor, const c10d::AllreduceOptions& options) {
  if (!tensor.is_sparse() || !tensor.device().is_cpu()) {
    throw std::invalid_argument("torii takes sparse tensors of the CPU in coordinate form");
  }
  if (static_cast<c10d::ReduceOp::RedOpType>(options.reduceOp) != c10d::ReduceOp::SUM) {
    throw std::invalid_argument("unsupported reduction operation: sparse tensors are summed only");
  }
  const at::NoGradGuard no_grad;
  const at::Tensor mine = tensor.coalesce();
  const at::Tensor shape = describe(mine);
  const at::Tensor shapes = at::empty({team.ranks(), kShapeNumbers}, at::kLong);
  torii_call call = new_call(TORII_ALL_GATHER, options.timeout);
  call.type = TORII_I64;
  call.count = kShapeNumbers;
  call.input = shape.data_ptr();
  call.result = shapes.data_ptr();
  run(team, call);
  std::vector<int64_t> rows;
  for (int64_t rank = 0; rank < team.ranks(); ++rank) {
    rows.push_back(shapes[rank][0].item<int64_t>());
    if (!at::equal(shapes[rank].slice(0, 1), shape.slice(0, 1))) {
      throw std::invalid_argument("sparse tensors of rank " + std::to_string(rank) + " and rank " +
                                  std::to_string(team.rank()) + " have different shapes");
    }
  }
  const at::Tensor places = gather_rows(team, mine.indices().t().contiguous(), rows, options.timeout);
  const at::Tensor values = gather_rows(team, mine.values().contiguous(), rows, options.timeout);
  const at::Tensor sum = at::sparse_coo_tensor(places.t(), values, tensor.sizes(), tensor.options()).coalesce();
  Operation made{.type = c10d::OpType::ALLREDUCE, .title = "torii:sparse_all_reduce", .inputs = {tensor}};
  made.results = {tensor};
  made.finish = [tensor, sum] {
    const at::NoGradGuard no_gradient;
    tensor.copy_(sum);
  };
  return made;
}

}  // namespace torii_torch
