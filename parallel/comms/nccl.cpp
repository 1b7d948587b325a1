// NCCL between GPUs, one per rank: the device of a rank is its local rank. Tensors are on the CPU,
// so each call copies through pinned host memory to the device and back, and that is part of what
// it costs. The communicator is nonblocking: every call is polled, with the stream and NCCL's own
// error state, so that a peer that died or hangs ends it within the timeout, by ncclCommAbort.
// NCCL knows no tags: messages between two ranks are received in the order sent.
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "core/error.h"
#include "parallel/comm_list.h"
#include "parallel/comms/gloo_rendezvous.h"
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
size_t bytes_of(const Tensor& t) { return static_cast<size_t>(t.bytes()); }

// Memory on the device with pinned memory of the host beside it; grows, never shrinks.
class Staging {
 public:
  Staging() = default;
  ~Staging() { release(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  char* device(size_t bytes) {
    reserve(bytes);
    return static_cast<char*>(device_);
  }
  void load(const Tensor& t, cudaStream_t stream) {
    reserve(bytes_of(t));
    std::memcpy(host_, t.raw(), bytes_of(t));
    check_cuda(cudaMemcpyAsync(device_, host_, bytes_of(t), cudaMemcpyHostToDevice, stream));
  }
  void fetch(size_t bytes, cudaStream_t stream) {
    check_cuda(cudaMemcpyAsync(host_, device_, bytes, cudaMemcpyDeviceToHost, stream));
  }
  void store(Tensor& t) const { std::memcpy(t.mutable_raw(), host_, bytes_of(t)); }

 private:
  void reserve(size_t bytes) {
    if (bytes <= size_) return;
    release();
    check_cuda(cudaMalloc(&device_, bytes));
    check_cuda(cudaMallocHost(&host_, bytes));
    size_ = bytes;
  }
  void release() {
    cudaFree(device_);
    cudaFreeHost(host_);
    device_ = host_ = nullptr;
    size_ = 0;
  }

  void *device_ = nullptr, *host_ = nullptr;
  size_t size_ = 0;
};

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
        nccl_(&NcclLibrary::get()) {
    set_timeout(timeout);
    check_cuda(cudaSetDevice(device_));
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclUniqueId id = exchange_id();
    guarded([&] {
      check_nccl(nccl_->ncclCommInitRankConfig(&comm_, size, id, rank, &config));
      settle();
    });
  }
  ~Nccl() override {
    if (comm_ != nullptr) nccl_->ncclCommAbort(comm_);  // never waits for the others
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  std::string_view name() const override { return "nccl"; }
  std::map<std::string, std::string> details() const override {
    if (nccl_ == nullptr) return {};
    int version = 0;
    nccl_->ncclGetVersion(&version);
    return {
        {"version", fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100)},
        {"staging", "through pinned host memory"}};
  }

  void all_reduce(Tensor& t, ReduceOp op) override {
    run(&t, &t, [&](char* in, char* out) {
      return nccl_->ncclAllReduce(in, out, count_of(t), type_of(t), op_of(op), comm_, stream_);
    });
  }
  void broadcast(Tensor& t, int root) override {
    run(&t, &t, [&](char* in, char* out) {
      return nccl_->ncclBroadcast(in, out, count_of(t), type_of(t), root, comm_, stream_);
    });
  }
  void all_gather(const Tensor& send, Tensor& receive) override {
    run(&send, &receive, [&](char* in, char* out) {
      return nccl_->ncclAllGather(in, out, count_of(send), type_of(send), comm_, stream_);
    });
  }
  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override {
    run(&send, &receive, [&](char* in, char* out) {
      return nccl_->ncclReduceScatter(in, out, count_of(receive), type_of(send), op_of(op), comm_,
                                      stream_);
    });
  }
  void gather(const Tensor& send, Tensor& receive, int root) override {
    const bool is_root = rank() == root;
    run(&send, is_root ? &receive : nullptr, [&](char* in, char* out) {
      return in_group([&] {
        send_to(root, in, send);
        for (int r = 0; r < size() && is_root; ++r) receive_from(r, part(out, r, send), send);
      });
    });
  }
  void scatter(const Tensor& send, Tensor& receive, int root) override {
    const bool is_root = rank() == root;
    run(is_root ? &send : nullptr, &receive, [&](char* in, char* out) {
      return in_group([&] {
        receive_from(root, out, receive);
        for (int r = 0; r < size() && is_root; ++r) send_to(r, part(in, r, receive), receive);
      });
    });
  }
  void all_to_all(const Tensor& send, Tensor& receive) override {
    const Tensor one = send.view({send.numel()}).rows(0, send.numel() / size());
    run(&send, &receive, [&](char* in, char* out) {
      return in_group([&] {
        for (int r = 0; r < size(); ++r) {
          send_to(r, part(in, r, one), one);
          receive_from(r, part(out, r, one), one);
        }
      });
    });
  }
  void send(const Tensor& t, int peer, int) override {
    run(&t, nullptr, [&](char* in, char*) {
      return nccl_->ncclSend(in, count_of(t), type_of(t), peer, comm_, stream_);
    });
  }
  void receive(Tensor& t, int peer, int) override {
    run(nullptr, &t, [&](char*, char* out) {
      return nccl_->ncclRecv(out, count_of(t), type_of(t), peer, comm_, stream_);
    });
  }
  void barrier() override {
    Tensor token = Tensor::zeros({1});
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
    leave_word(why);
  }

 private:
  // in, out: device memory with `send` in it and for `receive`.
  using Call = std::function<ncclResult_t(char* in, char* out)>;

  void run(const Tensor* send, Tensor* receive, const Call& call) {
    guarded([&] {
      check_cuda(cudaSetDevice(device_));  // of this thread, which may be Comm's own
      if (send != nullptr) in_.load(*send, stream_);
      char* const in = send != nullptr ? in_.device(0) : nullptr;
      char* const out = receive != nullptr ? out_.device(bytes_of(*receive)) : nullptr;
      check_nccl(call(in, out));
      settle();
      if (receive != nullptr) out_.fetch(bytes_of(*receive), stream_);
      wait_until([this] {
        const cudaError_t state = cudaStreamQuery(stream_);
        if (state != cudaErrorNotReady) check_cuda(state);
        return state == cudaSuccess;
      });
      if (receive != nullptr) out_.store(*receive);
    });
  }

  // Until a nonblocking call has been taken in.
  void settle() {
    wait_until([this] {
      ncclResult_t state = ncclSuccess;
      check_nccl(nccl_->ncclCommGetAsyncError(comm_, &state));
      check_nccl(state);
      return state != ncclInProgress;
    });
  }

  template <typename Done>
  void wait_until(Done done) {
    const auto start = Clock::now();
    auto next_look = start + kLook;
    while (!done()) {
      ncclResult_t state = ncclSuccess;
      check_nccl(nccl_->ncclCommGetAsyncError(comm_, &state));
      check_nccl(state);
      if (aborted_) throw EngineError(-1, "aborted");
      const auto now = Clock::now();
      if (now - start > timeout()) throw EngineError(-1, "nothing came");
      if (now > next_look) {
        next_look = now + kLook;
        look_for_word();
      }
      std::this_thread::yield();
    }
  }

  // What fails ends the communicator, here and, by the word left, on the peers.
  template <typename Body>
  void guarded(Body body) {
    try {
      body();
    } catch (const EngineError& e) {
      leave_word(e.what());
      if (comm_ != nullptr) nccl_->ncclCommAbort(comm_);
      comm_ = nullptr;
      throw;
    }
  }

  template <typename Body>
  ncclResult_t in_group(Body body) {
    check_nccl(nccl_->ncclGroupStart());
    body();
    return nccl_->ncclGroupEnd();
  }
  void send_to(int r, const char* from, const Tensor& like) {
    check_nccl(nccl_->ncclSend(from, count_of(like), type_of(like), r, comm_, stream_));
  }
  void receive_from(int r, char* to, const Tensor& like) {
    check_nccl(nccl_->ncclRecv(to, count_of(like), type_of(like), r, comm_, stream_));
  }
  static char* part(char* all, int r, const Tensor& one) {
    return all + static_cast<size_t>(r) * bytes_of(one);
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

  void leave_word(std::string_view why) noexcept {
    try {
      const std::string text = fmt::format("{} {}", rank(), why);
      rendezvous_->set(path_ + "/failed", {text.begin(), text.end()});
    } catch (const std::exception&) {
      // Somebody was first, or rank 0 is gone with it: then the timeout tells.
    }
  }

  void look_for_word() {
    std::string text;
    try {
      if (!rendezvous_->has(path_ + "/failed")) return;
      const std::vector<char> word = rendezvous_->get(path_ + "/failed");
      text.assign(word.begin(), word.end());
    } catch (const std::exception&) {
      return;
    }
    throw EngineError(std::atoi(text.c_str()),
                      "failed: " + text.substr(std::min(text.find(' ') + 1, text.size())));
  }

  const int device_ = 0;
  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::string path_;  // of this group among the keys of the rendezvous
  const NcclLibrary* const nccl_ = nullptr;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Staging in_, out_;
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
