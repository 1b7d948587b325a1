// NCCL between GPUs, one per rank: the device of a rank is its local rank. Calls run on that GPU's
// memory, on a stream of their own beside compute: it waits for the mark that compute made when the
// call was asked for. The communicator is nonblocking: every call is polled, with the stream and
// NCCL's own error state, until it is done, so that a peer that died or hangs ends it within the
// timeout, by ncclCommAbort; whoever waits for the Work therefore needs no stream's help. NCCL
// knows no tags: messages between two ranks are received in the order sent.
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "core/error.h"
#include "parallel/comm_list.h"
#include "parallel/comms/gloo_last_words.h"
#include "parallel/comms/nccl_library.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook(200);  // between looks for word from a peer that gave up
// A short call is watched closely; in a long one the looks would disturb who asks the GPU for more.
constexpr std::chrono::microseconds kBusy(1000), kNap(20);

ncclDataType_t type_for(float) { return ncclFloat32; }
ncclDataType_t type_for(double) { return ncclFloat64; }
ncclDataType_t type_for(int32_t) { return ncclInt32; }
ncclDataType_t type_for(int64_t) { return ncclInt64; }
ncclDataType_t type_for(uint8_t) { return ncclUint8; }

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
// Makes a device current for the thread, which may be Comm's own, and its former one at the end.
class OnGpu {
 public:
  explicit OnGpu(int device) {
    check_cuda(cudaGetDevice(&before_));
    check_cuda(cudaSetDevice(device));
  }
  ~OnGpu() { cudaSetDevice(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};

bool done(cudaError_t state) {
  if (state == cudaErrorNotReady) return cudaGetLastError(), false;
  check_cuda(state);
  return true;
}

void keep_for_good(const std::vector<Tensor>& tensors) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<Tensor>;
  const std::lock_guard lock(mutex);
  kept->insert(kept->end(), tensors.begin(), tensors.end());
}

class Nccl : public CommEngine {
 public:
  // Alone: needs neither NCCL nor a GPU.
  explicit Nccl(milliseconds timeout) : CommEngine(0, 1) { set_timeout(timeout); }
  Nccl(int rank, int size, int device, std::shared_ptr<Rendezvous> rendezvous, std::string path,
       milliseconds timeout)
      : CommEngine(rank, size),
        device_(device),
        rendezvous_(std::move(rendezvous)),
        path_(std::move(path)),
        words_(std::in_place, rendezvous_, path_, rank, size),
        nccl_(&NcclLibrary::get()) {
    set_timeout(timeout);
    const OnGpu on(device_);
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclUniqueId id = exchange_id();
    guarded({}, [&] {
      check_nccl(nccl_->ncclCommInitRankConfig(&comm_, size, id, rank, &config));
      settle(everybody());
    });
  }
  ~Nccl() override {
    if (words_) words_->leave();
    if (comm_ != nullptr) part_from_the_others();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  std::string_view name() const override { return "nccl"; }
  std::map<std::string, std::string> details() const override {
    if (nccl_ == nullptr) return {};
    int version = 0;
    nccl_->ncclGetVersion(&version);
    return {
        {"version", fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100)},
        {"staging", "none on the rank's GPU; other tensors are copied there and back"}};
  }
  Device home() const override {
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
  void gather(const Tensor& send, Tensor& receive, int root) override {
    run({send, receive}, [&] {
      return in_group([&] {
        send_to(root, send);
        for (int r = 0; r < size() && rank() == root; ++r) receive_from(r, part(receive, r));
      });
    });
  }
  void scatter(const Tensor& send, Tensor& receive, int root) override {
    run({send, receive}, [&] {
      return in_group([&] {
        receive_from(root, receive);
        for (int r = 0; r < size() && rank() == root; ++r) send_to(r, part(send, r));
      });
    });
  }
  void all_to_all(const Tensor& send, Tensor& receive) override {
    run({send, receive}, [&] {
      return in_group([&] {
        for (int r = 0; r < size(); ++r) {
          send_to(r, part(send, r));
          receive_from(r, part(receive, r));
        }
      });
    });
  }
  void send(const Tensor& t, int peer, int) override {
    run({t}, [&] { return in_group([&] { send_to(peer, t); }); }, {peer});
  }
  void receive(Tensor& t, int peer, int) override {
    run({t}, [&] { return in_group([&] { receive_from(peer, t); }); }, {peer});
  }
  void barrier() override {
    Tensor token = room_for(*this, Tensor::empty({1}));
    all_reduce(token, ReduceOp::sum);
  }

  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    if (members.size() == 1) return std::make_unique<Nccl>(timeout());
    return std::make_unique<Nccl>(index, static_cast<int>(members.size()), device_, rendezvous_,
                                  path_ + "/" + id, timeout());
  }

  void abort(std::string_view why) noexcept override {
    if (size() == 1) return;
    aborted_ = true;  // whoever waits ends the communicator
    words_->abort(why);
  }

 private:
  // touched: the tensors whose memory the call works on; peers: without whom it cannot end.
  void run(const std::vector<Tensor>& touched, const std::function<ncclResult_t()>& call,
           const std::vector<int>& peers) {
    guarded(touched, [&] {
      const OnGpu on(device_);
      check_cuda(cudaStreamWaitEvent(stream_, marked(), 0));
      check_nccl(call());
      settle(peers);
      wait_until(peers, [this] { return done(cudaStreamQuery(stream_)); });
    });
  }
  void run(const std::vector<Tensor>& touched, const std::function<ncclResult_t()>& call) {
    run(touched, call, everybody());
  }
  std::vector<int> everybody() const {
    std::vector<int> ranks(static_cast<size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  cudaEvent_t marked() const { return static_cast<cudaEvent_t>(mark().get()); }

  // Until a nonblocking call has been taken in.
  void settle(const std::vector<int>& peers) {
    wait_until(peers, [this] { return !in_progress(); });
  }

  bool in_progress() const {
    ncclResult_t state = ncclSuccess;
    check_nccl(nccl_->ncclCommGetAsyncError(comm_, &state));
    check_nccl(state);
    return state == ncclInProgress;
  }

  // The peers have as long as the timeout from when this rank's own GPU came to the call.
  template <typename Done>
  void wait_until(const std::vector<int>& peers, Done is_done) {
    auto start = Clock::now(), next_look = start + kLook;
    bool begun = mark() == nullptr;
    std::optional<int> left;
    while (!is_done()) {
      in_progress();  // throws what went wrong meanwhile
      if (aborted_) throw EngineError(-1, "aborted");
      const auto now = Clock::now();
      if (!begun) {
        start = now;
        begun = done(cudaEventQuery(marked()));
      }
      if (now - start > timeout()) throw EngineError(-1, "nothing came");
      if (now > next_look) {
        next_look = now + kLook;
        if (const std::string why = words_->first_failure(); !why.empty())
          throw EngineError(-1, why);
        if (left) throw EngineError(*left, "left");
        left = words_->heard_leave(peers);  // perhaps with this call done
      }
      if (now - start < kBusy)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kNap);
    }
  }

  // What fails ends the communicator, here and, by the word left, on the peers.
  template <typename Body>
  void guarded(const std::vector<Tensor>& touched, Body body) {
    try {
      body();
    } catch (const EngineError& e) {
      words_->fail(e.what());
      if (comm_ != nullptr) nccl_->ncclCommAbort(comm_);
      comm_ = nullptr;
      keep_from_the_pool(touched);
      if (e.peer() >= 0) throw;
      throw words_->verdict(e.what());
    }
  }

  // The others may still be reading what the last call sent them; they have moments for it.
  void part_from_the_others() noexcept {
    try {
      const auto end = Clock::now() + kLook;
      check_nccl(nccl_->ncclCommFinalize(comm_));
      while (in_progress() && Clock::now() < end) std::this_thread::sleep_for(kNap);
    } catch (const std::exception&) {  // broken by others, which they will tell
    }
    nccl_->ncclCommAbort(comm_);  // never waits for the others
  }

  // An aborted call leaves its memory within moments; if not, nobody gets that memory any more.
  void keep_from_the_pool(const std::vector<Tensor>& touched) {
    const auto end = Clock::now() + kLook;
    while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
      cudaGetLastError();
      if (Clock::now() > end) return keep_for_good(touched);
      std::this_thread::sleep_for(kNap);
    }
  }

  template <typename Body>
  ncclResult_t in_group(Body body) {
    check_nccl(nccl_->ncclGroupStart());
    body();
    return nccl_->ncclGroupEnd();
  }
  void send_to(int r, const Tensor& t) {
    check_nccl(nccl_->ncclSend(t.raw(), count_of(t), type_of(t), r, comm_, stream_));
  }
  void receive_from(int r, Tensor t) {
    check_nccl(nccl_->ncclRecv(t.mutable_raw(), count_of(t), type_of(t), r, comm_, stream_));
  }
  // Of rank r, where `all` has one for each.
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
  const std::string path_;  // of this group among the keys of the rendezvous
  std::optional<LastWords> words_;
  const NcclLibrary* const nccl_ = nullptr;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::atomic<bool> aborted_ = false;
};

int device_of(const Place& place) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count));
  const int least = std::max(place.local_world, place.local_rank + 1);
  if (least > count)
    throw EngineError(
        -1, fmt::format("{} ranks on this host, but {} GPUs: one each is needed", least, count));
  return place.local_rank;
}

}  // namespace

std::unique_ptr<CommEngine> comms::nccl(const Place& place, milliseconds timeout) {
  if (place.world == 1) return std::make_unique<Nccl>(timeout);
  const int device = device_of(place);
  const std::shared_ptr<Rendezvous> rendezvous =
      make_rendezvous(place.rendezvous, place.rank, Clock::now() + timeout);
  return std::make_unique<Nccl>(place.rank, place.world, device, rendezvous, "nccl", timeout);
}

}  // namespace howmany
