// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/grad_sync.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <vector>

#include "core/base/error.h"

namespace howmany {
namespace {

void fill_missing(Param& param) {
  if (!param.has_grad) param.grad.zero();
  param.has_grad = true;
}

class Alone : public GradSync {
 public:
  explicit Alone(std::span<Param* const> params) : params_(params.begin(), params.end()) {}
  void ready(Param&) override {}
  size_t exchanges(std::span<Param* const>) const override { return 0; }
  StepLoss finish(const Tensor& loss) override {
    for (Param* p : params_) fill_missing(*p);
    return StepLoss(loss);
  }

 private:
  std::vector<Param*> params_;
};

class Inline : public GradSync {
 public:
  Inline(Comm& comm, std::span<Param* const> params) : comm_(comm) {
    for (Param* p : params) params_.emplace_back(p, false);
  }

  void ready(Param& param) override {
    const auto found = std::ranges::find(params_, &param, &Entry::first);
    HM_REQUIRE(found != params_.end(), "[grad_sync] {} is not synchronised here", param.name);
    HM_REQUIRE(!found->second, "[grad_sync] {} is ready twice", param.name);
    found->second = true;
    comm_.all_reduce(param.grad);
  }
  size_t exchanges(std::span<Param* const> ready) const override { return ready.size(); }

  StepLoss finish(const Tensor& loss) override {
    for (auto entry = params_.rbegin(); entry != params_.rend(); ++entry) {
      fill_missing(*entry->first);
      if (!entry->second) comm_.all_reduce(entry->first->grad);
      entry->second = false;
    }
    const Tensor sum = loss.clone();
    comm_.all_reduce(sum);
    return StepLoss(sum);
  }

 private:
  using Entry = std::pair<Param*, bool>;  // true: its gradient is ready
  Comm& comm_;
  std::vector<Entry> params_;
};

class Bucketed : public GradSync {
 public:
  Bucketed(Comm& comm, std::span<Param* const> params, const GradSyncOptions& options)
      : comm_(comm), host_waits_(options.host_waits) {
    plan(params, options);
    for (Bucket& bucket : buckets_) adopt(bucket, &bucket == &buckets_.back());
  }

  void ready(Param& param) override {
    const auto& [bucket, slot] = place_of(param);
    HM_REQUIRE(!slot->ready, "[grad_sync] {} is ready twice", param.name);
    HM_REQUIRE(param.grad.shares_storage_with(bucket->flat),
               "[grad_sync] the gradient of {} was replaced", param.name);
    slot->ready = true;
    --bucket->missing;
    // The last bucket waits for the loss.
    while (next_ + 1 < buckets_.size() && buckets_[next_].missing == 0) launch();
  }

  size_t exchanges(std::span<Param* const> ready) const override {
    std::map<const Bucket*, size_t> filled;
    for (const Param* param : ready) ++filled[place_of(*param).bucket];
    size_t whole = 0;
    while (whole + 1 < buckets_.size() && filled[&buckets_[whole]] == buckets_[whole].slots.size())
      ++whole;
    return whole;
  }

  StepLoss finish(const Tensor& loss) override {
    for (Bucket& bucket : buckets_)
      for (Slot& slot : bucket.slots) fill_missing(*slot.param);
    Tensor& last = buckets_.back().flat;
    Tensor loss_slot = last.flat(last.numel() - 1, last.numel());
    loss_slot.copy_from(loss.to(last.dtype()).to(last.device()));
    while (next_ < buckets_.size()) launch();
    for (Work& work : works_) host_waits_ ? work.finish() : work.wait();
    StepLoss sum(loss_slot, works_.back());
    restart();
    return sum;
  }

 private:
  struct Slot {
    Param* param;
    int64_t begin;
    bool ready = false;
  };
  struct Bucket {
    std::vector<Slot> slots;
    int64_t numel = 0;
    Tensor flat;
    size_t missing = 0;
  };
  struct Place {
    Bucket* bucket;
    Slot* slot;
  };

  const Place& place_of(const Param& param) const {
    const auto found = place_.find(&param);
    HM_REQUIRE(found != place_.end(), "[grad_sync] {} is not synchronised here", param.name);
    return found->second;
  }

  void plan(std::span<Param* const> params, const GradSyncOptions& options) {
    std::vector<int64_t> bytes;
    for (const Param* param : std::views::reverse(params)) bytes.push_back(param->grad.bytes());
    auto param = params.rbegin();
    for (const size_t length : bucket_lengths(bytes, options)) {
      Bucket& bucket = buckets_.emplace_back();
      for (size_t i = 0; i < length; ++i, ++param) {
        bucket.slots.push_back({*param, bucket.numel});
        bucket.numel += aligned_numel((*param)->grad.numel());
      }
    }
  }

  void adopt(Bucket& bucket, bool with_loss) {
    const Tensor like = bucket.slots.empty() ? Tensor() : bucket.slots[0].param->grad;
    bucket.flat = Tensor::zeros({bucket.numel + (with_loss ? 1 : 0)},
                                like ? like.dtype() : Dtype::f64, like.device());
    bucket.missing = bucket.slots.size();
    for (Slot& slot : bucket.slots) {
      Param& param = *slot.param;
      Tensor view = bucket.flat.flat(slot.begin, slot.begin + param.grad.numel());
      view.copy_from(param.grad);
      param.grad = view.view(param.shape);
      place_[&param] = {&bucket, &slot};
    }
  }

  void launch() { works_.push_back(comm_.all_reduce_async(buckets_[next_++].flat)); }

  void restart() {
    works_.clear();
    next_ = 0;
    for (Bucket& bucket : buckets_) {
      bucket.missing = bucket.slots.size();
      for (Slot& slot : bucket.slots) slot.ready = false;
    }
  }

  Comm& comm_;
  const bool host_waits_;
  std::vector<Bucket> buckets_;  // in the order they are launched
  std::map<const Param*, Place> place_;
  std::vector<Work> works_;
  size_t next_ = 0;  // bucket to launch
};

void check_sync_options(std::span<Param* const> params, const GradSyncOptions& options) {
  HM_REQUIRE(options.bucket_bytes > 0 && options.first_bucket_bytes > 0,
             "[grad_sync] buckets of {} and {} bytes", options.first_bucket_bytes,
             options.bucket_bytes);
  for (const Param* p : params) {
    HM_REQUIRE(p->grad, "[grad_sync] {} has no gradient: not materialized, or a buffer", p->name);
    const Dtype dtype = p->grad.dtype();
    HM_REQUIRE(dtype == Dtype::f32 || dtype == Dtype::f64, "[grad_sync] {} is {}", p->name,
               name_of(dtype));
    HM_REQUIRE(dtype == params[0]->grad.dtype(), "[grad_sync] dtypes differ: {} is {}, {} is {}",
               p->name, name_of(dtype), params[0]->name, name_of(params[0]->grad.dtype()));
  }
}

}  // namespace

std::vector<size_t> bucket_lengths(std::span<const int64_t> bytes, const GradSyncOptions& options) {
  std::vector<size_t> lengths = {0};
  int64_t filled = 0, limit = options.first_bucket_bytes;
  for (const int64_t of_param : bytes) {
    if (filled >= limit) {
      lengths.push_back(0);
      filled = 0;
      limit = options.bucket_bytes;
    }
    ++lengths.back();
    filled += of_param;
  }
  return lengths;
}

std::unique_ptr<GradSync> make_grad_sync(Comm& comm, std::span<Param* const> params,
                                         const GradSyncOptions& options) {
  check_sync_options(params, options);
  if (comm.size() == 1) return std::make_unique<Alone>(params);
  if (options.bucketed) return std::make_unique<Bucketed>(comm, params, options);
  return std::make_unique<Inline>(comm, params);
}

}  // namespace howmany
