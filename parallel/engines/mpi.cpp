// SPDX-License-Identifier: Apache-2.0
// MPI's own collectives, by its blocking calls, as PyTorch's ProcessGroupMPI and Horovod make them.
// MpiGroup watches them. mpirun kills the job if a rank ends without MPI_Finalize, so survivors can
// report a failure only under howmany's own launcher (mpirun.cpp).
#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/error.h"
#include "parallel/comm/comm_list.h"
#include "parallel/engines/mpi_group.h"
#include "parallel/engines/mpi_types.h"

namespace howmany {
namespace {

class Mpi : public CommEngine {
 public:
  // group is null if size is 1, which needs no MPI.
  Mpi(int rank, int size, std::unique_ptr<MpiGroup> group, std::chrono::milliseconds timeout)
      : CommEngine(rank, size), group_(std::move(group)) {
    set_timeout(timeout);
    if (group_) group_->set_engine(*this);
  }

  std::string_view name() const override { return "mpi"; }
  std::map<std::string, std::string> details() const override {
    return group_ ? group_->process().details() : std::map<std::string, std::string>{};
  }

  void all_reduce(Tensor& t, ReduceOp op) override {
    for_each_chunk(t, [&](int64_t at, int n) {
      collective([&] {
        return MPI_Allreduce(MPI_IN_PLACE, at_byte(t, at), n, type_of(t.dtype()),
                             op_of(t.dtype(), op), comm());
      });
    });
  }

  void broadcast(Tensor& t, int root) override {
    for_each_chunk(t, [&](int64_t at, int n) {
      collective([&] { return MPI_Bcast(at_byte(t, at), n, type_of(t.dtype()), root, comm()); });
    });
  }

  void all_gather(const Tensor& send, Tensor& receive) override {
    const Part part(send.dtype(), send.numel());
    collective([&] {
      return MPI_Allgather(sent(send, receive), part.count, part.type, receive.mutable_raw(),
                           part.count, part.type, comm());
    });
  }

  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override {
    if (send.numel() > kMaxElements) return reduce_each_part(send, receive, op);
    if (is_own_part(receive, send, rank())) return reduce_scatter_in_place(send, receive, op);
    collective([&] {
      return MPI_Reduce_scatter_block(send.raw(), receive.mutable_raw(),
                                      static_cast<int>(receive.numel()), type_of(send.dtype()),
                                      op_of(send.dtype(), op), comm());
    });
  }

  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override {
    const bool stays = rank() == root && send.raw() == receive.raw();
    for_each_chunk(send, [&](int64_t at, int n) {
      collective([&] {
        return MPI_Reduce(stays ? MPI_IN_PLACE : at_byte(send, at),
                          rank() == root ? at_byte(receive, at) : nullptr, n, type_of(send.dtype()),
                          op_of(send.dtype(), op), root, comm());
      });
    });
  }

  void gather(const Tensor& send, Tensor& receive, int root) override {
    const Part part(send.dtype(), send.numel());
    const bool is_root = rank() == root;
    collective([&] {
      return MPI_Gather(is_root ? sent(send, receive) : send.raw(), part.count, part.type,
                        is_root ? receive.mutable_raw() : nullptr, part.count, part.type, root,
                        comm());
    });
  }

  void scatter(const Tensor& send, Tensor& receive, int root) override {
    const Part part(receive.dtype(), receive.numel());
    const bool is_root = rank() == root;
    const bool stays = is_root && is_own_part(receive, send, root);
    collective([&] {
      return MPI_Scatter(is_root ? send.raw() : nullptr, part.count, part.type,
                         stays ? MPI_IN_PLACE : receive.mutable_raw(), part.count, part.type, root,
                         comm());
    });
  }

  void all_to_all(const Tensor& send, Tensor& receive) override {
    const Part part(send.dtype(), send.numel() / size());
    collective([&] {
      return MPI_Alltoall(send.raw(), part.count, part.type, receive.mutable_raw(), part.count,
                          part.type, comm());
    });
  }

  void send(const Tensor& t, int peer, int tag) override {
    const Part part(t.dtype(), t.numel());
    group_->message(peer, limit(),
                    [&] { return MPI_Send(t.raw(), part.count, part.type, peer, tag, comm()); });
  }

  void receive(Tensor& t, int peer, int tag) override {
    const Part part(t.dtype(), t.numel());
    MPI_Status status{};
    group_->message(peer, limit(), [&] {
      return MPI_Recv(t.mutable_raw(), part.count, part.type, peer, tag, comm(), &status);
    });
    MPI_Count elements = 0;
    MPI_Get_elements_x(&status, type_of(t.dtype()), &elements);
    if (elements != t.numel())
      group_->fail(peer, "sent another size or dtype than this rank expects");
  }

  void barrier() override {
    collective([&] { return MPI_Barrier(comm()); });
  }

  void assemble() override { group_->assemble(timeout()); }

  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    if (members.size() == 1) return std::make_unique<Mpi>(0, 1, nullptr, timeout());
    auto group = std::make_unique<MpiGroup>(*group_, members, index, id, limit());
    return std::make_unique<Mpi>(index, static_cast<int>(members.size()), std::move(group),
                                 timeout());
  }

  void abort(std::string_view why) noexcept override {
    if (group_) group_->abort(why);
  }

 private:
  MPI_Comm comm() const { return group_->comm(); }
  MpiGroup::Limit limit() const { return {start_of_call(), timeout()}; }

  const void* sent(const Tensor& send, const Tensor& receive) const {
    return is_own_part(send, receive, rank()) ? MPI_IN_PLACE : send.raw();
  }

  template <typename Call>
  void collective(const Call& call) {
    group_->collective(limit(), call);
  }

  // call(byte, elements)
  template <typename Call>
  void for_each_chunk(const Tensor& t, Call call) {
    const auto width = static_cast<int64_t>(size_of(t.dtype()));
    for (int64_t at = 0; at < t.numel(); at += kMaxElements)
      call(at * width, static_cast<int>(std::min(kMaxElements, t.numel() - at)));
  }
  static void* at_byte(Tensor& t, int64_t at) { return static_cast<char*>(t.mutable_raw()) + at; }
  static const void* at_byte(const Tensor& t, int64_t at) {
    return static_cast<const char*>(t.raw()) + at;
  }

  // MPI_IN_PLACE would leave every rank's result at the beginning of the buffer.
  void reduce_scatter_in_place(const Tensor& send, Tensor& receive, ReduceOp op) {
    Tensor sum = Tensor::empty(receive.shape(), receive.dtype());
    reduce_scatter(send, sum, op);
    receive.copy_from(sum);
  }

  // For more elements than an MPI count holds.
  void reduce_each_part(const Tensor& send, Tensor& receive, ReduceOp op) {
    Tensor sum = Tensor::empty(receive.shape(), receive.dtype());
    for (int r = 0; r < size(); ++r) reduce(part_of(send, r), sum, r, op);
    receive.copy_from(sum);
  }
  Tensor part_of(const Tensor& whole, int rank) const {
    const int64_t each = whole.numel() / size();
    return whole.view({whole.numel()}).rows(rank * each, (rank + 1) * each);
  }

  const std::unique_ptr<MpiGroup> group_;
};

}  // namespace

std::unique_ptr<CommEngine> comms::mpi(const Place& place, std::chrono::milliseconds timeout) {
  if (place.world == 1) return std::make_unique<Mpi>(0, 1, nullptr, timeout);
  MpiProcess& mpi = MpiProcess::get();
  HM_REQUIRE(
      mpi.size() == place.world && mpi.rank() == place.rank,
      "[connect] rank {} of {}, but mpi says {} of {}: RANK and WORLD_SIZE contradict mpirun",
      place.rank, place.world, mpi.rank(), mpi.size());
  static std::atomic<int> worlds = 0;
  const std::string name = fmt::format("world{}", ++worlds);
  return std::make_unique<Mpi>(place.rank, place.world,
                               std::make_unique<MpiGroup>(mpi, name, timeout), timeout);
}

}  // namespace howmany
