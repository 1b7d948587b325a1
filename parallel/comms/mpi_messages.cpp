#include "parallel/comms/mpi_messages.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/copy.h"
#include "parallel/comms/combine.h"
#include "parallel/comms/mpi_types.h"

namespace howmany {
namespace {

// Bytes of a part, so that it is still in the cache when it is added to.
constexpr int64_t kPart = 512 << 10;

// Messages below, with MPI's own words around them, go without asking the receiver.
constexpr int64_t kAtOnce = 4 << 10;

struct Piece {
  char* at;
  int64_t elements;
};

// Sends one piece while it receives another; ranks wrap around.
class Exchange {
 public:
  Exchange(MpiGroup& group, Dtype dtype, std::chrono::milliseconds timeout)
      : group_(group),
        dtype_(dtype),
        width_(static_cast<int64_t>(size_of(dtype))),
        timeout_(timeout) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  int wrapped(int rank) const { return (rank + 2 * size()) % size(); }

  void operator()(MpiGroup::Buffers buffers, const Piece& mine, int to, const Piece& theirs,
                  int from) const {
    const auto start = [&](MPI_Request* requests) {
      const int code = ask_for(theirs, from, MpiGroup::kCalls / 2, requests);
      return code != MPI_SUCCESS ? code : give(mine, to, MpiGroup::kCalls / 2, requests);
    };
    group_.step(buffers, timeout_, std::cref(start));
  }
  void receive(MpiGroup::Buffers buffers, const Piece& theirs, int from) const {
    const auto start = [&](MPI_Request* requests) {
      return ask_for(theirs, from, MpiGroup::kCalls, requests);
    };
    group_.step(buffers, timeout_, std::cref(start));
  }
  void send(MpiGroup::Buffers buffers, const Piece& mine, int to) const {
    const auto start = [&](MPI_Request* requests) {
      return give(mine, to, MpiGroup::kCalls, requests);
    };
    group_.step(buffers, timeout_, std::cref(start));
  }

 private:
  int tag() const { return group_.process().most_tag() - 1; }

  // At most so many, and `requests` is left behind them.
  int ask_for(const Piece& theirs, int from, int64_t most, MPI_Request*& requests) const {
    return in_messages(theirs, most, [&](void* at, const Part& in) {
      return MPI_Irecv(at, in.count, in.type, wrapped(from), tag(), group_.comm(), requests++);
    });
  }
  int give(const Piece& mine, int to, int64_t most, MPI_Request*& requests) const {
    return in_messages(mine, most, [&](const void* at, const Part& out) {
      return MPI_Isend(at, out.count, out.type, wrapped(to), tag(), group_.comm(), requests++);
    });
  }

  // A few short messages take less than one that waits until its receiver is there.
  template <typename Call>
  int in_messages(Piece piece, int64_t most, const Call& call) const {
    const int64_t bytes = piece.elements * width_;
    int64_t left = bytes < most * kAtOnce ? bytes / kAtOnce + 1 : 1;
    for (;; --left) {
      const int64_t some = piece.elements / left;
      const int code = call(piece.at, Part(dtype_, some));
      if (code != MPI_SUCCESS || left == 1) return code;
      piece = {piece.at + some * width_, piece.elements - some};
    }
  }

  MpiGroup& group_;
  const Dtype dtype_;
  const int64_t width_;
  const std::chrono::milliseconds timeout_;
};

class AllReduce {
 public:
  AllReduce(const Exchange& exchange, Tensor& t, ReduceOp op, Tensor& scratch)
      : exchange_(exchange),
        t_(t),
        scratch_(scratch),
        combine_(combine_of(t.dtype(), op)),
        width_(static_cast<int64_t>(size_of(t.dtype()))),
        data_(static_cast<char*>(t.mutable_raw())) {}

  void run() {
    const bool doubles = std::has_single_bit(static_cast<unsigned>(size()));
    if (doubles && t_.bytes() < kRing) return double_up();
    const int64_t n = t_.numel(), most = size() * kPart / width_;
    for (int64_t begin = 0; begin < n; begin += most)
      go_round({data_ + begin * width_, std::min(n - begin, most)});
  }

 private:
  int rank() const { return exchange_.rank(); }
  int size() const { return exchange_.size(); }

  void double_up() {
    const Piece all{data_, t_.numel()}, theirs = room_for(all);
    for (int bit = 1; bit < size(); bit *= 2) {
      exchange_({&t_, &scratch_}, all, rank() ^ bit, theirs, rank() ^ bit);
      add(all, theirs.at);
    }
  }

  // Each part is added up on its way round, and goes round once more when it is whole.
  void go_round(const Piece& whole) {
    const auto part = [&](int of) { return part_of(whole, exchange_.wrapped(of)); };
    const Piece room = room_for(part(size() - 1));
    for (int step = 0; step + 1 < size(); ++step) {
      const Piece next = part(rank() - step - 1);
      exchange_({&t_, &scratch_}, part(rank() - step), rank() + 1, {room.at, next.elements},
                rank() - 1);
      add(next, room.at);
    }
    for (int step = 0; step + 1 < size(); ++step)
      exchange_({&t_}, part(rank() + 1 - step), rank() + 1, part(rank() - step), rank() - 1);
  }

  void add(const Piece& to, const char* more) const {
    combine_(to.at, to.at, more, static_cast<size_t>(to.elements));
  }

  // None is larger than the last.
  Piece part_of(const Piece& whole, int i) const {
    const int64_t each = whole.elements / size(), begin = i * each;
    return {whole.at + begin * width_, i + 1 == size() ? whole.elements - begin : each};
  }

  Piece room_for(const Piece& part) {
    const int64_t bytes = part.elements * width_;
    if (scratch_.bytes() < bytes) scratch_ = Tensor::empty({bytes}, Dtype::u8);
    return {static_cast<char*>(scratch_.mutable_raw()), part.elements};
  }

  const Exchange& exchange_;
  Tensor &t_, &scratch_;
  const Combine combine_;
  const int64_t width_;
  char* const data_;
};

void gather_round(const Exchange& exchange, const Tensor& send, Tensor& receive) {
  const int rank = exchange.rank();
  const auto part = [&](int of) {
    char* const all = static_cast<char*>(receive.mutable_raw());
    return Piece{all + exchange.wrapped(of) * send.bytes(), send.numel()};
  };
  Piece mine{const_cast<char*>(static_cast<const char*>(send.raw())), send.numel()};  // only read
  for (int step = 0; step + 1 < exchange.size(); ++step) {
    const Piece theirs = part(rank - step - 1);
    exchange({&send, &receive}, mine, rank + 1, theirs, rank - 1);
    mine = theirs;
  }
  // Last: 16 MiB took half as long again when the peer was sent what had just been copied.
  if (part(rank).at != send.raw())
    copy_host(part(rank).at, send.raw(), static_cast<size_t>(send.bytes()));
}

// Down a binomial tree: the ranks that have it, counted from the root, double each time.
void pass_down(const Exchange& exchange, Tensor& t, int root) {
  const Piece all{static_cast<char*>(t.mutable_raw()), t.numel()};
  const int size = exchange.size(), place = exchange.wrapped(exchange.rank() - root);
  const int above =
      place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size))) : place & -place;
  if (place != 0) exchange.receive({&t}, all, root + place - above);
  for (int step = above / 2; step > 0; step /= 2)
    if (place + step < size) exchange.send({&t}, all, root + place + step);
}

}  // namespace

void mpi_broadcast(MpiGroup& group, Tensor& t, int root, std::chrono::milliseconds timeout) {
  const Exchange exchange(group, t.dtype(), timeout);
  group.collective([&] { pass_down(exchange, t, root); });
}

void mpi_all_reduce(MpiGroup& group, Tensor& t, ReduceOp op, Tensor& scratch,
                    std::chrono::milliseconds timeout) {
  const Exchange exchange(group, t.dtype(), timeout);
  group.collective([&] { AllReduce(exchange, t, op, scratch).run(); });
}

void mpi_barrier(MpiGroup& group, std::chrono::milliseconds timeout) {
  const Exchange exchange(group, Dtype::u8, timeout);
  group.collective([&] {
    for (int apart = 1; apart < group.size(); apart *= 2)
      exchange({}, {nullptr, 0}, group.rank() + apart, {nullptr, 0}, group.rank() - apart);
  });
}

void mpi_all_gather(MpiGroup& group, const Tensor& send, Tensor& receive,
                    std::chrono::milliseconds timeout) {
  const Exchange exchange(group, send.dtype(), timeout);
  group.collective([&] { gather_round(exchange, send, receive); });
}

}  // namespace howmany
