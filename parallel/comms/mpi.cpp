// MPI's nonblocking collectives; mpi_group.cpp waits for them. mpirun itself kills the whole job
// when a rank ends without MPI_Finalize: survivors get to tell what they saw only under howmany's
// own launch (mpirun.cpp).
#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "core/error.h"
#include "parallel/comm_list.h"
#include "parallel/comms/combine.h"
#include "parallel/comms/mpi_group.h"
#include "parallel/comms/mpi_messages.h"
#include "parallel/comms/mpi_types.h"

namespace howmany {
namespace {

class Mpi : public CommEngine {
 public:
  // No group: alone, which needs no MPI at all.
  Mpi(int rank, int size, std::unique_ptr<MpiGroup> group, std::chrono::milliseconds timeout)
      : CommEngine(rank, size), group_(std::move(group)) {
    set_timeout(timeout);
  }

  std::string_view name() const override { return "mpi"; }
  std::map<std::string, std::string> details() const override {
    return group_ ? group_->process().details() : std::map<std::string, std::string>{};
  }

  void all_reduce(Tensor& t, ReduceOp op) override {
    mpi_all_reduce(*group_, t, op, scratch_, timeout());
  }

  void broadcast(Tensor& t, int root) override {
    if (size() == 2 || t.bytes() < kRing) return mpi_broadcast(*group_, t, root, timeout());
    for_each_chunk(t, [&](int64_t at, int n) {
      collective({&t}, [&](MPI_Request* request) {
        return MPI_Ibcast(at_byte(t, at), n, type_of(t.dtype()), root, comm(), request);
      });
    });
  }

  void all_gather(const Tensor& send, Tensor& receive) override {
    if (size() == 2 || send.bytes() >= kRing)
      return mpi_all_gather(*group_, send, receive, timeout());
    collective({&send, &receive}, [&](MPI_Request* request) {
      const Part part(send.dtype(), send.numel());
      return MPI_Iallgather(sent(send, receive), part.count, part.type, receive.mutable_raw(),
                            part.count, part.type, comm(), request);
    });
  }

  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override {
    if (send.numel() > kMostElements || send.dtype() == Dtype::bf16)
      return reduce_scatter_ourselves(send, receive, op);
    if (is_own_part(receive, send, rank())) return reduce_scatter_in_place(send, receive, op);
    collective({&send, &receive}, [&](MPI_Request* request) {
      return MPI_Ireduce_scatter_block(send.raw(), receive.mutable_raw(),
                                       static_cast<int>(receive.numel()), type_of(send.dtype()),
                                       op_of(op), comm(), request);
    });
  }

  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override {
    if (send.dtype() == Dtype::bf16) return reduce_ourselves(send, receive, root, op);
    const bool stays = rank() == root && send.raw() == receive.raw();
    for_each_chunk(send, [&](int64_t at, int n) {
      collective({&send, &receive}, [&](MPI_Request* request) {
        return MPI_Ireduce(stays ? MPI_IN_PLACE : at_byte(send, at),
                           rank() == root ? at_byte(receive, at) : nullptr, n,
                           type_of(send.dtype()), op_of(op), root, comm(), request);
      });
    });
  }

  void gather(const Tensor& send, Tensor& receive, int root) override {
    collective({&send, &receive}, [&](MPI_Request* request) {
      const Part part(send.dtype(), send.numel());
      if (rank() != root)
        return MPI_Igather(send.raw(), part.count, part.type, nullptr, 0, part.type, root, comm(),
                           request);
      return MPI_Igather(sent(send, receive), part.count, part.type, receive.mutable_raw(),
                         part.count, part.type, root, comm(), request);
    });
  }

  void scatter(const Tensor& send, Tensor& receive, int root) override {
    collective({&send, &receive}, [&](MPI_Request* request) {
      const Part part(receive.dtype(), receive.numel());
      const bool stays = rank() == root && is_own_part(receive, send, root);
      return MPI_Iscatter(rank() == root ? send.raw() : nullptr, part.count, part.type,
                          stays ? MPI_IN_PLACE : receive.mutable_raw(), part.count, part.type, root,
                          comm(), request);
    });
  }

  void all_to_all(const Tensor& send, Tensor& receive) override {
    collective({&send, &receive}, [&](MPI_Request* request) {
      const Part part(send.dtype(), send.numel() / size());
      return MPI_Ialltoall(send.raw(), part.count, part.type, receive.mutable_raw(), part.count,
                           part.type, comm(), request);
    });
  }

  void send(const Tensor& t, int peer, int tag) override {
    group_->message(peer, {&t}, timeout(), [&](MPI_Request* request) {
      const Part part(t.dtype(), t.numel());
      return MPI_Isend(t.raw(), part.count, part.type, peer, tag, comm(), request);
    });
  }

  void receive(Tensor& t, int peer, int tag) override {
    const MPI_Status status = group_->message(peer, {&t}, timeout(), [&](MPI_Request* request) {
      const Part part(t.dtype(), t.numel());
      return MPI_Irecv(t.mutable_raw(), part.count, part.type, peer, tag, comm(), request);
    });
    MPI_Count elements = 0;
    MPI_Get_elements_x(&status, type_of(t.dtype()), &elements);
    if (elements != t.numel())
      group_->give_up(peer, "sent another size or dtype than was asked for");
  }

  void barrier() override { mpi_barrier(*group_, timeout()); }

  // Making a group is a blocking call: all members say first that they are there.
  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    const auto count = static_cast<int>(members.size());
    if (count == 1) return std::make_unique<Mpi>(0, 1, nullptr, timeout());
    const int tag = group_->process().most_tag();
    Tensor token = Tensor::full({1}, 1);
    for (int i = 1; i < count && index == 0; ++i)
      receive(token, members[static_cast<size_t>(i)], tag);
    if (index > 0) send(token, members[0], tag);
    for (int i = 1; i < count && index == 0; ++i) send(token, members[static_cast<size_t>(i)], tag);
    if (index > 0) receive(token, members[0], tag);
    auto group = std::make_unique<MpiGroup>(*group_, members, index, id);
    return std::make_unique<Mpi>(index, count, std::move(group), timeout());
  }

  void abort(std::string_view why) noexcept override {
    if (group_) group_->abort(why);
  }

 private:
  MPI_Comm comm() const { return group_->comm(); }

  const void* sent(const Tensor& send, const Tensor& receive) const {
    return is_own_part(send, receive, rank()) ? MPI_IN_PLACE : send.raw();
  }

  template <typename Call>
  void collective(MpiGroup::Buffers buffers, const Call& start) {
    group_->collective(buffers, timeout(), std::cref(start));  // by reference: nothing to allocate
  }

  // call(byte, elements)
  template <typename Call>
  void for_each_chunk(const Tensor& t, Call call) {
    const auto width = static_cast<int64_t>(size_of(t.dtype()));
    for (int64_t at = 0; at < t.numel(); at += kMostElements)
      call(at * width, static_cast<int>(std::min(kMostElements, t.numel() - at)));
  }
  static void* at_byte(Tensor& t, int64_t at) { return static_cast<char*>(t.mutable_raw()) + at; }
  static const void* at_byte(const Tensor& t, int64_t at) {
    return static_cast<const char*>(t.raw()) + at;
  }

  // The parts of all ranks, one after the other, in their order.
  void add_up(void* sum, const char* parts, int64_t each, Dtype dtype, ReduceOp op) const {
    const Combine combine = combine_of(dtype, op);
    const int64_t bytes = each * static_cast<int64_t>(size_of(dtype));
    combine(sum, parts, parts + bytes, static_cast<size_t>(each));
    for (int r = 2; r < size(); ++r)
      combine(sum, sum, parts + r * bytes, static_cast<size_t>(each));
  }

  // What MPI calls so leaves every rank's sum at the beginning of the whole.
  void reduce_scatter_in_place(const Tensor& send, Tensor& receive, ReduceOp op) {
    Tensor sum = Tensor::empty(receive.shape(), receive.dtype());
    reduce_scatter(send, sum, op);
    receive.copy_from(sum);
  }

  // No MPI call knows bf16: all get the sum.
  void reduce_ourselves(const Tensor& send, Tensor& receive, int root, ReduceOp op) {
    Tensor sum = rank() == root ? receive : Tensor::empty(send.shape(), send.dtype());
    if (sum.raw() != send.raw()) sum.copy_from(send);
    all_reduce(sum, op);
  }

  // No MPI call takes so many, or knows bf16: the parts are exchanged and added up in rank order.
  void reduce_scatter_ourselves(const Tensor& send, Tensor& receive, ReduceOp op) {
    Tensor parts = Tensor::empty(send.shape(), send.dtype());
    all_to_all(send, parts);
    add_up(receive.mutable_raw(), static_cast<const char*>(std::as_const(parts).raw()),
           receive.numel(), send.dtype(), op);
  }

  const std::unique_ptr<MpiGroup> group_;
  Tensor scratch_;
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
