// SPDX-License-Identifier: Apache-2.0
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

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/tensor/tensor.h"
#include "parallel/comm/comm_error.h"
#include "parallel/comm/comm_names.h"

namespace howmany {

class CallRunner;  // call_runner.h
class CommEngine;  // engine.h

constexpr int kReduceOps = 3;
enum class ReduceOp { sum, max, min };  // bf16 is summed in f32; each addition is rounded to bf16

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
  friend class Comm;
  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  explicit Work(std::shared_ptr<void> scratch) : scratch_(std::move(scratch)) {}

  std::shared_ptr<State> state_;
  std::shared_ptr<void> scratch_;  // of a call with tensors of meta devices
};

class Comm {
 public:
  explicit Comm(std::unique_ptr<CommEngine> engine);
  ~Comm();  // fails calls that are still running, here and on their peers; never communicates

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::string_view backend() const;
  std::map<std::string, std::string> details() const;  // "version", "thread_level", ...
  Device native_device() const;  // of the backend's buffers: the rank's GPU (nccl), else the CPU
  void set_timeout(std::chrono::milliseconds timeout);  // of a call; 30 s
  std::chrono::milliseconds timeout() const;

  // In place. The result is bitwise equal on all ranks.
  void all_reduce(Tensor t, ReduceOp op = ReduceOp::sum);
  Work all_reduce_async(Tensor t, ReduceOp op = ReduceOp::sum);
  void broadcast(Tensor t, int root);
  // send [n] -> receive [size*n], ordered by rank.
  void all_gather(const Tensor& send, Tensor receive);
  Work all_gather_async(Tensor send, Tensor receive);
  // send [size*n] -> receive [n]: part `rank`, reduced over the ranks.
  void reduce_scatter(const Tensor& send, Tensor receive, ReduceOp op = ReduceOp::sum);
  Work reduce_scatter_async(Tensor send, Tensor receive, ReduceOp op = ReduceOp::sum);
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
  // The same without an exchange: every rank knows the color and key of every rank.
  using ColorAndKey = std::pair<int, int>;
  std::unique_ptr<Comm> split(const std::function<ColorAndKey(int rank)>& of);
  // Poisons the Comm and fails the calls of peers that wait for this rank.
  void abort(std::string_view why);
  bool failed() const;

 private:
  void assemble();
  std::unique_ptr<Comm> form_groups(const std::function<ColorAndKey(int rank)>& of);

  std::unique_ptr<CommEngine> engine_;
  const int rank_, size_;
  std::unique_ptr<CallRunner> calls_;
  int splits_ = 0;
};

}  // namespace howmany
