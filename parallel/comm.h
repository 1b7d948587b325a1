// A Comm is an ordered group of ranks that call collectives together.
//
// Ordering. Every rank makes the same calls in the same order, with the same sizes and dtypes.
// Thread safety. One thread per rank makes calls. abort() may be called from any thread.
// Devices. Tensors may be on any device. Tensors that are not on native_device() are staged there.
// Failure. The first failure poisons the Comm: later calls throw the same CommError. An mpi call
//   cannot be left once it has begun: if it fails, the process reports why and exits with code 3.
// Aliasing. Send and receive buffers must not overlap, except in place: the buffer of one part may
//   be the caller's own part of the whole, as in NCCL.
// Size 1 is valid: collectives copy send to receive.
//
//   comm.all_reduce(grad);                      // blocking; sum, in place
//   Work work = comm.all_reduce_async(bucket);  // do not touch bucket until...
//   work.wait();                                // the current stream may use it
//   work.finish();                              // the host may use it
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace howmany {

class CallRunner;  // call_runner.h
class CommEngine;  // engine.h
struct Place;      // launch.h

struct CommTraits {
  bool threads = false;                                // ranks may be threads of one process
  bool processes = false;                              // ranks may be processes
  bool gpus = false;                                   // each rank needs its own GPU
  std::string (*unavailable)(const Place&) = nullptr;  // see comm_unavailable(); null: available
};

enum class ReduceOp { sum, max, min };  // bf16 is summed in f32; each addition is rounded to bf16

class CommError : public Error {
 public:
  // "[all_reduce] rank 1 of 4 (gloo): peer 2 on node7 did not arrive after 1.2 s". Ranks are world
  // ranks, also in groups made by split(). The host is empty if all ranks are threads.
  CommError(std::string_view operation, int rank, int size, std::string_view backend, int peer,
            std::string_view host, double elapsed_seconds, std::string_view why);
  int rank() const { return rank_; }
  int peer() const { return peer_; }  // -1 if unknown

 private:
  int rank_, peer_;
};

// A started collective. Copies refer to the same call. wait() and finish() rethrow its failure; the
// Comm's timeout bounds both. A call that fails after wait() leaves its buffer undefined, so call
// finish() on this or a later call before the host reads a result.
class [[nodiscard]] Work {
 public:
  Work() = default;  // already complete
  // Makes the device's current stream wait for the collective (nccl), or blocks the host until it
  // completes (other backends). Work that is submitted to that stream later waits too, so no rank
  // may need it to reach the collective.
  void wait();
  void finish() const;  // blocks the host until the collective completes
  bool ready() const;   // true once it has completed

 private:
  friend class CallRunner;
  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

class Comm {
 public:
  explicit Comm(std::unique_ptr<CommEngine> engine);
  // Never communicates. Fails calls that are still running, here and on their peers.
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::string_view backend() const;
  std::map<std::string, std::string> details() const;  // "version", "thread_level", ...
  // The device that the backend reads and writes directly: the rank's GPU (nccl), else the CPU.
  Device native_device() const;
  // Per call; gloo counts it per message. Default: 30 s.
  void set_timeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const;

  // In place. The result is bitwise equal on all ranks.
  void all_reduce(Tensor t, ReduceOp op = ReduceOp::sum);
  Work all_reduce_async(Tensor t, ReduceOp op = ReduceOp::sum);
  void broadcast(Tensor t, int root);
  // send [n] -> receive [size*n], ordered by rank.
  void all_gather(const Tensor& send, Tensor receive);
  // send [size*n] -> receive [n]: part `rank`, reduced over the ranks.
  void reduce_scatter(const Tensor& send, Tensor receive, ReduceOp op = ReduceOp::sum);
  // send [n] -> receive [n] on root, which may be send. receive may be null on other ranks.
  void reduce(const Tensor& send, Tensor receive, int root, ReduceOp op = ReduceOp::sum);
  // send [n] -> receive [size*n] on root. receive may be null on other ranks.
  void gather(const Tensor& send, Tensor receive, int root);
  // send [size*n] on root -> receive [n]. send may be null on other ranks.
  void scatter(const Tensor& send, Tensor receive, int root);
  // send [size*n] -> receive [size*n]. Part i goes to rank i; received part i came from rank i.
  void all_to_all(const Tensor& send, Tensor receive);
  // May block until the peer receives. Messages with one tag arrive in the order sent.
  void send(const Tensor& t, int peer, int tag = 0);
  void receive(Tensor t, int peer, int tag = 0);
  Work send_async(Tensor t, int peer, int tag = 0);
  Work receive_async(Tensor t, int peer, int tag = 0);
  void barrier();
  void finish();  // blocks the host until every started call completes; rethrows the first failure

  // Collective. Ranks with equal color form a group, ordered by (key, rank). Returns null if
  // color < 0.
  std::unique_ptr<Comm> split(int color, int key = 0);
  // Poisons the Comm and fails the calls of peers that wait for this rank.
  void abort(std::string_view why);
  bool failed() const;

 private:
  std::unique_ptr<CommEngine> engine_;
  const int rank_, size_;
  std::unique_ptr<CallRunner> calls_;
  int splits_ = 0;
};

std::vector<std::string_view> comm_names();
// Returns the backends that can connect `ranks` threads of this process.
std::vector<std::string_view> thread_comm_names(int ranks);
// Throws std::invalid_argument if the name is unknown.
CommTraits comm_traits(std::string_view name);
// Returns why processes at `place` cannot connect over the backend (no GPU, no library, no MPI
// launcher, no rendezvous), or "" if nothing known prevents it. Does not contact other ranks.
std::string comm_unavailable(std::string_view name, const Place& place);

}  // namespace howmany
