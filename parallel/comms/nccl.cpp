// NCCL between GPUs, one per rank: the device of a rank is its local rank. Calls run on that GPU's
// memory, on a stream of their own beside compute: it waits for the mark that compute made when the
// call was asked for, and the host for none of them. The communicator is nonblocking: a call
// returns once NCCL has taken it in, and the oldest in flight is looked at, with NCCL's own error
// state, until it is over, so that a peer that died or hangs ends it within the timeout, by
// ncclCommAbort; then streams that wait for it go on, with nothing in its memory. NCCL knows no
// tags: messages between two ranks are received in the order sent.
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <ranges>
#include <thread>

#include "core/base/error.h"
#include "parallel/comm_list.h"
#include "parallel/comms/gloo_last_words.h"
#include "parallel/comms/nccl_library.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook(200);  // between looks for word from a peer that gave up

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
// For the calling thread, which may be Comm's own. It stays: whoever asks a GPU for something names
// it first, and to go back to one that was never used would make a context there.
void use_gpu(int device) { check_cuda(cudaSetDevice(device)); }

bool done(cudaError_t state) {
  if (state == cudaErrorNotReady) return cudaGetLastError(), false;
  check_cuda(state);
  return true;
}

using Mark = std::shared_ptr<void>;
cudaEvent_t event_of(const Mark& mark) { return static_cast<cudaEvent_t>(mark.get()); }

Mark marked(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  Mark mark(event, [](void* made) { cudaEventDestroy(static_cast<cudaEvent_t>(made)); });
  check_cuda(cudaEventRecord(event, stream));
  return mark;
}

// How long a call has been waited for, and what was heard meanwhile.
struct Watch {
  Clock::time_point start = Clock::now(), next_look = start + kLook;
  bool begun = false;  // this rank's own GPU has come to it
  std::optional<int> left = {};
};

// A call that was asked of the GPU.
struct Flight {
  std::vector<Tensor> touched;  // whose memory it works on
  std::vector<int> peers;       // without whom it cannot end
  milliseconds timeout;
  Mark begin = nullptr, end = nullptr;  // no end yet: NCCL has not taken it in
  Watch watch = {};
};

void keep_for_good(const std::deque<Flight>& flights) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<Tensor>;
  const std::lock_guard lock(mutex);
  for (const Flight& one : flights)
    kept->insert(kept->end(), one.touched.begin(), one.touched.end());
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
    use_gpu(device_);
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclUniqueId id = exchange_id();
    guarded([&] {
      check_nccl(nccl_->ncclCommInitRankConfig(&comm_, size, id, rank, &config));
      flights_.push_back({.touched = {}, .peers = everybody(), .timeout = timeout});
      settle();
      flights_.clear();
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
  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override {
    run({send, receive}, [&] {
      void* const to = rank() == root ? receive.mutable_raw() : nullptr;
      return nccl_->ncclReduce(send.raw(), to, count_of(send), type_of(send), op_of(op), root,
                               comm_, stream_);
    });
  }
  void gather(const Tensor& send, Tensor& receive, int root) override {
    run_group({send, receive}, everybody(), [&] {
      const bool stays = rank() == root && is_own_part(send, receive, root);
      if (!stays) send_to(root, send);
      for (int r = 0; r < size() && rank() == root; ++r)
        if (r != root || !stays) receive_from(r, part(receive, r));
    });
  }
  void scatter(const Tensor& send, Tensor& receive, int root) override {
    run_group({send, receive}, everybody(), [&] {
      const bool stays = rank() == root && is_own_part(receive, send, root);
      if (!stays) receive_from(root, receive);
      for (int r = 0; r < size() && rank() == root; ++r)
        if (r != root || !stays) send_to(r, part(send, r));
    });
  }
  void all_to_all(const Tensor& send, Tensor& receive) override {
    run_group({send, receive}, everybody(), [&] {
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
    Tensor token = room_for(*this, {*this, Tensor::empty({1})});
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
    aborted_ = true;  // whoever looks ends the communicator
    words_->abort(why);
  }

  int64_t asked() const override { return asked_; }
  Mark end() const override { return flights_.empty() ? nullptr : flights_.back().end; }
  int64_t look() override {
    if (!flights_.empty()) guarded([this] { land(); });
    return asked_ - std::ssize(flights_);
  }

 private:
  void run(std::vector<Tensor> touched, std::vector<int> peers,
           const std::function<ncclResult_t()>& call) {
    guarded([&] {
      flights_.push_back({std::move(touched), std::move(peers), timeout(), mark()});
      use_gpu(device_);
      check_cuda(cudaStreamWaitEvent(stream_, event_of(mark()), 0));
      check_nccl(call());
      settle();
      flights_.back().end = marked(stream_);  // only now it is on the stream
      ++asked_;
    });
  }
  void run(std::vector<Tensor> touched, const std::function<ncclResult_t()>& call) {
    run(std::move(touched), everybody(), call);
  }
  void run_group(std::vector<Tensor> touched, std::vector<int> peers,
                 const std::function<void()>& messages) {
    run(std::move(touched), std::move(peers), [&] {
      check_nccl(nccl_->ncclGroupStart());
      try {
        messages();
      } catch (...) {
        // An open group would keep an abort, and whatever comes later, waiting.
        nccl_->ncclGroupEnd();
        throw;
      }
      return nccl_->ncclGroupEnd();
    });
  }
  std::vector<int> everybody() const {
    const auto ranks = std::views::iota(0, size());
    return {ranks.begin(), ranks.end()};
  }

  // Until a nonblocking call has been taken in.
  void settle() {
    for (const auto start = Clock::now(); in_progress(); rest(start)) land();
  }

  bool in_progress() const {
    ncclResult_t state = ncclSuccess;
    check_nccl(nccl_->ncclCommGetAsyncError(comm_, &state));
    check_nccl(state);
    return state == ncclInProgress;
  }

  // Lets go of what is over, and watches the call behind it, whose time begins now.
  void land() {
    while (!flights_.empty()) {
      const Mark& end = flights_.front().end;
      const bool over = end && done(cudaEventQuery(event_of(end)));
      in_progress();  // throws what went wrong meanwhile, also with what looks over
      if (!over) return watch(flights_.front());
      flights_.pop_front();
    }
  }

  // Throws when it is no use to wait any more. The peers have as long as the timeout from when this
  // rank's own GPU came to the call.
  void watch(Flight& one) {
    if (aborted_) throw EngineError(-1, "aborted");
    Watch& w = one.watch;
    const auto now = Clock::now();
    if (!w.begun) {
      w.start = now;
      w.begun = one.begin == nullptr || done(cudaEventQuery(event_of(one.begin)));
    }
    if (now - w.start > one.timeout) throw EngineError(-1, "nothing came");
    if (now <= w.next_look) return;
    w.next_look = now + kLook;
    if (const std::string why = words_->first_failure(); !why.empty()) throw EngineError(-1, why);
    if (w.left) throw EngineError(*w.left, "left");
    w.left = words_->heard_leave(one.peers);  // perhaps with this call done
  }

  // What fails ends the communicator and all in flight, here and, by the word left, on the peers.
  template <typename Body>
  void guarded(Body body) {
    try {
      body();
    } catch (const EngineError& e) {
      words_->fail(e.what());
      if (comm_ != nullptr) nccl_->ncclCommAbort(comm_);
      comm_ = nullptr;
      keep_from_the_pool();
      if (e.peer() >= 0) throw;
      throw words_->verdict(e.what());
    }
  }

  // The others may still be reading what the last call sent them; they have moments for it.
  void part_from_the_others() noexcept {
    try {
      const auto end = Clock::now() + kLook;
      check_nccl(nccl_->ncclCommFinalize(comm_));
      while (in_progress() && Clock::now() < end) rest({});
    } catch (const std::exception&) {  // broken by others, which they will tell
    }
    nccl_->ncclCommAbort(comm_);  // never waits for the others
  }

  // Aborted calls leave their memory within moments; if not, nobody gets that memory any more.
  void keep_from_the_pool() {
    const std::deque<Flight> ended = std::exchange(flights_, {});
    const auto end = Clock::now() + kLook;
    while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
      cudaGetLastError();
      if (Clock::now() > end) return keep_for_good(ended);
      rest({});
    }
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
  std::deque<Flight> flights_;  // in the order they were asked for, of which there are
  int64_t asked_ = 0;
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
  if (place.world == 1) return std::make_unique<Nccl>(timeout);
  const int device = device_of(place);
  const std::shared_ptr<Rendezvous> rendezvous =
      make_rendezvous(place.rendezvous, place.rank, Clock::now() + timeout);
  return std::make_unique<Nccl>(place.rank, place.world, device, rendezvous, "nccl", timeout);
}

}  // namespace howmany
