// SPDX-License-Identifier: Apache-2.0
// Copies batches to a GPU. The copy of the next batch overlaps the work on the current one. A
// feeder thread takes batches from the source, so that a copy starts once the previous batch was
// taken. It ends with each epoch. With 0 workers the caller does everything.
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/data/batch_source.h"
#include "core/gpu/blocks.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/gpu/stream.h"
#include "core/profile/range.h"
#include "core/tensor/id_range.h"

namespace howmany {
namespace {

// A batch whose copy is enqueued.
struct Sent {
  Batch batch, host;  // `host` must live until `done`
  std::shared_ptr<void> done = {};
  std::exception_ptr error = {};  // instead of a batch
};

class ToGpu final : public BatchSource {
 public:
  ToGpu(const BatchMaker& maker, std::unique_ptr<BatchSource> source)
      : maker_(maker),
        gpu_(maker.options().device),
        ahead_(maker.options().workers > 0),
        source_(std::move(source)),
        blocks_(Blocks::on_gpu(gpu_.index, maker.block_bytes())),
        stream_(gpu_.index) {}

  void start(int64_t epoch) override {
    feeder_ = {};  // waits for its current batch
    ready_.reset();
    source_->start(epoch);
    if (ahead_) feeder_ = std::jthread([this](const std::stop_token& stop) { feed(stop); });
  }

  Batch take(int64_t batch) override {
    if (last_.done) gpu::finish(last_.done);  // before its host memory is reused
    Sent sent = ahead_ ? next() : send(source_->take(batch));
    if (sent.error) std::rethrow_exception(sent.error);
    gpu::wait_for(gpu_.index, sent.done);
    Batch taken = std::move(sent.batch);
    if (!ahead_) last_ = std::move(sent);
    return taken;
  }

 private:
  void feed(const std::stop_token& stop) {
    for (int64_t batch = 0; batch < maker_.batches(); ++batch) {
      if (!wait_until_taken(stop)) return;
      Sent sent = made(batch);
      const Batch host = std::exchange(sent.host, {});
      const std::shared_ptr<void> done = sent.done;
      put(std::move(sent));
      try {
        if (done) gpu::finish(done);
      } catch (const Error&) {
        // The GPU has failed; the next call on it reports that.
      }
    }
  }

  bool wait_until_taken(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    return changed_.wait(lock, stop, [&] { return !ready_; }) && !stop.stop_requested();
  }

  Sent made(int64_t batch) {
    try {
      return send(source_->take(batch));
    } catch (...) {
      Sent sent;
      sent.error = std::current_exception();
      return sent;
    }
  }

  void put(Sent sent) {
    {
      const std::lock_guard lock(mutex_);
      ready_ = std::move(sent);
    }
    changed_.notify_all();
  }

  Sent next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.has_value(); });
    Sent sent = std::move(*ready_);
    ready_.reset();
    lock.unlock();
    changed_.notify_all();
    return sent;
  }

  Sent send(Batch host) {
    const Range range(Category::copy, "batch to GPU",
                      static_cast<uint64_t>(host.x.bytes() + host.y.bytes()));
    Sent sent{.batch = maker_.in(host.number, blocks_->take(), gpu_), .host = std::move(host)};
    copy(sent.host.x, sent.batch.x);
    copy(sent.host.y, sent.batch.y);
    sent.done = stream_.record_event();
    return sent;
  }

  void copy(const Tensor& from, Tensor& to) {
    stream_.copy_in(to.mutable_raw(), from.raw(), from.bytes());
    if (from.dtype() == Dtype::i64) remember_range(to, from);
  }

  const BatchMaker& maker_;
  const Device gpu_;
  const bool ahead_;
  const std::unique_ptr<BatchSource> source_;
  const std::shared_ptr<Blocks> blocks_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Sent> ready_;  // the next one
  Sent last_;                  // the last one that the caller enqueued
  gpu::Stream stream_;
  std::jthread feeder_;  // last member: destroyed before the members that it uses
};

}  // namespace

std::unique_ptr<BatchSource> batches_to_gpu(const BatchMaker& maker,
                                            std::unique_ptr<BatchSource> source) {
  return std::make_unique<ToGpu>(maker, std::move(source));
}

}  // namespace howmany
