// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/link.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>

#include "core/base/error.h"
#include "parallel/comm/hang_timeout.h"

namespace howmany {
namespace {

// A link over a Comm of two ranks. The earlier stage is rank 0.
class CommLink : public Link {
 public:
  CommLink(std::unique_ptr<Comm> pair, Device device) : pair_(std::move(pair)), device_(device) {}

  void send(const Tensor& t) override {
    while (!sent_.empty() && sent_.front().ready()) wait_for_oldest();
    sent_.push_back(pair_->send_async(t, 1 - pair_->rank()));
  }
  void expect(const Shape& shape, Dtype dtype) override {
    Tensor t = Tensor::empty(shape, dtype, device_);
    Work work = pair_->receive_async(t, 1 - pair_->rank());
    expected_.emplace_back(std::move(t), std::move(work));
  }
  Tensor receive() override {
    auto [t, work] = std::move(expected_.front());
    expected_.pop_front();
    work.finish();
    return t;
  }
  void flush() override {
    while (!sent_.empty()) wait_for_oldest();
  }
  void close(std::string_view why) override { pair_->abort(why); }

 private:
  void wait_for_oldest() {
    Work work = std::move(sent_.front());
    sent_.pop_front();
    work.finish();
  }

  std::deque<Work> sent_;
  std::deque<std::pair<Tensor, Work>> expected_;
  std::unique_ptr<Comm> pair_;
  Device device_;
};

// A queue between two threads. The receiver copies to its own device.
class ThreadLink : public Link {
 public:
  ThreadLink(Device from, Device to) : from_(from), to_(to) {}

  void send(const Tensor& t) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(t);
    }
    arrived_.notify_one();
  }
  void expect(const Shape&, Dtype) override {}
  Tensor receive() override {
    Tensor t;
    {
      std::unique_lock lock(mutex_);
      const auto time = hang_timeout();
      const bool in_time =
          arrived_.wait_for(lock, time, [&] { return !queue_.empty() || closed_; });
      HM_ENSURE(in_time, "[link] {} has sent nothing to {} for {:.1f} s", from_.str(), to_.str(),
                std::chrono::duration<double>(time).count());
      HM_ENSURE(!closed_, "[link] another stage failed: {}", why_);
      t = std::move(queue_.front());
      queue_.pop_front();
    }
    return t.to(to_);
  }
  void flush() override {}
  void close(std::string_view why) override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      why_ = why;
    }
    arrived_.notify_all();
  }

 private:
  const Device from_, to_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Tensor> queue_;
  bool closed_ = false;
  std::string why_;
};

}  // namespace

void StageLinks::flush() const {
  for (Link* link : {to_next.get(), to_previous.get()})
    if (link) link->flush();
}

void StageLinks::close(std::string_view why) const {
  for (Link* link : {from_previous.get(), to_next.get(), from_next.get(), to_previous.get()})
    if (link) link->close(why);
}

// Stages form the pairs (0,1)(2,3).., then (1,2)(3,4)... A stage without a partner joins no group.
StageLinks connect_stages(Comm& stages, Device device) {
  StageLinks links;
  const int me = stages.rank(), last = stages.size() - 1;
  for (const int parity : {0, 1}) {
    const bool earlier = me % 2 == parity;  // of its pair
    const bool paired = earlier ? me < last : me > 0;
    const int pair = paired ? (earlier ? me : me - 1) : -1;
    for (const bool forward : {true, false}) {
      std::unique_ptr<Comm> comm = stages.split(pair);
      if (!comm) continue;
      auto link = std::make_shared<CommLink>(std::move(comm), device);
      (forward ? (earlier ? links.to_next : links.from_previous)
               : (earlier ? links.from_next : links.to_previous)) = std::move(link);
    }
  }
  return links;
}

std::vector<StageLinks> connect_threads(const std::vector<Device>& devices) {
  std::vector<StageLinks> links(devices.size());
  for (size_t i = 0; i + 1 < devices.size(); ++i) {
    links[i].to_next = links[i + 1].from_previous =
        std::make_shared<ThreadLink>(devices[i], devices[i + 1]);
    links[i].from_next = links[i + 1].to_previous =
        std::make_shared<ThreadLink>(devices[i + 1], devices[i]);
  }
  return links;
}

}  // namespace howmany
