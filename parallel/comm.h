// A Comm is an ordered group of ranks. Every rank calls the same collectives in the same order with
// the same sizes and dtypes; size 1 is a valid no-op. Tensors are of any dtype the op allows, on
// any device: nccl works on the memory of its rank's GPU, behind what that GPU was asked for before
// the call and beside what it is asked for later; what lies elsewhere is copied, as is all that is
// on GPUs with the others. Every call has a timeout (gloo counts it anew with each of its
// messages); after a failure the Comm is poisoned: later calls throw the first error. A call of mpi
// that has begun cannot be left: if it fails, the process says why on stderr and ends with code 3.
// One thread per rank issues calls; asynchronous ones run on the Comm's own thread, in order, which
// also watches those in flight on a GPU; the others return when they are over. send and receive of
// one call must not overlap, but where one holds a part per rank the other may be the caller's own
// part of it: "in place", as in NCCL, in all_gather on all ranks or none.
//
//   comm.all_reduce(grad);                              // sum, in place
//   Work work = comm.all_reduce_async(bucket);          // bucket is not ours until...
//   work.wait();                                        // nor the host's, on a GPU, until...
//   work.finish();
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace howmany {

struct Place;  // launch.h
struct CommTraits {
  bool threads = false;                                // ranks may be threads of one process
  bool processes = false;                              // ranks may be processes
  bool gpus = false;                                   // each rank needs a GPU of its own
  std::string (*unavailable)(const Place&) = nullptr;  // see comm_unavailable(); null: nothing
};

enum class ReduceOp { sum, max, min };  // bf16 is added in f32 and rounded each time

class CommError : public Error {
 public:
  // "[all_reduce] rank 1 of 4 (gloo): peer 2 on node7 did not arrive after 1.2 s"; no host where
  // all ranks are threads. Ranks are those of the world, also in the groups it was split into.
  CommError(std::string_view operation, int rank, int size, std::string_view backend, int peer,
            std::string_view host, double elapsed_seconds, std::string_view why);
  int rank() const { return rank_; }
  int peer() const { return peer_; }  // -1 when the engine cannot tell

 private:
  int rank_, peer_;
};

// A started collective. wait() returns when the buffer is ready for whatever its device is asked
// for from then on. On nccl's own GPU that is once the call has been asked of it: the GPU waits
// instead of the host, and so does all that it is asked for later, none of which another rank may
// need for its part in the call. finish() returns when the call is over. Both throw the failure;
// the operation's own timeout bounds it. A call that fails in flight leaves nothing in its buffer,
// and the GPU that waited goes on with that: whoever reads on the host what came of it asks
// finish() first, of this or a later call, as StepLoss does. Dropping a Work without waiting is a
// bug, but safe once the Comm is gone. Copies are of one call.
class [[nodiscard]] Work {
 public:
  Work() = default;  // already done
  void wait();
  void finish() const;
  bool ready() const;  // over

 private:
  friend class Comm;
  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

class CommEngine;  // carries the bytes; engine.h
struct CallFailure;

class Comm {
 public:
  explicit Comm(std::unique_ptr<CommEngine> engine);
  // Asks nothing of the peers: those that still wait for this rank fail at once. What is in flight
  // on a GPU after its Work::wait() is over then, or failed within its timeout.
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::string_view backend() const;
  std::map<std::string, std::string> details() const;  // MPI's "version", "thread_level", ...
  // Where the engine works, so that what is there is not copied: nccl's GPU, else the CPU.
  Device home() const;
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }  // default 30 s
  std::chrono::milliseconds timeout() const { return timeout_; }

  // In place over t; the result is bitwise the same on every rank.
  void all_reduce(Tensor t, ReduceOp op = ReduceOp::sum);
  Work all_reduce_async(Tensor t, ReduceOp op = ReduceOp::sum);
  void broadcast(Tensor t, int root);
  // send [n] from every rank -> receive [size*n], rank order.
  void all_gather(const Tensor& send, Tensor receive);
  // send [size*n] -> receive [n]: the sum (op) of everyone's part `rank`.
  void reduce_scatter(const Tensor& send, Tensor receive, ReduceOp op = ReduceOp::sum);
  // send [n] -> receive [n] on root, its own send or not: the sum (op); may be empty elsewhere.
  void reduce(const Tensor& send, Tensor receive, int root, ReduceOp op = ReduceOp::sum);
  // send [n] -> receive [size*n] on root; may be empty elsewhere.
  void gather(const Tensor& send, Tensor receive, int root);
  // send [size*n] on root -> receive [n].
  void scatter(const Tensor& send, Tensor receive, int root);
  // part i of send goes to rank i; receive part i came from rank i. Both [size*n].
  void all_to_all(const Tensor& send, Tensor receive);
  // May wait until the peer receives. Messages of one tag arrive in the order sent.
  void send(const Tensor& t, int peer, int tag = 0);
  void receive(Tensor t, int peer, int tag = 0);
  // In order on one thread, as all of these: a Comm that only sends cannot hold up what comes.
  Work send_async(Tensor t, int peer, int tag = 0);
  Work receive_async(Tensor t, int peer, int tag = 0);
  void barrier();
  void finish();  // returns when all is over that was started, as each Work's finish() does

  // Collective. Ranks with the same color form a group, ordered by (key, rank); color < 0: in none,
  // returns null.
  std::unique_ptr<Comm> split(int color, int key = 0);
  // Poisons this rank's view and wakes every peer that waits for it: called when this rank is about
  // to leave by exception. From any thread.
  void abort(std::string_view why);
  bool failed() const;

 private:
  using Failure = CallFailure;
  struct Begun;     // a call's name, bytes and start
  struct Task;      // a call, and how it is told of
  struct Progress;  // the comm thread, its queue, what is in flight, the first failure
  friend class Work;
  using Call = std::function<void()>;
  template <typename Body>
  void run(const char* operation, int64_t bytes, const Body& body) {
    run_call(operation, bytes, std::cref(body));
  }
  void run_call(const char* operation, int64_t bytes, const Call& call);
  Work start(const char* operation, int64_t bytes, Call call);
  std::unique_ptr<Failure> attempt(Begun& begun, const Call& call, bool to_its_end);
  std::unique_ptr<Failure> guarded(const Begun& begun, const Call& body);
  std::shared_ptr<void> mark() const;
  std::unique_ptr<Failure> keep(Failure failure);
  void check_not_failed() const;
  void check(const char* operation, const Tensor& t) const;
  void check_pair(const char* operation, const Tensor& part, const Tensor& whole) const;
  void check_same(const char* operation, const Tensor& send, const Tensor& receive) const;
  void check_rank(const char* operation, const char* role, int rank) const;
  void check_peer(const char* operation, const Tensor& t, int peer) const;
  void work_through();
  void ask(std::unique_lock<std::mutex>& lock);
  void look(std::unique_lock<std::mutex>& lock);
  void ground(std::string_view why);
  void land(int64_t over);
  void end_all(const Failure& failure);

  std::unique_ptr<CommEngine> engine_;
  const int rank_, size_;
  std::atomic<std::chrono::milliseconds> timeout_{std::chrono::milliseconds(30'000)};
  int splits_ = 0;
  std::unique_ptr<Progress> progress_;
};

std::vector<std::string_view> comm_names();
// Those whose ranks may be so many threads here.
std::vector<std::string_view> thread_comm_names(int ranks);
// Throws std::invalid_argument for an unknown name.
CommTraits comm_traits(std::string_view name);
// Why processes started as this one was cannot meet over it, as far as it can tell without asking
// the others: no GPU, no library, no MPI launcher, no place to meet. Empty when they may.
std::string comm_unavailable(std::string_view name, const Place& place);

}  // namespace howmany
