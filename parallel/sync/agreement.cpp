// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/agreement.h"

#include <utility>

namespace howmany {

bool Agreement::any(bool mine) {
  Tensor wanted = Tensor::full({1}, mine ? 1 : 0, Dtype::f32, comm_.native_device());
  if (comm_.native_device().type == DeviceType::cpu) {
    comm_.all_reduce(wanted, ReduceOp::max);
    return wanted.item() != 0;
  }
  Work work = comm_.all_reduce_async(wanted, ReduceOp::max);
  work.wait();
  return std::exchange(answer_, StepLoss(wanted, work)).value() != 0;
}

uint64_t of_rank_0(Comm& comm, uint64_t value) {
  Tensor t = Tensor::from<int64_t>({static_cast<int64_t>(value)}, {1});
  comm.broadcast(t, 0);
  return static_cast<uint64_t>(t.values<int64_t>()[0]);
}

bool on_all_ranks(Comm& comm, bool mine) {
  Tensor all = Tensor::full({1}, mine ? 1 : 0, Dtype::f32);
  comm.all_reduce(all, ReduceOp::min);
  return all.item() != 0;
}

}  // namespace howmany
