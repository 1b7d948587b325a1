// SPDX-License-Identifier: Apache-2.0
// NCCL between GPUs, one per rank. The device of a rank is its local rank unless Place::gpu is set.
//
// Streams. Calls run on a stream of their own, which waits for the start event of each call.
// Failure. The communicator is nonblocking: a call returns once NCCL has enqueued it. poll() reads
//   the event of the oldest call in flight and NCCL's error state. If a peer dies or hangs,
//   ncclCommAbort ends the calls within the timeout; streams that wait for them continue, and their
//   buffers are undefined.
// Tags. NCCL has none: messages between two ranks arrive in the order sent.
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <ranges>
#include <thread>

#include "core/base/error.h"
#include "parallel/comm/comm_list.h"
#include "parallel/comm/staging.h"
#include "parallel/engines/gloo_failure_board.h"
#include "parallel/engines/nccl_flight.h"
#include "parallel/engines/nccl_library.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

ncclDataType_t type_for(float) { return ncclFloat32; }
ncclDataType_t type_for(double) { return ncclFloat64; }
ncclDataType_t type_for(int32_t) { return ncclInt32; }
ncclDataType_t type_for(int64_t) { return ncclInt64; }
ncclDataType_t type_for(uint8_t) { return ncclUint8; }
ncclDataType_t type_for(Bf16) { return ncclBfloat16; }

ncclDataType_t type_of(const Tensor& t) {
  switch (t.dtype()) {
#define X(name, type) \
  case Dtype::name:   \
    return type_for(type{});
    HM_DTYPES(X)
#undef X
  }
  return ncclUint8;
}

ncclRedOp_t op_of(ReduceOp op) {
  if (op == ReduceOp::sum) return ncclSum;
  return op == ReduceOp::max ? ncclMax : ncclMin;
}

size_t count_of(const Tensor& t) { return static_cast<size_t>(t.numel()); }
// Leaves the device current: setting back an unused device would create a context there.
void use_gpu(int device) { check_cuda(cudaSetDevice(device)); }

class Nccl : public CommEngine {
 public:
  // A group of size 1, which needs neither NCCL nor a GPU.
  explicit Nccl(milliseconds timeout) : CommEngine(0, 1) { set_timeout(timeout); }
  Nccl(int rank, int size, int device, std::shared_ptr<Rendezvous> rendezvous, std::string path,
       milliseconds timeout)
      : CommEngine(rank, size),
        device_(device),
        rendezvous_(std::move(rendezvous)),
        path_(std::move(path)),
        board_(std::in_place, rendezvous_, path_, rank, size),
        nccl_(&NcclLibrary::get()) {
    set_timeout(timeout);
    use_gpu(device_);
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclUniqueId id = exchange_id();
    aborting_on_failure([&] {
      check_nccl(nccl_->ncclCommInitRankConfig(&comm_, size, id, rank, &config));
      in_flight_.push_back({.buffers = {}, .peers = all_ranks(), .timeout = timeout});
      wait_until_enqueued();
      in_flight_.clear();
    });
  }
  ~Nccl() override {
    if (board_) board_->leave();
    if (comm_ != nullptr) finalize();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  std::string_view name() const override { return "nccl"; }
  std::map<std::string, std::string> details() const override {
    if (nccl_ == nullptr) return {};
    int version = 0;
    nccl_->ncclGetVersion(&version);
    return {
        {"version", fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100)},
        {"staging", "none on the rank's GPU; other tensors are copied there and back"},
        {"calls",
         "nonblocking, so that a failed call can be ended; NCCL may start a thread for each"}};
  }
  Device native_device() const override {
    return nccl_ == nullptr ? Device{} : Device{DeviceType::cuda, device_};
  }

  void all_reduce(Tensor& t, ReduceOp op) override {
    run({t}, [&] {
      return nccl_->ncclAllReduce(t.raw(), t.mutable_raw(), count_of(t), type_of(t), op_of(op),
                                  comm_, stream_);
    });
  }
  void broadcast(Tensor& t, int root) override {
    run({t}, [&] {
      return nccl_->ncclBroadcast(t.raw(), t.mutable_raw(), count_of(t), type_of(t), root, comm_,
                                  stream_);
    });
  }
  void all_gather(const Tensor& send, Tensor& receive) override {
    run({send, receive}, [&] {
      return nccl_->ncclAllGather(send.raw(), receive.mutable_raw(), count_of(send), type_of(send),
                                  comm_, stream_);
    });
  }
  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override {
    run({send, receive}, [&] {
      return nccl_->ncclReduceScatter(send.raw(), receive.mutable_raw(), count_of(receive),
                                      type_of(send), op_of(op), comm_, stream_);
    });
  }
  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override {
    run({send, receive}, [&] {
      void* const to = rank() == root ? receive.mutable_raw() : nullptr;
      return nccl_->ncclReduce(send.raw(), to, count_of(send), type_of(send), op_of(op), root,
                               comm_, stream_);
    });
  }
  void gather(const Tensor& send, Tensor& receive, int root) override {
    run_group({send, receive}, all_ranks(), [&] {
      const bool stays = rank() == root && is_own_part(send, receive, root);
      if (!stays) send_to(root, send);
      for (int r = 0; r < size() && rank() == root; ++r)
        if (r != root || !stays) receive_from(r, part(receive, r));
    });
  }
  void scatter(const Tensor& send, Tensor& receive, int root) override {
    run_group({send, receive}, all_ranks(), [&] {
      const bool stays = rank() == root && is_own_part(receive, send, root);
      if (!stays) receive_from(root, receive);
      for (int r = 0; r < size() && rank() == root; ++r)
        if (r != root || !stays) send_to(r, part(send, r));
    });
  }
  void all_to_all(const Tensor& send, Tensor& receive) override {
    run_group({send, receive}, all_ranks(), [&] {
      for (int r = 0; r < size(); ++r) {
        send_to(r, part(send, r));
        receive_from(r, part(receive, r));
      }
    });
  }
  void send(const Tensor& t, int peer, int) override {
    run_group({t}, {peer}, [&] { send_to(peer, t); });
  }
  void receive(Tensor& t, int peer, int) override {
    run_group({t}, {peer}, [&] { receive_from(peer, t); });
  }
  void barrier() override {
    Tensor token = allocate_staging(*this, Tensor::empty({1}), nullptr);
    all_reduce(token, ReduceOp::sum);
  }

  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    if (members.size() == 1) return std::make_unique<Nccl>(timeout());
    return std::make_unique<Nccl>(index, static_cast<int>(members.size()), device_, rendezvous_,
                                  path_ + "/" + id, timeout());
  }

  void abort(std::string_view why) noexcept override {
    if (nccl_ == nullptr) return;
    aborted_ = true;  // the next poll() ends the communicator
    board_->abort(why);
  }

  int64_t submitted() const override { return submitted_; }
  Event last_event() const override { return in_flight_.empty() ? nullptr : in_flight_.back().end; }
  int64_t poll() override {
    if (!in_flight_.empty()) aborting_on_failure([this] { retire_completed(); });
    return submitted_ - std::ssize(in_flight_);
  }

 private:
  void run(std::vector<Tensor> buffers, std::vector<int> peers,
           const std::function<ncclResult_t()>& call) {
    aborting_on_failure([&] {
      in_flight_.push_back({std::move(buffers), std::move(peers), timeout(), start_event()});
      use_gpu(device_);
      check_cuda(cudaStreamWaitEvent(stream_, event_of(start_event()), 0));
      check_nccl(call());
      wait_until_enqueued();
      in_flight_.back().end = record_event(stream_);
      ++submitted_;
    });
  }
  void run(std::vector<Tensor> buffers, const std::function<ncclResult_t()>& call) {
    run(std::move(buffers), all_ranks(), call);
  }
  void run_group(std::vector<Tensor> buffers, std::vector<int> peers,
                 const std::function<void()>& messages) {
    run(std::move(buffers), std::move(peers), [&] {
      check_nccl(nccl_->ncclGroupStart());
      try {
        messages();
      } catch (...) {
        // Without this, ncclCommAbort and later calls would block.
        nccl_->ncclGroupEnd();
        throw;
      }
      return nccl_->ncclGroupEnd();
    });
  }
  std::vector<int> all_ranks() const {
    const auto ranks = std::views::iota(0, size());
    return {ranks.begin(), ranks.end()};
  }

  void wait_until_enqueued() {
    for (const auto start = Clock::now(); in_progress(); pause_between_polls(start))
      retire_completed();
  }

  bool in_progress() const {
    ncclResult_t state = ncclSuccess;
    check_nccl(nccl_->ncclCommGetAsyncError(comm_, &state));
    check_nccl(state);
    return state == ncclInProgress;
  }

  // Releases completed calls, and checks the oldest call that is not.
  void retire_completed() {
    while (!in_flight_.empty()) {
      const Event& end = in_flight_.front().end;
      const bool over = end && done(cudaEventQuery(event_of(end)));
      in_progress();  // throws NCCL's error, also if the event is complete
      if (!over) return check_still_possible(in_flight_.front());
      in_flight_.pop_front();
    }
  }

  // Throws if the call can no longer complete. Its timeout starts when this rank's GPU reaches it.
  void check_still_possible(CallInFlight& one) {
    if (aborted_) throw EngineError(-1, "aborted");
    Watch& w = one.watch;
    const auto now = Clock::now();
    if (!w.begun) {
      w.time = AwakeTime(now);
      w.begun = one.begin == nullptr || done(cudaEventQuery(event_of(one.begin)));
    }
    if (w.time.so_far(now) > one.timeout) throw EngineError(-1, "nothing came");
    if (now <= w.next_read) return;
    w.next_read = now + kBoardInterval;
    if (const std::string why = board_->first_failure(); !why.empty()) throw EngineError(-1, why);
    if (w.left) throw EngineError(*w.left, "left");
    w.left = board_->find_left(one.peers);  // it may have completed this call before
  }

  // If body throws: aborts the communicator and posts the failure, which ends the peers' calls.
  template <typename Body>
  void aborting_on_failure(Body body) {
    try {
      body();
    } catch (const EngineError& e) {
      board_->fail(e.what());
      if (comm_ != nullptr) nccl_->ncclCommAbort(comm_);
      comm_ = nullptr;
      release_buffers();
      if (e.peer() >= 0) throw;
      throw board_->find_cause(e.what());
    }
  }

  // Gives peers up to kBoardInterval to read what the last call sent them.
  void finalize() noexcept {
    try {
      const auto end = Clock::now() + kBoardInterval;
      check_nccl(nccl_->ncclCommFinalize(comm_));
      while (in_progress() && Clock::now() < end) pause_between_polls({});
    } catch (const std::exception&) {  // a peer failed and reports it itself
    }
    nccl_->ncclCommAbort(comm_);  // never waits for peers
  }

  // Releases the buffers of aborted calls, or leaks them if the GPU still uses them.
  void release_buffers() {
    const std::deque<CallInFlight> ended = std::exchange(in_flight_, {});
    const auto end = Clock::now() + kBoardInterval;
    while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
      cudaGetLastError();
      if (Clock::now() > end) return leak_buffers(ended);
      pause_between_polls({});
    }
  }

  void send_to(int r, const Tensor& t) {
    check_nccl(nccl_->ncclSend(t.raw(), count_of(t), type_of(t), r, comm_, stream_));
  }
  void receive_from(int r, Tensor t) {
    check_nccl(nccl_->ncclRecv(t.mutable_raw(), count_of(t), type_of(t), r, comm_, stream_));
  }
  // Returns rank r's part of `all`, which holds one part per rank.
  Tensor part(const Tensor& all, int r) const {
    const int64_t count = all.numel() / size();
    return all.flat(r * count, (r + 1) * count);
  }

  ncclUniqueId exchange_id() {
    rendezvous_->set_deadline(Clock::now() + timeout());
    ncclUniqueId id{};
    if (rank() == 0) {
      check_nccl(nccl_->ncclGetUniqueId(&id));
      rendezvous_->set(path_ + "/id", std::vector<char>(id.internal, id.internal + sizeof id));
    } else {
      const std::vector<char> bytes = rendezvous_->get(path_ + "/id");
      std::memcpy(&id, bytes.data(), std::min(bytes.size(), sizeof id));
    }
    return id;
  }

  const int device_ = 0;
  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::string path_;  // prefix of this group's keys in the rendezvous
  std::optional<FailureBoard> board_;
  const NcclLibrary* const nccl_ = nullptr;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::deque<CallInFlight> in_flight_;  // oldest first
  int64_t submitted_ = 0;
  std::atomic<bool> aborted_ = false;
};

int device_of(const Place& place) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count));
  const int mine = place.gpu >= 0 ? place.gpu : place.local_rank;
  const int least = std::max(place.gpu >= 0 ? 0 : place.local_world, mine + 1);
  if (least > count)
    throw EngineError(
        -1, fmt::format("{} ranks on this host, but {} GPUs: one each is needed", least, count));
  return mine;
}

}  // namespace

std::unique_ptr<CommEngine> comms::nccl(const Place& place, milliseconds timeout) {
  if (place.world == 1 && place.gpu < 0) return std::make_unique<Nccl>(timeout);
  const int device = device_of(place);
  const std::shared_ptr<Rendezvous> rendezvous =
      make_rendezvous(place.rendezvous, place.rank, Clock::now() + timeout);
  return std::make_unique<Nccl>(place.rank, place.world, device, rendezvous, "nccl", timeout);
}

}  // namespace howmany
