#include "parallel/comms/mpi_all_reduce.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "parallel/comms/combine.h"
#include "parallel/comms/mpi_types.h"

namespace howmany {
namespace {

// Bytes from which a ring, of more messages but shorter ones, is faster.
constexpr int64_t kRing = 16 << 10;
// Bytes of a part, so that it is still in the cache when it is added to.
constexpr int64_t kPart = 512 << 10;

class AllReduce {
 public:
  AllReduce(MpiGroup& group, Tensor& t, ReduceOp op, Tensor& scratch,
            std::chrono::milliseconds timeout)
      : group_(group),
        t_(t),
        scratch_(scratch),
        timeout_(timeout),
        combine_(combine_of(t.dtype(), op)),
        width_(static_cast<int64_t>(size_of(t.dtype()))),
        data_(static_cast<char*>(t.mutable_raw())) {}

  void run() {
    const bool doubles = std::has_single_bit(static_cast<unsigned>(size()));
    if (doubles && t_.bytes() < kRing) return double_up();
    const int64_t n = t_.numel(), most = size() * kPart / width_;
    for (int64_t begin = 0; begin < n; begin += most) go_round({begin, std::min(n, begin + most)});
  }

 private:
  struct Part {
    int64_t begin, end;  // elements
    int64_t count() const { return end - begin; }
  };

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

  void double_up() {
    const Part all{0, t_.numel()};
    char* const theirs = room_for(all);
    for (int bit = 1; bit < size(); bit *= 2) {
      exchange(all, rank() ^ bit, theirs, all, rank() ^ bit);
      combine_(data_, data_, theirs, static_cast<size_t>(all.count()));
    }
  }

  // Each part is added up on its way round, and goes round once more when it is whole.
  void go_round(const Part& whole) {
    const auto part = [&](int of) { return part_of(whole, wrapped(of)); };
    char* const theirs = room_for(part(size() - 1));
    for (int step = 0; step + 1 < size(); ++step) {
      const Part next = part(rank() - step - 1);
      exchange(part(rank() - step), rank() + 1, theirs, next, rank() - 1);
      combine_(at(next), at(next), theirs, static_cast<size_t>(next.count()));
    }
    for (int step = 0; step + 1 < size(); ++step) {
      const Part next = part(rank() - step);
      exchange(part(rank() + 1 - step), rank() + 1, at(next), next, rank() - 1);
    }
  }

  int wrapped(int rank) const { return (rank + 2 * size()) % size(); }
  char* at(const Part& part) const { return data_ + part.begin * width_; }
  // None is larger than the last.
  Part part_of(const Part& whole, int i) const {
    const int64_t each = whole.count() / size(), begin = whole.begin + i * each;
    return {begin, i + 1 == size() ? whole.end : begin + each};
  }

  char* room_for(const Part& part) {
    const int64_t bytes = part.count() * width_;
    if (scratch_.bytes() < bytes) scratch_ = Tensor::empty({bytes}, Dtype::u8);
    return static_cast<char*>(scratch_.mutable_raw());
  }

  void exchange(const Part& mine, int to, char* into, const Part& theirs, int from) {
    const int tag = group_.process().most_tag() - 1;
    const auto start = [&](MPI_Request* requests) {
      const howmany::Part in(t_.dtype(), theirs.count()), out(t_.dtype(), mine.count());
      const int code =
          MPI_Irecv(into, in.count, in.type, wrapped(from), tag, group_.comm(), &requests[0]);
      if (code != MPI_SUCCESS) return code;
      return MPI_Isend(at(mine), out.count, out.type, wrapped(to), tag, group_.comm(),
                       &requests[1]);
    };
    group_.step({&t_, &scratch_}, timeout_, std::cref(start));
  }

  MpiGroup& group_;
  Tensor &t_, &scratch_;
  const std::chrono::milliseconds timeout_;
  const Combine combine_;
  const int64_t width_;
  char* const data_;
};

}  // namespace

void mpi_all_reduce(MpiGroup& group, Tensor& t, ReduceOp op, Tensor& scratch,
                    std::chrono::milliseconds timeout) {
  group.collective([&] { AllReduce(group, t, op, scratch, timeout).run(); });
}

}  // namespace howmany
